/* Quantising ONNX models: batch normalisations become part of the convolutions before them, whose weights are scaled by
 * channels: w' = w · g / sqrt(v + eps), b' = (b - m) · g / sqrt(v + eps) + b_norm. */
#include <math.h>
#include <stdlib.h>

#include "alloc.h"
#include "onnx/quantize/quantize.h"

/* Numbers of the convolution (w, b) and the normalisation (g, b, m, v). */
struct fold {
	struct slp_onnx_data w, b, norm[4];
	bool has_bias;
	double eps;
};

static float number(const struct slp_onnx_data *d, int64_t i)
{
	float v;
	memcpy(&v, (const char *)d->data + (size_t)i * sizeof v, sizeof v);
	return v;
}

static void release(struct fold *f)
{
	free(f->w.owned);
	free(f->b.owned);
	for (int i = 0; i < 4; i++) free(f->norm[i].owned);
}

static bool read_fold(const struct slp_quantizing *q, const SlpOnnx__NodeProto *conv, const SlpOnnx__NodeProto *norm,
                      struct fold *f)
{
	*f = (struct fold){.has_bias = conv->n_input > 2 && conv->input[2][0], .eps = 1e-5};
	const SlpOnnx__AttributeProto *eps = slp_quantize_attribute(norm, "epsilon");
	if (eps) f->eps = eps->f;
	bool ok = norm->n_input == 5 && slp_quantize_floats(q, conv->input[1], &f->w) &&
	          (!f->has_bias || slp_quantize_floats(q, conv->input[2], &f->b));
	int64_t n = ok && f->w.shape.ndim ? f->w.shape.dim[0] : -1;
	for (int i = 0; ok && i < 4; i++)
		ok = slp_quantize_floats(q, norm->input[1 + i], &f->norm[i]) && f->norm[i].shape.ndim == 1 &&
		     f->norm[i].shape.dim[0] == n;
	return ok && (!f->has_bias || f->b.shape.dim[0] == n);
}

/* Gives the convolution new weights, under new names. */
static bool put(struct slp_quantizing *q, SlpOnnx__NodeProto *conv, const char *name, const struct fold *f)
{
	int64_t n = f->w.shape.dim[0], each = n ? sl_shape_size(f->w.shape) / n : 0;
	float *w = slp_calloc((size_t)(n * each) + 1, sizeof *w), *b = slp_calloc((size_t)n + 1, sizeof *b);
	char *names[] = {slp_format("%s_w", name), slp_format("%s_b", name)};
	bool ok = w && b && names[0] && names[1];
	for (int64_t i = 0; ok && i < n; i++) {
		double k = number(&f->norm[0], i) / sqrt(number(&f->norm[3], i) + f->eps);
		for (int64_t j = 0; j < each; j++) w[i * each + j] = (float)(number(&f->w, i * each + j) * k);
		double bias = f->has_bias ? number(&f->b, i) : 0;
		b[i] = (float)((bias - number(&f->norm[2], i)) * k + number(&f->norm[1], i));
	}
	sl_shape s = SL_SHAPE(n);
	const char *in[] = {conv->input[0], names[0], names[1]};
	ok = ok && slp_quantize_add_tensor(q, names[0], 1, &f->w.shape, w, (size_t)(n * each) * sizeof *w) &&
	     slp_quantize_add_tensor(q, names[1], 1, &s, b, (size_t)n * sizeof *b);
	SlpOnnx__NodeProto *like = ok ? slp_quantize_node("Conv", in, 3, name) : NULL;
	if (like) { /* its operands, and the other's attributes */
		char **list = conv->input;
		size_t count = conv->n_input;
		conv->input = like->input, conv->n_input = 3;
		like->input = list, like->n_input = count;
		slp_onnx__node_proto__free_unpacked(like, &slp_onnx_allocator);
	}
	free(w);
	free(b);
	free(names[0]);
	free(names[1]);
	return like != NULL;
}

bool slp_quantize_fold(struct slp_quantizing *q)
{
	for (size_t i = 0; i < q->g->n_node; i++) {
		SlpOnnx__NodeProto *conv = q->g->node[i], *norm;
		struct fold f;
		if (!slp_quantize_is(conv, "Conv") || conv->n_input < 2 || conv->n_output != 1) continue;
		if (slp_quantize_uses(q, conv->output[0], &norm) != 1 || !slp_quantize_is(norm, "BatchNormalization"))
			continue;
		bool fits = read_fold(q, conv, norm, &f);
		bool ok = !fits ||
		          (put(q, conv, norm->output[0], &f) && slp_quantize_rename(&conv->output[0], norm->output[0]));
		release(&f);
		if (!ok || q->f->failed) return slp_file_fail(q->f, SL_ENOMEM, "no memory");
		if (fits) slp_quantize_drop(q, norm);
	}
	return true;
}
