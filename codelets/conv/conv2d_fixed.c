/* Convolutions by oneDNN with the same bits whatever the number of threads (SL_FIXED_SUMS).
 *
 * For gradients of weights oneDNN divides the images among its threads, and adds their sums. Here each thread computes
 * parts of the images, whose number depends on the sizes alone, and the parts' sums are added in a fixed order.  The
 * other passes sum over no images; but where oneDNN computes them as products of matrices (groups of few channels), the
 * order of the products' sums depends on the threads: these are computed in parts, too. */
#include "common/workspace.h"
#include "conv2d_kernels.h"
#include "fixed.h"
#include "op.h"

struct job {
	struct slp_kernel alone; /* the kernel, on one thread */
	const struct slp_conv_args *a;
	float *sums; /* of each part: weights, then biases; NULL: of another pass */
	int64_t parts, weights, each;
	struct slp_first_failure failure;
};

static int64_t parts_of(int64_t images, int64_t weights)
{
	enum { LEAST = 8, MOST = 32, ELEMENTS = 16 << 20 };
	int64_t parts = ELEMENTS / (weights + 1);
	parts = parts < LEAST ? LEAST : parts > MOST ? MOST : parts;
	return parts < images ? parts : images;
}

static void run_part(struct job *j, int64_t p)
{
	struct slp_conv_args part = *j->a;
	const struct slp_conv *c = &j->a->c;
	int64_t first = p * c->n / j->parts, end = (p + 1) * c->n / j->parts, size = j->a->half ? 2 : 4;
	part.c.n = end - first;
	part.x = (float *)((char *)j->a->x + size * first * c->ic * c->ih * c->iw);
	part.y = (float *)((char *)j->a->y + size * first * c->oc * c->oh * c->ow);
	if (j->sums) part.w = j->sums + p * j->each;
	if (j->sums && part.b) part.b = part.w + j->weights;
	slp_note_failure(&j->failure, slp_conv_onednn_alone(&j->alone, &part), NULL);
}

static void run_parts(void *arg, int64_t begin, int64_t end)
{
	for (int64_t p = begin; p < end; p++) run_part(arg, p);
}

static void add(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	for (int64_t i = begin; i < end; i++) {
		float sum = 0;
		for (int64_t p = 0; p < j->parts; p++) sum += j->sums[p * j->each + i];
		if (i < j->weights) j->a->w[i] = sum;
		else j->a->b[i - j->weights] = sum;
	}
}

static enum sl_status status_of(const struct slp_kernel *k, struct job *j)
{
	enum sl_status s = j->failure.status;
	return s == SL_OK || s == SL_EUNSUPPORTED ? s : slp_noted_failure(k, &j->failure);
}

enum sl_status slp_conv_fixed_images(const struct slp_kernel *k, const struct slp_conv_args *a)
{
	struct job j = {.alone = *k, .a = a, .parts = parts_of(a->c.n, 0)};
	j.alone.threads = 1;
	slp_parallel_for(j.parts, 1, run_parts, &j);
	return status_of(k, &j);
}

enum sl_status slp_conv_fixed_weights(const struct slp_kernel *k, const struct slp_conv_args *a)
{
	const struct slp_conv *c = &a->c;
	struct job j = {.alone = *k, .a = a, .weights = c->oc * (c->ic / c->groups) * c->kh * c->kw};
	int64_t used = j.weights + (a->b ? c->oc : 0);
	j.alone.threads = 1;
	j.each = (used + 15) / 16 * 16;
	j.parts = parts_of(c->n, j.weights);
	j.sums = slp_workspace(SLP_WORK_FIXED, sizeof *j.sums * (size_t)(j.parts * j.each));
	if (!j.sums) return slp_kernel_fail(k, SL_ENOMEM, "no memory for the sums of parts");
	slp_parallel_for(j.parts, 1, run_parts, &j);
	enum sl_status s = status_of(k, &j);
	if (s != SL_OK) return s;
	slp_parallel_for(used, 1 + SLP_GRAIN / j.parts, add, &j);
	return SL_OK;
}
