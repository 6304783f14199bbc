/* batch_images, batch_labels: samples of a data set in a given order, as float32 and int32. */
#include "batch.h"
#include "op_inner.h"
#include "op_list/batch.h"

static const struct slp_attr images_attr_table[] = {
        SLP_ATTR_VALUE(struct slp_batch_attrs, begin, SLP_INT64, 1, "where the batch begins in the order"),
        SLP_ATTR(struct slp_batch_attrs, count, SLP_INT64, 1, "samples of the batch"),
        SLP_ATTR_VALUE(struct slp_batch_attrs, scale, SLP_DOUBLE, 1, "factor of the pixels"),
        {0},
};

static const struct slp_attr labels_attr_table[] = {
        SLP_ATTR_VALUE(struct slp_batch_attrs, begin, SLP_INT64, 1, "where the batch begins in the order"),
        SLP_ATTR(struct slp_batch_attrs, count, SLP_INT64, 1, "samples of the batch"),
        {0},
};

static enum sl_status infer(struct slp_infer *c, enum sl_dtype dtype)
{
	const struct slp_batch_attrs *a = c->attrs;
	sl_shape x = c->in[0].shape, order = c->in[1].shape;
	if (c->in[0].dtype != SL_UINT8 || c->in[1].dtype != SL_INT32)
		return slp_reject(c, SL_EDTYPE, "uint8 samples and an int32 order needed");
	if (x.ndim < 1 || order.ndim != 1)
		return slp_reject(c, SL_ESHAPE, "samples along a first axis and an order with a single axis needed");
	if (a->begin < 0 || a->count < 0 || a->count > order.dim[0] || a->begin > order.dim[0] - a->count)
		return slp_reject(c, SL_EINVAL, "%lld samples from %lld on are not within the order of %lld",
		                  (long long)a->count, (long long)a->begin, (long long)order.dim[0]);
	x.dim[0] = a->count;
	c->out[0] = (struct slp_type){dtype, x};
	return SL_OK;
}

static enum sl_status infer_images(struct slp_infer *c)
{
	return infer(c, SL_FLOAT32);
}

static enum sl_status infer_labels(struct slp_infer *c)
{
	return infer(c, SL_INT32);
}

/* Only the batch's part of the data set is read. */
static double bytes(const struct slp_infer *c)
{
	return (double)sl_shape_size(c->out[0].shape) * (1 + (double)sl_dtype_size(c->out[0].dtype));
}

struct job {
	const uint8_t *x;
	const int32_t *order;
	void *out;
	int64_t rows, width, count; /* of the data set; elements of a sample; samples of the batch */
	float scale;
};

static struct job job_of(const struct slp_kernel *k)
{
	const struct slp_batch_attrs *a = k->attrs;
	struct job j = {.x = k->in[0].ptr,
	                .order = (const int32_t *)k->in[1].ptr + a->begin,
	                .out = k->out[0].ptr,
	                .rows = k->in[0].type.shape.dim[0],
	                .width = 1,
	                .count = a->count,
	                .scale = (float)a->scale};
	for (int i = 1; i < k->in[0].type.shape.ndim; i++) j.width *= k->in[0].type.shape.dim[i];
	return j;
}

static enum sl_status check_order(const struct slp_kernel *k, const struct job *j)
{
	for (int64_t i = 0; i < j->count; i++)
		if (j->order[i] < 0 || j->order[i] >= j->rows)
			return slp_kernel_fail(k, SL_EINVAL, "sample %d at position %lld is outside the %lld samples",
			                       j->order[i], (long long)i, (long long)j->rows);
	return SL_OK;
}

static enum sl_status ref(const struct slp_kernel *k, double scale)
{
	struct job j = job_of(k);
	enum sl_status status = check_order(k, &j);
	if (status) return status;
	for (int64_t i = 0; i < j.count * j.width; i++)
		slp_set(&k->out[0], i, slp_get(&k->in[0], j.order[i / j.width] * j.width + i % j.width) * scale);
	return SL_OK;
}

static enum sl_status ref_images(const struct slp_kernel *k)
{
	return ref(k, ((const struct slp_batch_attrs *)k->attrs)->scale);
}

static enum sl_status ref_labels(const struct slp_kernel *k)
{
	return ref(k, 1);
}

static SLP_CLONES void scale_row(float *restrict out, const uint8_t *restrict x, int64_t n, float scale)
{
	for (int64_t i = 0; i < n; i++) out[i] = (float)x[i] * scale;
}

static void images_range(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	for (int64_t i = begin; i < end; i++)
		scale_row((float *)j->out + i * j->width, j->x + j->order[i] * j->width, j->width, j->scale);
}

static void labels_range(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	int32_t *out = j->out;
	for (int64_t i = begin; i < end; i++)
		for (int64_t e = 0; e < j->width; e++) out[i * j->width + e] = j->x[j->order[i] * j->width + e];
}

static enum sl_status run(const struct slp_kernel *k, void (*range)(void *arg, int64_t begin, int64_t end))
{
	struct job j = job_of(k);
	enum sl_status status = check_order(k, &j);
	if (status || slp_size(&k->out[0]) == 0) return status;
	slp_parallel_for(j.count, j.width < SLP_GRAIN ? SLP_GRAIN / j.width : 1, range, &j);
	return SL_OK;
}

static enum sl_status cpu_images(const struct slp_kernel *k)
{
	return run(k, images_range);
}

static enum sl_status cpu_labels(const struct slp_kernel *k)
{
	return run(k, labels_range);
}

static sl_tensor *call(const char *at, const struct sl_op *op, struct slp_batch_attrs attrs, sl_tensor *x,
                       sl_tensor *order)
{
	return slp_apply1(at, op, &attrs, 2, (sl_tensor *[]){x, order});
}

sl_tensor *slp_batch_images(const char *at, sl_tensor *images, sl_tensor *order, int64_t begin, int64_t count,
                            double scale)
{
	return call(at, &slp_op_batch_images, (struct slp_batch_attrs){begin, count, scale}, images, order);
}

sl_tensor *slp_batch_labels(const char *at, sl_tensor *labels, sl_tensor *order, int64_t begin, int64_t count)
{
	return call(at, &slp_op_batch_labels, (struct slp_batch_attrs){begin, count, 1}, labels, order);
}

const struct sl_op slp_op_batch_images = {
        .name = "batch_images",
        .doc = "Images of a data set in a given order, as float32.",
        .args = "images order",
        SLP_NIN(2),
        .nout = 1,
        .attr_table = images_attr_table,
        .attrs_size = sizeof(struct slp_batch_attrs),
        .rows = SLP_ROWS(SLP_ROW(SLP_DTYPE(SL_UINT8) | SLP_F32, cpu_images, slp_cuda_batch_images)),
        .infer = infer_images,
        .flops = slp_flops_elementwise,
        .bytes = bytes,
        .ref = ref_images,
};

const struct sl_op slp_op_batch_labels = {
        .name = "batch_labels",
        .doc = "Labels of a data set in a given order, as int32.",
        .args = "labels order",
        SLP_NIN(2),
        .nout = 1,
        .attr_table = labels_attr_table,
        .attrs_size = sizeof(struct slp_batch_attrs),
        .rows = SLP_ROWS(SLP_ROW(SLP_DTYPE(SL_UINT8), cpu_labels, slp_cuda_batch_labels)),
        .infer = infer_labels,
        .bytes = bytes,
        .ref = ref_labels,
};
