/* Batch normalisation of images in half types on CPUs: converts some channels at a time to float32, in memory that fits
 * a second-level cache if images are small, and runs the kernels for float32 on them. */
#include "batch_norm.h"
#include "common/image_layout.h"
#include "common/convert.h"
#include "common/workspace.h"
#include "op.h"

enum { GROUP = 1 << 15, MOST_OPERANDS = 9 }; /* elements of an image operand at a time, where channels are that small */

struct work {
	const struct slp_kernel *k;
	slp_kernel_fn *kernel;
	struct slp_norm_size size;
	bool nc16;     /* images are in blocks of as many channels as are taken at a time */
	int64_t group; /* channels at a time */
	size_t each;   /* bytes of an image operand in float32 */
	_Atomic enum sl_status status;
};

static const struct slp_view *operand(const struct slp_kernel *k, int i)
{
	return i < k->nin ? &k->in[i] : &k->out[i - k->nin];
}

static bool is_image(const struct slp_view *v)
{
	return v->type.shape.ndim > 1;
}

/* Copies channels [c, c + n) of an operand to `wide`, or back. */
static void move(const struct work *w, const struct slp_view *v, int64_t c, int64_t n, float *wide, bool back)
{
	struct slp_norm_size z = w->size;
	int64_t runs = is_image(v) ? z.n : 1, s = is_image(v) ? z.s : 1;
	for (int64_t i = 0; i < runs; i++) {
		char *half = (char *)v->ptr + (size_t)((i * z.c + c) * s) * sl_dtype_size(v->type.dtype);
		if (back) slp_convert(SL_FLOAT32, wide + i * n * s, v->type.dtype, half, n * s);
		else slp_convert(v->type.dtype, half, SL_FLOAT32, wide + i * n * s, n * s);
	}
}

/* An operand of the call for these channels: its own memory, or a copy at *next. */
static struct slp_view part_of(const struct work *w, const struct slp_view *v, int64_t c, int64_t n, char **next)
{
	struct slp_norm_size z = w->size;
	sl_shape image = w->nc16 ? SL_SHAPE(z.n * z.s, n) : SL_SHAPE(z.n, n, z.s);
	struct slp_view part = {*next, {SL_FLOAT32, is_image(v) ? image : SL_SHAPE(n)}};
	if (v->type.dtype == SL_FLOAT32 && !is_image(v)) part.ptr = (float *)v->ptr + c;
	else *next += is_image(v) ? w->each : ((size_t)n * sizeof(float) + 63) & ~(size_t)63;
	return part;
}

static enum sl_status some_channels(const struct work *w, int64_t c, int64_t n, char *memory)
{
	const struct slp_kernel *k = w->k;
	struct slp_view part[MOST_OPERANDS];
	struct slp_kernel wide = *k;
	for (int i = 0; i < k->nin + k->nout; i++) {
		const struct slp_view *v = operand(k, i);
		char *copy = memory;
		part[i] = part_of(w, v, c, n, &memory);
		if (i < k->nin && part[i].ptr == copy) move(w, v, c, n, part[i].ptr, false);
	}
	wide.in = part;
	wide.out = part + k->nin;
	wide.scratch = memory;
	enum sl_status s = w->kernel(&wide);
	for (int i = 0; i < k->nin + k->nout && s == SL_OK; i++) {
		const struct slp_view *v = operand(k, i);
		bool written = i >= k->nin || k->op->mutates & SLP_IN(i);
		if (written && (is_image(v) || v->type.dtype != SL_FLOAT32)) move(w, v, c, n, part[i].ptr, true);
	}
	return s;
}

/* Bytes of the copies, and of the kernel's scratch memory. */
static size_t memory_of(const struct work *w)
{
	struct slp_norm_size z = w->size;
	struct slp_type x = {SL_FLOAT32, w->nc16 ? SL_SHAPE(z.n * z.s, w->group) : SL_SHAPE(z.n, w->group, z.s)};
	struct slp_infer call = {.op = w->k->op, .attrs = (void *)w->k->attrs, .nin = 1, .in = &x};
	return MOST_OPERANDS * ((size_t)w->group * sizeof(float) + 64) + 4 * w->each + slp_norm_scratch(&call);
}

static void groups(void *arg, int64_t begin, int64_t end)
{
	struct work *w = arg;
	char *memory = slp_workspace(SLP_WORK_THREAD, memory_of(w));
	for (int64_t g = begin; g < end; g++) {
		int64_t c = g * w->group, n = w->size.c - c < w->group ? w->size.c - c : w->group;
		enum sl_status s = memory ? some_channels(w, c, n, memory) : SL_ENOMEM;
		if (s != SL_OK) w->status = s;
	}
}

static enum sl_status by_channels(const struct slp_kernel *k, slp_kernel_fn *kernel)
{
	struct slp_norm_size z = slp_norm_size_of(k->in[0].type.shape, k->op, k->attrs);
	int64_t channel = z.n * z.s > 0 ? z.n * z.s : 1, group = channel < GROUP ? GROUP / channel : 1;
	if (group > z.c && z.c) group = z.c;
	bool nc16 = z.layout == SLP_LAYOUT_NC16;
	if (nc16) group = SLP_NC16_CHANNELS;
	size_t each = ((size_t)(group * z.n * z.s) * sizeof(float) + 63) & ~(size_t)63;
	struct work w = {.k = k, .kernel = kernel, .size = z, .nc16 = nc16, .group = group, .each = each};
	slp_parallel_for((z.c + group - 1) / group, 1 + SLP_GRAIN / (group * channel), groups, &w);
	return w.status == SL_OK ? SL_OK : slp_kernel_fail(k, w.status, "no memory for channels in float32");
}

enum sl_status slp_cpu_batch_norm_half(const struct slp_kernel *k)
{
	return by_channels(k, slp_cpu_batch_norm);
}

enum sl_status slp_cpu_batch_norm_infer_half(const struct slp_kernel *k)
{
	return by_channels(k, slp_cpu_batch_norm_infer);
}

enum sl_status slp_cpu_batch_norm_grad_half(const struct slp_kernel *k)
{
	return by_channels(k, slp_cpu_batch_norm_grad);
}
