/* Options of calls: one rule for all structures of the list (options.h). */
#include "options.h"

#include <starling/checkpoint.h>
#include <starling/functions.h>
#include <starling/spill.h>
#include <string.h>

#include "op.h"

/* ---- one field --------------------------------------------------------------------------------------------------- */

/* How a call is known, for messages. */
struct given {
	const char *at, *function;
	bool as_written;
};

static bool is_unset(double x)
{
	const double unset = SL_UNSET;
	return !memcmp(&x, &unset, sizeof x);
}

/* Of an array only the first element says whether it was written: others are 0 where fewer were. */
static bool doubles(const struct given *g, const char *name, double *x, const double *defaults, int n)
{
	(void)name;
	for (int i = 0; i < n; i++) {
		if (is_unset(x[i])) x[i] = 0;
		else if (g->as_written && !i && x[i] == 0) x[i] = -0.0;
		else if (!g->as_written && n == 1 && !slp_was_given(x[i]) && !is_unset(defaults[i])) x[i] = defaults[i];
	}
	return true;
}

static bool refuse(const struct given *g, const char *name)
{
	slp_call_fail(g->at, g->function, SL_EINVAL, ".%s is 0, a number from 1 on needed; omit it for its default",
	              name);
	return false;
}

static bool integers(const struct given *g, const char *name, int *x, const int *defaults, int n)
{
	if (g->as_written && x[0] == 0) return refuse(g, name);
	for (int i = 0; i < n; i++) {
		if (x[i] == SL_UNSET_INT) x[i] = 0;
		else if (n == 1 && x[i] == 0 && defaults[i] != SL_UNSET_INT) x[i] = defaults[i];
	}
	return true;
}

static bool wide_integers(const struct given *g, const char *name, int64_t *x, const int64_t *defaults, int n)
{
	if (g->as_written && x[0] == 0) return refuse(g, name);
	for (int i = 0; i < n; i++) {
		if (x[i] == SL_UNSET_INT) x[i] = 0;
		else if (x[i] == 0 && defaults[i] != SL_UNSET_INT) x[i] = defaults[i];
	}
	return true;
}

/* Nested structures have separate functions. */
static bool schedule(const struct given *g, const char *name, struct sl_schedule *x, const struct sl_schedule *d, int n)
{
	(void)name, (void)d, (void)n;
	return slp_options_sl_schedule(g->at, g->function, x);
}

static bool scaling(const struct given *g, const char *name, struct sl_loss_scaling *x, const struct sl_loss_scaling *d,
                    int n)
{
	(void)name, (void)d, (void)n;
	return slp_options_sl_loss_scaling(g->at, g->function, x);
}

/* ---- all structures ---------------------------------------------------------------------------------------------- */

/* An array, or one element as one. */
/* clang-format off */
#define FIRST(x)                                                                                                       \
	_Generic((x), double *: (x), int *: (x), default: &(x))
#define FUNCTION(x)                                                                                                    \
	_Generic((x), double: doubles, double *: doubles, int: integers, int *: integers, int64_t: wide_integers,      \
	         struct sl_schedule: schedule, struct sl_loss_scaling: scaling)
#define COUNT(x)                                                                                                       \
	((int)((sizeof(x)) / (_Generic((x), double *: sizeof(double), int *: sizeof(int), default: sizeof(x)))))
/* clang-format on */
#define ONE(field, ...)                                                                                                \
	ok = ok && FUNCTION(o->field)(&g, #field, FIRST(o->field), FIRST(defaults.field), COUNT(o->field));

#define X(type)                                                                                                        \
	bool slp_options_##type(const char *at, const char *function, struct type *o)                                  \
	{                                                                                                              \
		const struct given g = {at, function, o->as_written};                                                  \
		struct type defaults = SL_OPTIONS(type, );                                                             \
		bool ok = true;                                                                                        \
		SL_DEFAULTS_##type(ONE) o->as_written = false;                                                         \
		return ok;                                                                                             \
	}
SLP_OPTIONS_LIST(X)
#undef X
