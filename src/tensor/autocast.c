/* Automatic mixed precision: converts a call's floating-point inputs by the operation's policy. */
#include <stdlib.h>
#include <string.h>

#include "op_inner.h"
#include "op_list/move.h"
#include "starling/autograd.h"
#include "tensor/tensor.h"

/* The data type of the innermost SL_AUTOCAST of the calling thread; SL_DTYPE_DEFAULT outside of all. */
enum sl_dtype sl_autocast_dtype(void)
{
	return slp_mode.autocast;
}

/* The start of SL_AUTOCAST, for the calling thread: from now on calls compute in dtype if it suits them; with
 * SL_FLOAT32 or SL_DTYPE_DEFAULT, they do not convert.  mode, which belongs to the caller, keeps the previous state.
 * SL_EDTYPE, without effect, if dtype is neither bfloat16 nor float16 nor one of these. */
void sl_autocast_enter_at(const char *at, sl_autocast_mode *mode, enum sl_dtype dtype)
{
	if (!mode) return;
	*mode = (sl_autocast_mode){slp_mode.autocast, 1, slp_mode.autocast_keeps};
	slp_mode.autocast_keeps = false;
	if (slp_is_half(dtype)) slp_mode.autocast = dtype;
	else if (dtype == SL_FLOAT32 || dtype == SL_DTYPE_DEFAULT) slp_mode.autocast = SL_DTYPE_DEFAULT;
	else
		slp_call_fail(at, "sl_autocast", SL_EDTYPE, "takes bfloat16, float16 or float32, not %s",
		              sl_dtype_name(dtype));
}

/* The end of SL_AUTOCAST, however control leaves the block: restores the previous state. */
void sl_autocast_leave(sl_autocast_mode *mode)
{
	if (!mode) return;
	if (mode->open) {
		slp_mode.autocast = mode->outer;
		slp_mode.autocast_keeps = mode->kept;
	}
	mode->open = 0;
}

/* float64 stays: programs choose it for its precision. */
static bool is_cast(const sl_tensor *t)
{
	return t && (t->type.dtype == SL_FLOAT32 || slp_is_half(t->type.dtype));
}

static enum sl_dtype widest(int nin, sl_tensor *const *in)
{
	enum sl_dtype d = SL_DTYPE_DEFAULT;
	for (int i = 0; i < nin; i++) {
		if (!in[i] || !slp_is_float(in[i]->type.dtype) || in[i]->type.dtype == d) continue;
		if (in[i]->type.dtype == SL_FLOAT64) return SL_FLOAT64;
		d = d == SL_DTYPE_DEFAULT ? in[i]->type.dtype : SL_FLOAT32;
	}
	return d;
}

static bool converts(const struct sl_op *op)
{
	return op->autocast != SLP_CAST_NONE && !(op->autocast == SLP_CAST_LOWER && slp_mode.autocast_keeps);
}

static enum sl_dtype wanted(const struct sl_op *op, int nin, sl_tensor *const *in)
{
	switch (op->autocast) {
	case SLP_CAST_NONE: break;
	case SLP_CAST_LOWER: return slp_mode.autocast;
	case SLP_CAST_FLOAT32: return SL_FLOAT32;
	case SLP_CAST_WIDEST: return widest(nin, in);
	}
	return SL_DTYPE_DEFAULT;
}

bool slp_autocast_changes(const struct sl_op *op, int nin, sl_tensor *const *in)
{
	if (slp_mode.autocast == SL_DTYPE_DEFAULT || !converts(op)) return false;
	enum sl_dtype to = wanted(op, nin, in);
	for (int i = 0; i < nin; i++)
		if (is_cast(in[i]) && in[i]->type.dtype != to) return true;
	return false;
}

bool slp_autocast_inputs(const char *at, const struct sl_op *op, int nin, sl_tensor *const *in, sl_tensor **cast)
{
	enum sl_dtype to = wanted(op, nin, in);
	bool ok = true;
	for (int i = 0; i < nin && ok; i++) {
		bool same = !is_cast(in[i]) || in[i]->type.dtype == to;
		cast[i] = same ? in[i] : slp_apply1(at, &slp_op_cast, &(struct slp_cast){(int)to}, 1, &in[i]);
		ok = same || cast[i];
	}
	return ok;
}
