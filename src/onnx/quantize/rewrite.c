/* Quantising ONNX models: QuantizeLinear and DequantizeLinear around the chosen values, weights in int8 with a scale for
 * each channel, biases in int32. */
#include <math.h>
#include <stdlib.h>

#include "alloc.h"
#include "onnx/quantize/quantize.h"

enum { FLOAT = 1, UINT8 = 2, INT8 = 3, INT32 = 6 };

struct node_list {
	SlpOnnx__NodeProto **node;
	size_t count, room;
	bool failed;
};

static bool make_room(const struct slp_quantizing *q, struct node_list *l)
{
	l->room = 3 * q->g->n_node + 2 * (size_t)q->nvalues + 1; /* with weights and a bias; each value has two */
	l->node = slp_calloc(l->room, sizeof(SlpOnnx__NodeProto *));
	return l->node != NULL;
}

/* Takes the node over. */
static void append(struct node_list *l, SlpOnnx__NodeProto *n)
{
	if (n) l->node[l->count++] = n;
	else l->failed = true;
}

static const struct slp_quantized *value_named(const struct slp_quantizing *q, const char *name)
{
	for (int i = 0; i < q->nvalues; i++)
		if (!strcmp(q->values[i].name, name)) return &q->values[i];
	return NULL;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* The nodes that quantise `from`, and give it as `to` again. */
static void add_pair(struct slp_quantizing *q, struct node_list *l, const struct slp_quantized *v, const char *from,
                     const char *to)
{
	uint8_t zero = (uint8_t)v->zero;
	char *names[] = {slp_format("%s_scale", v->name), slp_format("%s_zero", v->name),
	                 slp_format("%s_bytes", v->name)};
	bool ok = names[0] && names[1] && names[2];
	ok = ok && slp_quantize_add_tensor(q, names[0], FLOAT, &SL_SCALAR, &v->scale, sizeof v->scale) &&
	     slp_quantize_add_tensor(q, names[1], UINT8, &SL_SCALAR, &zero, sizeof zero);
	if (ok) {
		append(l, slp_quantize_node("QuantizeLinear", (const char *[]){from, names[0], names[1]}, 3, names[2]));
		append(l, slp_quantize_node("DequantizeLinear", (const char *[]){names[2], names[0], names[1]}, 3, to));
	}
	for (int i = 0; i < 3; i++) free(names[i]);
	if (!ok) l->failed = true;
}

/* Users of an input take what its bytes stand for. */
static void quantise_input(struct slp_quantizing *q, struct node_list *l, const struct slp_quantized *v)
{
	char *to = slp_format("%s_real", v->name);
	if (!to) l->failed = true;
	for (size_t i = 0; to && i < q->g->n_node; i++)
		for (size_t k = 0; k < q->g->node[i]->n_input; k++)
			if (!strcmp(q->g->node[i]->input[k], v->name) &&
			    !slp_quantize_rename(&q->g->node[i]->input[k], to))
				l->failed = true;
	if (to) add_pair(q, l, v, v->name, to);
	free(to);
}

/* The result of a node keeps its name behind its bytes. */
static void quantise_result(struct slp_quantizing *q, struct node_list *l, SlpOnnx__NodeProto *n, size_t k)
{
	for (int i = 0; i < q->nvalues; i++) {
		const struct slp_quantized *v = &q->values[i];
		if (strcmp(v->from, n->output[k])) continue;
		char *raw = slp_format("%s_real", v->from), *to = slp_strdup(v->name);
		if (raw && to && slp_quantize_rename(&n->output[k], raw)) add_pair(q, l, v, raw, to);
		else l->failed = true;
		free(raw);
		free(to);
		return;
	}
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

/* A matrix, or a kernel, by the channels of an axis. */
struct channels {
	struct slp_onnx_data d;
	int axis;
	int64_t n, outer, inner;
	float *scale;
};

static int64_t place(const struct channels *w, int64_t channel, int64_t i)
{
	return (i / w->inner * w->n + channel) * w->inner + i % w->inner;
}

static bool read_channels(struct slp_quantizing *q, const SlpOnnx__NodeProto *n, struct channels *w)
{
	const SlpOnnx__AttributeProto *tb = slp_quantize_attribute(n, "transB");
	*w = (struct channels){.outer = 1, .inner = 1};
	if (!slp_quantize_floats(q, n->input[1], &w->d)) return false;
	w->axis = slp_quantize_is(n, "Conv") || (slp_quantize_is(n, "Gemm") && tb && tb->i) ? 0 : 1;
	w->n = w->d.shape.dim[w->axis];
	for (int i = 0; i < w->d.shape.ndim; i++)
		if (i != w->axis) *(i < w->axis ? &w->outer : &w->inner) *= w->d.shape.dim[i];
	w->scale = slp_calloc((size_t)w->n + 1, sizeof *w->scale);
	return w->scale != NULL;
}

/* Symmetric: from -127 to 127, 0 is 0. */
static void set_scales(const struct slp_quantizing *q, struct channels *w)
{
	const float *x = w->d.data;
	float most = 0;
	for (int64_t c = 0; c < w->n; c++)
		for (int64_t i = 0; i < w->outer * w->inner; i++) {
			float v = fabsf(x[place(w, c, i)]);
			w->scale[c] = fmaxf(w->scale[c], v);
			most = fmaxf(most, v);
		}
	for (int64_t c = 0; c < w->n; c++) {
		w->scale[c] = (q->opts->per_tensor ? most : w->scale[c]) / 127;
		if (!(w->scale[c] > 0)) w->scale[c] = 1;
	}
}

static int8_t *bytes_of(const struct channels *w)
{
	const float *x = w->d.data;
	int8_t *y = slp_calloc((size_t)(w->n * w->outer * w->inner) + 1, 1);
	for (int64_t c = 0; y && c < w->n; c++)
		for (int64_t i = 0; i < w->outer * w->inner; i++) {
			int64_t at = place(w, c, i);
			y[at] = (int8_t)lrintf(fminf(127, fmaxf(-127, x[at] / w->scale[c])));
		}
	return y;
}

/* A DequantizeLinear of constants, whose result the node takes as input i. */
static bool take(struct slp_quantizing *q, struct node_list *l, SlpOnnx__NodeProto *n, size_t i, const char *name,
                 const struct channels *w, bool bias, const void *data, const float *scale)
{
	size_t zeros = (size_t)w->n;
	sl_shape all = bias ? SL_SHAPE(w->n) : w->d.shape, each = SL_SHAPE(w->n);
	char *names[] = {slp_format("%s_bytes", name), slp_format("%s_scale", name), slp_format("%s_zero", name)};
	int8_t *zero = slp_calloc(zeros + 1, 1);
	size_t bytes = (size_t)sl_shape_size(all) * (bias ? sizeof(int32_t) : 1);
	bool ok = names[0] && names[1] && names[2] && zero;
	ok = ok && slp_quantize_add_tensor(q, names[0], bias ? INT32 : INT8, &all, data, bytes) &&
	     slp_quantize_add_tensor(q, names[1], FLOAT, &each, scale, zeros * sizeof *scale) &&
	     (bias || slp_quantize_add_tensor(q, names[2], INT8, &each, zero, zeros));
	SlpOnnx__NodeProto *d =
	        ok ? slp_quantize_node("DequantizeLinear", (const char *[]){names[0], names[1], names[2]}, bias ? 2 : 3,
	                               name)
	           : NULL;
	ok = d && slp_quantize_set_int(d, "axis", bias ? 0 : w->axis) && slp_quantize_rename(&n->input[i], name);
	if (d) append(l, d);
	for (int k = 0; k < 3; k++) free(names[k]);
	free(zero);
	return ok;
}

/* In steps of the product's sums; one that is no list of floats stays as it is. */
static bool quantise_bias(struct slp_quantizing *q, struct node_list *l, SlpOnnx__NodeProto *n, const char *name,
                          const struct channels *w)
{
	const struct slp_quantized *x = value_named(q, n->input[0]);
	struct slp_onnx_data d;
	if (!x) { /* an input, under its new name */
		size_t length = strlen(n->input[0]);
		for (int i = 0; i < q->nvalues && !x; i++)
			if (length > 5 && strlen(q->values[i].name) == length - 5 &&
			    !strncmp(q->values[i].name, n->input[0], length - 5))
				x = &q->values[i];
	}
	bool list = n->n_input > 2 && n->input[2][0] && x && slp_quantize_floats(q, n->input[2], &d);
	if (!list) return !q->f->failed;
	int32_t *bias = slp_calloc((size_t)w->n + 1, sizeof *bias);
	float *scale = slp_calloc((size_t)w->n + 1, sizeof *scale);
	char *to = slp_format("%s_bias", name);
	bool ok = bias && scale && to, fits = d.shape.ndim == 1 && d.shape.dim[0] == w->n;
	for (int64_t c = 0; ok && fits && c < w->n; c++) {
		scale[c] = x->scale * w->scale[c];
		double v = rint(((const float *)d.data)[c] / (double)scale[c]);
		bias[c] = (int32_t)fmin(INT32_MAX, fmax(-INT32_MAX, v));
	}
	ok = ok && (!fits || take(q, l, n, 2, to, w, true, bias, scale));
	free(bias);
	free(scale);
	free(to);
	free(d.owned);
	return ok;
}

static void quantise_weights(struct slp_quantizing *q, struct node_list *l, SlpOnnx__NodeProto *n)
{
	bool product = slp_quantize_is(n, "Conv") || slp_quantize_is(n, "MatMul") || slp_quantize_is(n, "Gemm");
	struct channels w;
	if (!product || n->n_input < 2 || n->n_output != 1 || !slp_quantize_initializer(q, n->input[1])) return;
	char *name = slp_format("%s_weights", n->output[0]);
	bool ok = name && read_channels(q, n, &w);
	if (ok) {
		set_scales(q, &w);
		int8_t *bytes = bytes_of(&w);
		ok = bytes && take(q, l, n, 1, name, &w, false, bytes, w.scale) &&
		     quantise_bias(q, l, n, n->output[0], &w);
		free(bytes);
		free(w.scale);
		free(w.d.owned);
	}
	free(name);
	if (!ok) l->failed = true;
}

/* ---- the graph --------------------------------------------------------------------------------------------------- */

/* A Relu whose result is quantised from the value before it is left out. */
static bool is_replaced(const struct slp_quantizing *q, const SlpOnnx__NodeProto *n)
{
	const struct slp_quantized *v = n->n_output == 1 ? value_named(q, n->output[0]) : NULL;
	return v && strcmp(v->from, v->name);
}

static bool has_graphs(const struct slp_quantizing *q)
{
	for (size_t i = 0; i < q->g->n_node; i++)
		for (size_t a = 0; a < q->g->node[i]->n_attribute; a++)
			if (q->g->node[i]->attribute[a]->has_g) return true;
	return false;
}

static void drop_input(struct slp_quantizing *q, const char *name)
{
	size_t kept = 0;
	for (size_t i = 0; i < q->g->n_input; i++) {
		SlpOnnx__ValueInfoProto *v = q->g->input[i];
		if (v->name && !strcmp(v->name, name))
			slp_onnx__value_info_proto__free_unpacked(v, &slp_onnx_allocator);
		else q->g->input[kept++] = v;
	}
	q->g->n_input = kept;
}

/* Weights that no node takes any more. */
static void drop_unused(struct slp_quantizing *q)
{
	SlpOnnx__NodeProto *user;
	size_t kept = 0;
	for (size_t i = 0; i < q->g->n_initializer; i++) {
		SlpOnnx__TensorProto *t = q->g->initializer[i];
		if (!t->name || slp_quantize_uses(q, t->name, &user)) {
			q->g->initializer[kept++] = t;
			continue;
		}
		drop_input(q, t->name);
		slp_onnx__tensor_proto__free_unpacked(t, &slp_onnx_allocator);
	}
	q->g->n_initializer = kept;
}

bool slp_quantize_rewrite(struct slp_quantizing *q)
{
	struct node_list l = {0};
	if (!make_room(q, &l)) return slp_file_fail(q->f, SL_ENOMEM, "no memory");
	for (int i = 0; i < q->nvalues; i++)
		if (!slp_quantize_producer(q, q->values[i].name)) quantise_input(q, &l, &q->values[i]);
	for (size_t i = 0; i < q->g->n_node; i++) {
		SlpOnnx__NodeProto *n = q->g->node[i];
		if (is_replaced(q, n)) continue;
		quantise_weights(q, &l, n);
		append(&l, n);
		size_t results = n->n_output;
		for (size_t k = 0; k < results; k++) quantise_result(q, &l, n, k);
	}
	for (size_t i = 0; i < q->g->n_node; i++)
		if (is_replaced(q, q->g->node[i]))
			slp_onnx__node_proto__free_unpacked(q->g->node[i], &slp_onnx_allocator);
	free(q->g->node);
	q->g->node = l.node, q->g->n_node = l.count;
	if (!l.failed && !has_graphs(q)) drop_unused(q);
	return !l.failed || slp_file_fail(q->f, SL_ENOMEM, "no memory");
}
