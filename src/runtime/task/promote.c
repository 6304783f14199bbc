/* Calls on copies of their operands, which are in scratch memory.
 *
 * Half types that no kernel takes, or one declines, are converted to float32, the kernel for float32 runs, and its
 * results are rounded back; for elementwise operations on CPUs, the copies are pieces that stay in a first-level cache.
 *
 * Libraries for GPUs compute half types in other ways, which round otherwise, where an operand is a view that begins
 * between two multiples of 16 bytes: such operands are copied as they are, so that a call gives the same bits wherever
 * they lie. */
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "op_list/move.h"
#include "runtime/engine.h"
#include "runtime/task/record.h"
#include "runtime/task/storage.h"

static struct slp_type promoted_type(struct slp_type t)
{
	t.dtype = slp_promoted(t.dtype);
	return t;
}

/* The bytes of a float32 copy of an operand in a half type; other operands need none. */
static size_t copy_bytes(const struct slp_type *t)
{
	return slp_is_half(t->dtype) ? slp_align((size_t)sl_shape_size(t->shape) * sizeof(float), 64) : 0;
}

/* No machine has as much, and it times all teams does not wrap. */
static const size_t most_scratch = (size_t)1 << 50;

/* Symbols may have any size: above this number of elements, an operation's computations with sizes might overflow. */
static bool is_absurd(const struct slp_infer *c)
{
	static const int64_t most_elements = (int64_t)1 << 44;
	for (int i = 0; i < c->nin + c->nout; i++) {
		const struct slp_type *t = i < c->nin ? &c->in[i] : &c->out[i - c->nin];
		if (sl_shape_size(t->shape) > most_elements) return true;
	}
	return false;
}

static size_t own_scratch(const struct slp_infer *c)
{
	if (!c->op->scratch) return 0;
	size_t bytes = is_absurd(c) ? most_scratch : c->op->scratch(c);
	return bytes < most_scratch ? bytes : most_scratch;
}

/* The memory for the kernel for float32, or for the types as they are, and the copies. */
static size_t copied_scratch(const struct slp_infer *c)
{
	enum { FEW = 16 };
	struct slp_type few[FEW], *types = few;
	int n = c->nin + c->nout;
	size_t copies = 0;
	if (is_absurd(c) || (n > FEW && !(types = slp_try_malloc((size_t)n * sizeof *types)))) return most_scratch;
	for (int i = 0; i < n; i++) {
		types[i] = promoted_type(i < c->nin ? c->in[i] : c->out[i - c->nin]);
		copies += copy_bytes(i < c->nin ? &c->in[i] : &c->out[i - c->nin]);
	}
	struct slp_infer wide = *c;
	wide.in = types;
	wide.out = types + c->nin;
	size_t own = own_scratch(c), promoted = own_scratch(&wide);
	if (types != few) free(types);
	return copies + (own > promoted ? own : promoted);
}

/* ---- conversions ---------------------------------------------------------------------------------------------- */

static slp_kernel_fn *cast_on(enum sl_device_kind device)
{
	return slp_kernel_for(&slp_op_cast, SLP_ALL_OF(SL_FLOAT32), device).kernel;
}

/* By a kernel of cast, as a part of the call k, which errors name. */
static enum sl_status convert(const struct slp_kernel *k, slp_kernel_fn *cast, const struct slp_view *from,
                              const struct slp_view *to)
{
	struct slp_view out = *to;
	struct slp_kernel part = *k;
	part.attrs = NULL;
	part.nin = part.nout = 1;
	part.in = from;
	part.out = &out;
	return cast(&part);
}

/* ---- elementwise, by pieces ----------------------------------------------------------------------------------- */

enum { PIECE = 2048, PIECE_INPUTS = 8 };

/* Operands have the shape of the result, or one element. */
static bool by_pieces(const struct sl_op *op, int nin, int nout, const struct slp_type *in, const struct slp_type *out)
{
	bool fits = op->elementwise && nout == 1 && nin <= PIECE_INPUTS;
	for (int i = 0; i < nin && fits; i++)
		fits = sl_shape_size(in[i].shape) == 1 || sl_shape_equal(in[i].shape, out->shape);
	return fits;
}

static bool kernel_by_pieces(const struct slp_kernel *k)
{
	struct slp_type in[PIECE_INPUTS];
	for (int i = 0; i < k->nin && i < PIECE_INPUTS; i++) in[i] = k->in[i].type;
	return by_pieces(k->op, k->nin, k->nout, in, &k->out[0].type);
}

/* Elements [begin, begin + n) of an operand. */
static struct slp_view piece_of(const struct slp_view *v, int64_t begin, int64_t n)
{
	struct slp_view piece = *v;
	if (sl_shape_size(v->type.shape) == 1) return piece;
	piece.ptr = (char *)v->ptr + (size_t)begin * sl_dtype_size(v->type.dtype);
	piece.type.shape = SL_SHAPE(n);
	return piece;
}

struct pieces {
	const struct slp_kernel *k;
	slp_kernel_fn *kernel, *cast;
	struct slp_first_failure failure;
};

