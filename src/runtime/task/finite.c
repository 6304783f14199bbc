/* NaN mode (SL_NAN): checks arguments and results of each call on a CPU, to find the call that makes a NaN or an
 * infinity, not a later one that passes it on. */
#include <math.h>
#include <string.h>

#include "runtime/task/finite.h"
#include "runtime/task/storage.h"

bool slp_finite_wanted;

/* The first element of such a kind; -1: none. */
static int64_t find(const struct slp_view *v, bool nan)
{
	if (!v->ptr || !slp_is_float(v->type.dtype)) return -1;
	for (int64_t i = 0, n = slp_size(v); i < n; i++) {
		double x = slp_get(v, i);
		if (nan ? isnan(x) : isinf(x)) return i;
	}
	return -1;
}

/* Numbers among the attributes: a program may mask with -INFINITY. */
static bool is_given(const struct slp_kernel *k, bool nan)
{
	for (const struct slp_attr *a = k->op->attr_table; a && a->name; a++) {
		if (a->kind != SLP_DOUBLE) continue;
		for (unsigned i = 0; i < a->count; i++) {
			double x;
			memcpy(&x, (const char *)k->attrs + a->offset + i * sizeof x, sizeof x);
			if (nan ? isnan(x) : isinf(x)) return true;
		}
	}
	return false;
}

static bool is_there(const struct slp_kernel *k, bool nan)
{
	for (int i = 0; i < k->nin; i++)
		if (find(&k->in[i], nan) >= 0) return true;
	return is_given(k, nan);
}

struct slp_not_finite slp_finite_before(const struct slp_kernel *k)
{
	return (struct slp_not_finite){is_there(k, true), is_there(k, false)};
}

static enum sl_status check(const struct slp_kernel *k, const struct slp_view *v, const char *what, int number,
                            struct slp_not_finite before)
{
	int64_t nan = before.nan ? -1 : find(v, true), infinity = before.infinity || before.nan ? -1 : find(v, false);
	if (nan < 0 && infinity < 0) return SL_OK;
	return slp_kernel_fail(k, SL_EKERNEL,
	                       "%s %d is %s at element %lld, and nothing that it computes from is (SL_NAN)", what,
	                       number, nan >= 0 ? "NaN" : "infinite", (long long)(nan >= 0 ? nan : infinity));
}

enum sl_status slp_finite_after(const struct slp_kernel *k, struct slp_not_finite before)
{
	enum sl_status s = SL_OK;
	for (int i = 0; i < k->nout && s == SL_OK; i++) s = check(k, &k->out[i], "result", i, before);
	for (int i = 0; i < k->nin && s == SL_OK; i++)
		if (slp_input_is_written(k->op, i)) s = check(k, &k->in[i], "argument", i, before);
	return s;
}
