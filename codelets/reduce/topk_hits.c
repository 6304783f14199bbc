/* topk_hits: whether the label's score is among the k largest of its sample. */
#include "op_list/reduce.h"
#include "starling/primitives.h"
#include "topk_hits.h"

#include "common/labels.h"
#include "common/vmath.h"

static const struct slp_attr attr_table[] = {
        SLP_ATTR_VALUE(struct slp_topk_attrs, k, SLP_INT, 1, "how many of the largest scores count"),
        {0},
};

static enum sl_status infer(struct slp_infer *c)
{
	const struct slp_topk_attrs *a = c->attrs;
	if (!slp_is_float(c->in[0].dtype))
		return slp_reject(c, SL_EDTYPE, "float32 or float64 needed; sl_cast converts");
	if (a->k < 1) return slp_reject(c, SL_EINVAL, "k is %d, at least 1 needed", a->k);
	enum sl_status status = slp_check_labelled(c, &c->in[0], &c->in[1]);
	if (!status) c->out[0] = (struct slp_type){c->in[0].dtype, SL_SHAPE(c->in[0].shape.dim[0])};
	return status;
}

static double flops(const struct slp_infer *c)
{
	return (double)sl_shape_size(c->in[0].shape);
}

/* NaN counts as larger than all, and never hits. */
static enum sl_status ref(const struct slp_kernel *k)
{
	const struct slp_topk_attrs *a = k->attrs;
	const struct slp_view *x = &k->in[0];
	int64_t rows = x->type.shape.dim[0], n = x->type.shape.dim[1];
	enum sl_status status = slp_check_labels(k, &k->in[1], n);
	for (int64_t r = 0; !status && r < rows; r++) {
		double score = slp_get(x, r * n + slp_label(&k->in[1], r));
		int64_t larger = 0;
		for (int64_t i = r * n; i < (r + 1) * n; i++) larger += !(slp_get(x, i) <= score);
		slp_set(&k->out[0], r, !isnan(score) && larger < a->k);
	}
	return status;
}

struct job {
	int64_t n;
	int k;
	const float *x;
	const struct slp_view *labels;
	float *hit;
};

static SLP_CLONES void hit_rows(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	for (int64_t r = begin; r < end; r++) {
		const float *x = j->x + r * j->n;
		float score = x[slp_label(j->labels, r)];
		int64_t larger = 0;
		for (int64_t at = 0; at < j->n; at += INT32_MAX) {
			int count = 0; /* as wide as a float: vectors are full */
			int64_t to = j->n - at < INT32_MAX ? j->n : at + INT32_MAX;
			for (int64_t i = at; i < to; i++) count += !(x[i] <= score);
			larger += count;
		}
		j->hit[r] = score == score && larger < j->k;
	}
}

static enum sl_status cpu(const struct slp_kernel *k)
{
	const struct slp_topk_attrs *a = k->attrs;
	sl_shape shape = k->in[0].type.shape;
	struct job j = {shape.dim[1], a->k, k->in[0].ptr, &k->in[1], k->out[0].ptr};
	enum sl_status status = slp_check_labels(k, j.labels, j.n);
	if (!status) slp_parallel_for(shape.dim[0], SLP_GRAIN / (j.n + 1) + 1, hit_rows, &j);
	return status;
}

const struct sl_op slp_op_topk_hits = {
        .name = "topk_hits",
        .doc = "1 where the label's score is among the k largest of its sample, else 0",
        .args = "scores labels",
        SLP_NIN(2),
        .nout = 1,
        .attr_table = attr_table,
        .attrs_size = sizeof(struct slp_topk_attrs),
        .rows = SLP_FLOAT_ROWS_OF(ref, cpu, slp_cuda_topk_hits),
        .infer = infer,
        .flops = flops,
        .grad = slp_constant,
        .ref = ref,
};

/* For each sample 1 if the score of its label is among its k largest, else 0: the mean is the top-k accuracy.  With
 * ties, a label is a hit if fewer than k scores are larger.  A NaN counts as larger than all numbers, but is never a
 * hit.  scores (n, classes), float; labels (n), int32, int64 or uint8, from 0; the result (n), of the dtype of scores.
 * A constant for a backward pass.  SL_EINVAL: k below 1; SL_ESHAPE, SL_EDTYPE: arguments do not match; also SL_EINVAL
 * for a label that is not a class, as in sl_softmax_cross_entropy; on a GPU the result of such a sample is NaN instead.
 *
 *	double top5 = sl_item(sl_mean(sl_topk_hits(scores, labels, 5))); */
sl_tensor *sl_topk_hits_at(const char *at, sl_tensor *scores, sl_tensor *labels, int k)
{
	SLP_FUNCTION("sl_topk_hits", at);
	struct slp_topk_attrs attrs = {k};
	return SLP_RETURN(
	        slp_apply1(at, &slp_op_topk_hits, &attrs, 2, (sl_tensor *[]){scores, slp_as_index(at, labels)}));
}