static enum sl_status run_piece(const struct pieces *p, int64_t begin, int64_t n)
{
	float copies[PIECE_INPUTS + 1][PIECE] __attribute__((aligned(64)));
	struct slp_view views[PIECE_INPUTS + 1];
	int nin = p->k->nin;
	for (int i = 0; i <= nin; i++) {
		struct slp_view v = piece_of(i < nin ? &p->k->in[i] : &p->k->out[0], begin, n);
		views[i] = v;
		if (!slp_is_half(v.type.dtype)) continue;
		views[i] = (struct slp_view){copies[i], promoted_type(v.type)};
		if (i < nin) convert(p->k, p->cast, &v, &views[i]);
	}
	struct slp_kernel wide = *p->k;
	wide.in = views;
	wide.out = views + nin;
	enum sl_status s = p->kernel(&wide);
	struct slp_view out = piece_of(&p->k->out[0], begin, n);
	return s == SL_OK && slp_is_half(out.type.dtype) ? convert(p->k, p->cast, &views[nin], &out) : s;
}

static void run_pieces(void *arg, int64_t begin, int64_t end)
{
	struct pieces *p = arg;
	for (; begin < end; begin += PIECE)
		slp_note_failure(&p->failure, run_piece(p, begin, end - begin < PIECE ? end - begin : PIECE), NULL);
}

/* ---- any ------------------------------------------------------------------------------------------------------ */

size_t slp_call_scratch(const struct slp_infer *c)
{
	struct slp_types t = slp_types_of(c->nin, c->in, c->nout, c->out);
	if (!((t.first | t.floats) & SLP_HALVES)) return own_scratch(c);
	struct slp_choice cpu = slp_kernel_for(c->op, t, SL_DEVICE_CPU), gpu = slp_kernel_for(c->op, t, SL_DEVICE_GPU);
	bool pieces = by_pieces(c->op, c->nin, c->nout, c->in, c->out);
	bool on_gpus = gpu.promote || c->op->declines || c->op->aligned;
	bool copies = (cpu.promote && !pieces) || (on_gpus && slp_engine.ngpus);
	return copies ? copied_scratch(c) : own_scratch(c);
}

/* The operands to copy, and the types of the copies. */
struct copying {
	bool (*wanted)(const struct slp_view *v);
	struct slp_type (*type)(struct slp_type t);
	slp_kernel_fn *cast;
};

static bool is_half_view(const struct slp_view *v)
{
	return slp_is_half(v->type.dtype);
}

static bool is_misaligned(const struct slp_view *v)
{
	enum { ALIGNMENT = 16 };
	return is_half_view(v) && (uintptr_t)v->ptr % ALIGNMENT;
}

static struct slp_type same_type(struct slp_type t)
{
	return t;
}

/* Places the operands' copies, reads the inputs into theirs; `next` is the scratch memory that is left. */
static enum sl_status copy(const struct slp_kernel *k, const struct copying *c, struct slp_view *copies, char **next)
{
	enum sl_status s = SL_OK;
	for (int i = 0; i < k->nin + k->nout && s == SL_OK; i++) {
		const struct slp_view *v = i < k->nin ? &k->in[i] : &k->out[i - k->nin];
		copies[i] = *v;
		if (!c->wanted(v)) continue;
		copies[i] = (struct slp_view){*next, c->type(v->type)};
		*next += copy_bytes(&v->type);
		if (i < k->nin) s = convert(k, c->cast, v, &copies[i]);
	}
	return s;
}

static enum sl_status copy_back(const struct slp_kernel *k, const struct copying *c, const struct slp_view *copies)
{
	enum sl_status s = SL_OK;
	for (int i = 0; i < k->nin + k->nout && s == SL_OK; i++) {
		const struct slp_view *v = i < k->nin ? &k->in[i] : &k->out[i - k->nin];
		bool written = i >= k->nin || slp_input_is_written(k->op, i);
		if (written && c->wanted(v)) s = convert(k, c->cast, &copies[i], v);
	}
	return s;
}

static enum sl_status run_copied(const struct slp_kernel *k, slp_kernel_fn *kernel, const struct copying *c,
                                 struct slp_view *copies)
{
	char *next = k->scratch;
	enum sl_status s = copy(k, c, copies, &next);
	struct slp_kernel copied = *k;
	copied.in = copies;
	copied.out = copies + k->nin;
	copied.scratch = next;
	if (s == SL_OK) s = kernel(&copied);
	return s == SL_OK ? copy_back(k, c, copies) : s;
}

enum sl_status slp_run_promoted(const struct slp_kernel *k, slp_kernel_fn *kernel, bool cuda, struct slp_view *wide)
{
	if (!cuda && kernel_by_pieces(k)) {
		struct pieces p = {.k = k, .kernel = kernel, .cast = cast_on(SL_DEVICE_CPU)};
		slp_parallel_for(slp_size(&k->out[0]), SLP_GRAIN, run_pieces, &p);
		return slp_noted_failure(k, &p.failure);
	}
	const struct copying c = {is_half_view, promoted_type, cast_on(cuda ? SL_DEVICE_GPU : SL_DEVICE_CPU)};
	return run_copied(k, kernel, &c, wide);
}

enum sl_status slp_run_aligned(const struct slp_kernel *k, slp_kernel_fn *kernel, struct slp_view *aligned)
{
	bool copies = false;
	for (int i = 0; i < k->nin + k->nout && !copies; i++)
		copies = is_misaligned(i < k->nin ? &k->in[i] : &k->out[i - k->nin]);
	if (!copies) return kernel(k);
	const struct copying c = {is_misaligned, same_type, cast_on(SL_DEVICE_GPU)};
	return run_copied(k, kernel, &c, aligned);
}
