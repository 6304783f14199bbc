/* Calls whose half types no kernel takes: their operands are turned into float32 in scratch memory, the kernel for
 * float32 runs, and what it wrote is rounded back. */
#include <stdlib.h>
#include <string.h>

#include "runtime/record.h"

static struct slp_type promoted_type(struct slp_type t)
{
	t.dtype = slp_promoted(t.dtype);
	return t;
}

static size_t copy_bytes(const struct slp_type *t)
{
	return slp_is_half(t->dtype) ? slp_align((size_t)sl_shape_size(t->shape) * sizeof(float), 64) : 0;
}

static size_t own_scratch(const struct slp_infer *c)
{
	return c->op->scratch ? c->op->scratch(c) : 0;
}

/* What the kernel for float32 needs, and the copies. */
static size_t promoted_scratch(const struct slp_infer *c)
{
	enum { FEW = 16 };
	struct slp_type few[FEW], *types = few;
	int n = c->nin + c->nout;
	size_t copies = 0;
	if (n > FEW && !(types = slp_try_malloc((size_t)n * sizeof *types))) return SIZE_MAX / 2; /* more than there is */
	for (int i = 0; i < n; i++) {
		types[i] = promoted_type(i < c->nin ? c->in[i] : c->out[i - c->nin]);
		copies += copy_bytes(i < c->nin ? &c->in[i] : &c->out[i - c->nin]);
	}
	struct slp_infer wide = *c;
	wide.in = types;
	wide.out = types + c->nin;
	size_t own = own_scratch(&wide);
	if (types != few) free(types);
	return copies + own;
}

size_t slp_call_scratch(const struct slp_infer *c)
{
	struct slp_types t = slp_types_of(c->nin, c->in, c->nout, c->out);
	if (!((t.first | t.floats) & SLP_HALVES)) return own_scratch(c);
	struct slp_choice cpu = slp_kernel_for(c->op, t, SL_DEVICE_CPU), gpu = slp_kernel_for(c->op, t, SL_DEVICE_GPU);
	bool promotes = cpu.promote || (gpu.promote && slp_engine.ngpus);
	size_t own = own_scratch(c), wide = promotes ? promoted_scratch(c) : 0;
	return own > wide ? own : wide;
}

typedef enum sl_status convert_fn(const struct slp_kernel *k, const struct slp_view *from, const struct slp_view *to);

static convert_fn *converter(bool cuda)
{
#ifdef HAVE_CUDA
	if (cuda) return slp_cuda_convert;
#endif
	(void)cuda;
	return slp_cpu_convert;
}

/* Places the operands' copies, reads the inputs into theirs; `next` is the scratch memory that is left. */
static enum sl_status widen(const struct slp_kernel *k, struct slp_view *wide, char **next, convert_fn *convert)
{
	enum sl_status s = SL_OK;
	for (int i = 0; i < k->nin + k->nout && s == SL_OK; i++) {
		const struct slp_view *v = i < k->nin ? &k->in[i] : &k->out[i - k->nin];
		wide[i] = *v;
		if (!slp_is_half(v->type.dtype)) continue;
		wide[i] = (struct slp_view){*next, promoted_type(v->type)};
		*next += copy_bytes(&v->type);
		if (i < k->nin) s = convert(k, v, &wide[i]);
	}
	return s;
}

static enum sl_status narrow(const struct slp_kernel *k, const struct slp_view *wide, convert_fn *convert)
{
	enum sl_status s = SL_OK;
	for (int i = 0; i < k->nin + k->nout && s == SL_OK; i++) {
		const struct slp_view *v = i < k->nin ? &k->in[i] : &k->out[i - k->nin];
		bool written = i >= k->nin || slp_input_is_written(k->op, i);
		if (written && slp_is_half(v->type.dtype)) s = convert(k, &wide[i], v);
	}
	return s;
}

enum sl_status slp_run_promoted(const struct slp_kernel *k, slp_kernel_fn *kernel, bool cuda, struct slp_view *wide)
{
	char *next = k->scratch;
	enum sl_status s = widen(k, wide, &next, converter(cuda));
	struct slp_kernel promoted = *k;
	promoted.in = wide;
	promoted.out = wide + k->nin;
	promoted.scratch = next;
	if (s == SL_OK) s = kernel(&promoted);
	return s == SL_OK ? narrow(k, wide, converter(cuda)) : s;
}
