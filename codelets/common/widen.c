/* Calls in bfloat16 that are computed in float32 (widen.h). */
#include "op.h"
#include "widen.h"

#include "workspace.h"

enum { INPUTS = 4, OUTPUTS = 3 };

static size_t wide_bytes(const struct slp_view *v)
{
	return v->type.dtype == SL_BFLOAT16 ? (sizeof(float) * (size_t)slp_size(v) + 63) & ~(size_t)63 : 0;
}

/* The view, or memory for its copy. */
static struct slp_view widened(const struct slp_view *v, char **next)
{
	struct slp_view wide = *v;
	if (v->type.dtype != SL_BFLOAT16) return wide;
	wide.ptr = *next;
	wide.type.dtype = SL_FLOAT32;
	*next += wide_bytes(v);
	return wide;
}

static char *place(const struct slp_kernel *k)
{
	size_t bytes = 64;
	for (int i = 0; i < k->nin; i++) bytes += wide_bytes(&k->in[i]);
	for (int i = 0; i < k->nout; i++) bytes += wide_bytes(&k->out[i]);
	return slp_workspace(SLP_WORK_FLOAT32, bytes);
}

enum sl_status slp_in_float32(const struct slp_kernel *k)
{
	struct slp_view in[INPUTS], out[OUTPUTS];
	struct slp_kernel wide = *k;
	wide.in = in;
	wide.out = out;
	if (k->nin > INPUTS || k->nout > OUTPUTS) return slp_kernel_fail(k, SL_EINTERNAL, "too many operands");
	char *next = place(k);
	if (!next) return slp_kernel_fail(k, SL_ENOMEM, "no memory for operands in float32");
	for (int i = 0; i < k->nin; i++) {
		in[i] = widened(&k->in[i], &next);
		if (in[i].ptr != k->in[i].ptr) slp_cpu_convert(k, &k->in[i], &in[i]);
	}
	for (int i = 0; i < k->nout; i++) out[i] = widened(&k->out[i], &next);
	enum sl_status s = slp_kernel_for(k->op, SLP_ALL_OF(SL_FLOAT32), SL_DEVICE_CPU).kernel(&wide);
	for (int i = 0; i < k->nout && s == SL_OK; i++)
		if (out[i].ptr != k->out[i].ptr) slp_cpu_convert(k, &out[i], &k->out[i]);
	return s;
}
