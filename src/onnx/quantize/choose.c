/* Quantising ONNX models: the values that become bytes.  These are the operands of convolutions and products of
 * matrices, the results of convolutions, and, between these, sums, products, poolings, and operators that only move
 * elements.  Everything else stays float. */
#include <stdlib.h>

#include "alloc.h"
#include "onnx/quantize/quantize.h"

static bool is_one_of(const SlpOnnx__NodeProto *n, const char *const *list)
{
	while (*list && !slp_quantize_is(n, *list)) list++;
	return *list != NULL;
}

static bool is_move(const SlpOnnx__NodeProto *n)
{
	static const char *const names[] = {"MaxPool", "Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", NULL};
	return is_one_of(n, names);
}

static bool is_pool(const SlpOnnx__NodeProto *n)
{
	static const char *const names[] = {"AveragePool", "GlobalAveragePool", NULL};
	return is_one_of(n, names);
}

static int find(const struct slp_quantizing *q, const char *name)
{
	int i = 0;
	while (i < q->nvalues && q->values[i].name && strcmp(q->values[i].name, name)) i++;
	return i < q->nvalues ? i : -1;
}

/* A function that limits a convolution's or a sum's result: quantising it limits as well. */
static const char *before_limit(const struct slp_quantizing *q, const char *name)
{
	static const char *const limits[] = {"Relu", NULL}, *const kinds[] = {"Conv", "Add", NULL};
	SlpOnnx__NodeProto *n = slp_quantize_producer(q, name), *user;
	if (!n || !is_one_of(n, limits) || slp_quantize_uses(q, n->input[0], &user) != 1) return name;
	return is_one_of(slp_quantize_producer(q, n->input[0]), kinds) ? n->input[0] : name;
}

static bool add_value(struct slp_quantizing *q, const char *name, int like)
{
	if (!name[0] || find(q, name) >= 0 || slp_quantize_initializer(q, name)) return true;
	if (q->nvalues == q->room) {
		int room = q->room ? 2 * q->room : 64;
		struct slp_quantized *more = slp_realloc(q->values, (size_t)room * sizeof *more);
		if (!more) return slp_file_fail(q->f, SL_ENOMEM, "no memory");
		q->values = more, q->room = room;
	}
	struct slp_quantized *v = &q->values[q->nvalues++];
	*v = (struct slp_quantized){.name = slp_strdup(name), .from = slp_strdup(before_limit(q, name)), .like = like};
	return (v->name && v->from) || slp_file_fail(q->f, SL_ENOMEM, "no memory");
}

/* Whether the values of a product are float32: those of a constant of another type are none. */
static bool is_product(const struct slp_quantizing *q, const SlpOnnx__NodeProto *n)
{
	static const char *const names[] = {"Conv", "MatMul", "Gemm", NULL};
	if (!is_one_of(n, names) || n->n_input < 2 || n->n_output != 1) return false;
	const SlpOnnx__TensorProto *w = slp_quantize_initializer(q, n->input[1]);
	if (slp_quantize_is(n, "Conv")) return w && w->data_type == 1;
	if (slp_quantize_is(n, "Gemm")) return w && w->data_type == 1 && !slp_quantize_initializer(q, n->input[0]);
	return !slp_quantize_initializer(q, n->input[0]) && (!w || (w->data_type == 1 && w->n_dims == 2));
}

/* The value that a convolution's result has become behind a Relu that alone takes it. */
static const char *result_of(const struct slp_quantizing *q, const SlpOnnx__NodeProto *n)
{
	SlpOnnx__NodeProto *user;
	bool limited = slp_quantize_uses(q, n->output[0], &user) == 1 && slp_quantize_is(user, "Relu");
	return limited ? user->output[0] : n->output[0];
}

static bool add_products(struct slp_quantizing *q)
{
	bool ok = true;
	for (size_t i = 0; ok && i < q->g->n_node; i++) {
		const SlpOnnx__NodeProto *n = q->g->node[i];
		if (!is_product(q, n)) continue;
		ok = add_value(q, n->input[0], -1) && add_value(q, n->input[1], -1);
		if (ok && slp_quantize_is(n, "Conv")) ok = add_value(q, result_of(q, n), -1);
	}
	return ok;
}

/* Sums and poolings of values that are quantised, moves of them. */
static bool add_others(struct slp_quantizing *q)
{
	bool ok = true;
	for (size_t i = 0; ok && i < q->g->n_node; i++) {
		const SlpOnnx__NodeProto *n = q->g->node[i];
		if (!n->n_input || n->n_output != 1 || find(q, n->input[0]) < 0) continue;
		bool both = n->n_input == 2 && find(q, n->input[1]) >= 0;
		if (slp_quantize_is(n, "Add") && both) ok = add_value(q, result_of(q, n), -1);
		else if (is_pool(n)) ok = add_value(q, n->output[0], -1);
		else if (is_move(n)) ok = add_value(q, n->output[0], find(q, n->input[0]));
	}
	return ok;
}

bool slp_quantize_choose(struct slp_quantizing *q)
{
	if (!add_products(q)) return false;
	for (int before = -1; before != q->nvalues;) {
		before = q->nvalues;
		if (!add_others(q)) return false;
	}
	/* What was chosen for a product, though a move gives it, has the range of what is moved. */
	for (int i = 0; i < q->nvalues; i++) {
		const SlpOnnx__NodeProto *n = slp_quantize_producer(q, q->values[i].name);
		int like = n && is_move(n) && n->n_input ? find(q, n->input[0]) : -1;
		if (like >= 0 && like != i) q->values[i].like = like;
	}
	return q->nvalues ||
	       slp_file_fail(q->f, SL_EUNSUPPORTED, "has no convolution or product of matrices to quantise");
}
