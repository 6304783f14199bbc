/* ONNX models: nodes of real numbers between DequantizeLinear and QuantizeLinear become onnxruntime's operators of
 * quantised ones: Conv becomes QLinearConv in the place of the node that quantises its result. */
#include <math.h>
#include <stdlib.h>

#include "onnx/model/model.h"
#include "onnx/model/tensors.h"
#include "op.h"

enum { MOST_INPUTS = 9, UINT8 = 2, INT8 = 3, INT32 = 6 };

struct joining {
	struct slp_file *f;
	struct slp_onnx_model *m;
	int *uses;  /* by names */
	int *first; /* by names: a node that takes it */
	int *next;  /* room for inputs */
};

static bool is_one_of(const char *name, const char *const *list)
{
	while (*list && strcmp(name, *list)) list++;
	return *list != NULL;
}

static bool is(const struct slp_onnx_node *n, const char *operator)
{
	const char *domain = n->proto->domain;
	return !n->as && !strcmp(n->proto->op_type, operator) &&
	       (!domain || !domain[0] || !strcmp(domain, "ai.onnx") || !strcmp(domain, "com.microsoft"));
}

static int64_t attribute(const struct slp_onnx_node *n, const char *name, int64_t otherwise)
{
	for (size_t i = 0; i < n->proto->n_attribute; i++) {
		const SlpOnnx__AttributeProto *a = n->proto->attribute[i];
		if (a->name && !strcmp(a->name, name)) return a->f != 0 ? (int64_t)(a->f == 1) : a->i;
	}
	return otherwise;
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

/* Elements of an initializer; 0: the name is none. */
static int64_t count_of(const struct joining *j, int name)
{
	const SlpOnnx__TensorProto *t = name >= 0 ? j->m->names[name].tensor : NULL;
	int64_t n = t ? 1 : 0;
	for (size_t i = 0; t && i < t->n_dims; i++) n = t->dims[i] > 0 && n < INT32_MAX ? n * t->dims[i] : 0;
	return n;
}

static int type_of(const struct joining *j, int name)
{
	return name >= 0 && j->m->names[name].tensor ? j->m->names[name].tensor->data_type : UINT8;
}

/* Numbers of a node that quantises, or back: bytes, one float32 scale of the file, or one for each index of this axis;
 * axis -1: one alone. */
static bool has_scale(const struct joining *j, const struct slp_onnx_node *n, int64_t axis)
{
	int zero = n->nin > 2 ? n->in[2] : -1, type = type_of(j, zero);
	int64_t count = n->nin > 1 ? count_of(j, n->in[1]) : 0;
	if (!count || j->m->names[n->in[1]].tensor->data_type != 1 || attribute(n, "block_size", 0)) return false;
	if ((zero >= 0 && count_of(j, zero) != count) || (type != UINT8 && type != INT8)) return false;
	return count == 1 || (axis >= 0 && attribute(n, "axis", 1) == axis);
}

/* The node that gives a value its real numbers; NULL: it is none of bytes. */
static const struct slp_onnx_node *dequantised(const struct joining *j, int name, int64_t axis)
{
	const struct slp_onnx_node *n =
	        name >= 0 && j->m->names[name].node >= 0 ? &j->m->nodes[j->m->names[name].node] : NULL;
	if (!n || !is(n, "DequantizeLinear") || !has_scale(j, n, axis)) return NULL;
	bool known = j->m->names[n->in[0]].tensor != NULL; /* the zero point says the type of others */
	return !known || type_of(j, n->in[0]) == UINT8 || type_of(j, n->in[0]) == INT8 ? n : NULL;
}

/* The node that alone takes a value, to quantise it; NULL: there is none. */
static struct slp_onnx_node *quantiser(const struct joining *j, int name)
{
	struct slp_onnx_node *n =
	        name >= 0 && j->uses[name] == 1 && j->first[name] >= 0 ? &j->m->nodes[j->first[name]] : NULL;
	if (!n || !is(n, "QuantizeLinear") || n->in[0] != name || attribute(n, "output_dtype", 0)) return NULL;
	return has_scale(j, n, -1) && n->graph == j->m->names[name].graph ? n : NULL;
}

/* Element i of an initializer of float32 numbers, or of its only number. */
static double number_at(const struct slp_onnx_data *d, int64_t i)
{
	float value;
	size_t place = d->bytes > sizeof value ? (size_t)i * sizeof value : 0;
	memcpy(&value, (const char *)d->data + place, sizeof value);
	return value;
}

/* Whether each number of `s` is that of `b` times the one of `a`, to rounding. */
static bool is_product(const struct joining *j, int s, int a, int b)
{
	struct slp_onnx_data d[3] = {0};
	int names[] = {s, a, b};
	int64_t n = 0;
	bool ok = true;
	for (int i = 0; ok && i < 3; i++) {
		const SlpOnnx__TensorProto *t = count_of(j, names[i]) ? j->m->names[names[i]].tensor : NULL;
		ok = t && t->data_type == 1 && slp_onnx_data_read(j->f, t, &d[i]);
		n = count_of(j, names[i]) > n ? count_of(j, names[i]) : n;
	}
	for (int i = 0; ok && i < 3; i++) ok = d[i].bytes == 4 || d[i].bytes == 4 * (uint64_t)n;
	for (int64_t i = 0; ok && i < n; i++) {
		double product = number_at(&d[1], i) * number_at(&d[2], i);
		ok = fabs(number_at(&d[0], i) - product) <= 1e-5 * fabs(product);
	}
	for (int i = 0; i < 3; i++) free(d[i].owned);
	return ok;
}

/* Whether an initializer, which may be absent, has zeros alone. */
static bool is_zero(const struct joining *j, int name)
{
	struct slp_onnx_data d = {0};
	if (name < 0) return true;
	bool ok = count_of(j, name) && slp_onnx_data_read(j->f, j->m->names[name].tensor, &d);
	for (uint64_t i = 0; ok && i < d.bytes; i++) ok = !((const char *)d.data)[i];
	free(d.owned);
	return ok;
}

/* The bias of a product: none, floats of the file, or int32 in steps of x times w; -2: another one. */
static int bias_of(const struct joining *j, int name, const struct slp_onnx_node *x, const struct slp_onnx_node *w)
{
	if (name < 0) return -1;
	if (count_of(j, name)) return name;
	const struct slp_onnx_node *n = j->m->names[name].node >= 0 ? &j->m->nodes[j->m->names[name].node] : NULL;
	if (!n || !is(n, "DequantizeLinear") || !count_of(j, n->in[0])) return -2;
	bool ok = type_of(j, n->in[0]) == INT32 && n->nin > 1 && is_product(j, n->in[1], x->in[1], w->in[1]) &&
	          is_zero(j, n->nin > 2 ? n->in[2] : -1);
	return ok ? n->in[0] : -2;
}

/* Both of the same numbers. */
static bool is_same(const struct joining *j, int a, int b)
{
	if (a == b) return true;
	if (count_of(j, a) != 1 || count_of(j, b) != 1) return false;
	const SlpOnnx__TensorProto *s = j->m->names[a].tensor, *t = j->m->names[b].tensor;
	return s->data_type == t->data_type && s->has_raw_data && t->has_raw_data &&
	       s->raw_data.len == t->raw_data.len && !memcmp(s->raw_data.data, t->raw_data.data, s->raw_data.len);
}

/* ---- joining ----------------------------------------------------------------------------------------------------- */

static void put(struct slp_onnx_node *n, const struct slp_onnx_node *operator, const char * as, int *in, int nin)
{
	n->proto = operator->proto;
	n->at = operator->at;
	n->as = as;
	n->in = in;
	n->nin = nin;
	while (n->nin && n->in[n->nin - 1] < 0) n->nin--;
}

static void add(int **in, int a, int b, int c)
{
	*(*in)++ = a, *(*in)++ = b, *(*in)++ = c;
}

static void add_operand(int **in, const struct slp_onnx_node *dequantiser)
{
	add(in, dequantiser->in[0], dequantiser->in[1], dequantiser->nin > 2 ? dequantiser->in[2] : -1);
}

static void add_result(int **in, const struct slp_onnx_node *q)
{
	*(*in)++ = q ? q->in[1] : -1;
	*(*in)++ = q && q->nin > 2 ? q->in[2] : -1;
}

static void join_conv(struct joining *j, const struct slp_onnx_node *n)
{
	const struct slp_onnx_node *x = dequantised(j, n->in[0], -1),
	                           *w = n->nin > 1 ? dequantised(j, n->in[1], 0) : NULL;
	struct slp_onnx_node *q = quantiser(j, n->out[0]);
	int bias = x && w && q ? bias_of(j, n->nin > 2 ? n->in[2] : -1, x, w) : -2, *in = j->next;
	if (bias == -2) return;
	add_operand(&j->next, x);
	add_operand(&j->next, w);
	add_result(&j->next, q);
	*j->next++ = bias;
	put(q, n, "QLinearConv", in, 9);
}

/* Products of matrices; those whose results stay real take the place of the node itself. */
static void join_product(struct joining *j, struct slp_onnx_node *n)
{
	bool gemm = is(n, "Gemm");
	int64_t columns = gemm && attribute(n, "transB", 0) ? 0 : 1;
	const struct slp_onnx_node *a = dequantised(j, n->in[0], -1),
	                           *b = n->nin > 1 ? dequantised(j, n->in[1], columns) : NULL;
	struct slp_onnx_node *q = quantiser(j, n->out[0]);
	int bias = a && b ? bias_of(j, n->nin > 2 ? n->in[2] : -1, a, b) : -2, *in = j->next;
	if (bias == -2) return;
	if (gemm && (attribute(n, "alpha", 1) != 1 || attribute(n, "beta", 1) != 1 || attribute(n, "transA", 0)))
		return;
	add_operand(&j->next, a);
	add_operand(&j->next, b);
	*j->next++ = bias;
	add_result(&j->next, q);
	put(q ? q : n, n, "QGemm", in, 9);
}

static void join_binary(struct joining *j, const struct slp_onnx_node *n, const char *as)
{
	const struct slp_onnx_node *a = dequantised(j, n->in[0], -1),
	                           *b = n->nin > 1 ? dequantised(j, n->in[1], -1) : NULL;
	struct slp_onnx_node *q = quantiser(j, n->out[0]);
	int *in = j->next;
	if (!a || !b || !q) return;
	add_operand(&j->next, a);
	add_operand(&j->next, b);
	add_result(&j->next, q);
	put(q, n, as, in, 8);
}

static void join_pool(struct joining *j, const struct slp_onnx_node *n, const char *as)
{
	const struct slp_onnx_node *x = dequantised(j, n->in[0], -1);
	struct slp_onnx_node *q = quantiser(j, n->out[0]);
	int *in = j->next;
	if (!x || !q) return;
	add_operand(&j->next, x);
	add_result(&j->next, q);
	put(q, n, as, in, 5);
}

/* Operators that give elements of their first input, in the same steps. */
static void join_move(struct joining *j, const struct slp_onnx_node *n)
{
	const struct slp_onnx_node *x = dequantised(j, n->in[0], -1);
	struct slp_onnx_node *q = quantiser(j, n->out[0]);
	int *in = j->next, zero = x && x->nin > 2 ? x->in[2] : -1;
	if (!x || !q || n->nin > MOST_INPUTS || n->nout != 1 || !is_same(j, x->in[1], q->in[1]) ||
	    !is_same(j, zero, q->nin > 2 ? q->in[2] : -1))
		return;
	*j->next++ = x->in[0];
	for (int i = 1; i < n->nin; i++) *j->next++ = n->in[i];
	put(q, n, n->proto->op_type, in, n->nin);
}

static void join(struct joining *j, struct slp_onnx_node *n)
{
	static const char *const moving[] = {"MaxPool",   "Reshape", "Transpose", "Flatten", "Squeeze",
	                                     "Unsqueeze", "Slice",   "Gather",    NULL};
	if (!n->nin || n->in[0] < 0 || !n->nout || n->out[0] < 0 || n->as) return;
	if (is(n, "Conv")) join_conv(j, n);
	else if (is(n, "MatMul") || is(n, "Gemm")) join_product(j, n);
	else if (is(n, "Add")) join_binary(j, n, "QLinearAdd");
	else if (is(n, "Mul")) join_binary(j, n, "QLinearMul");
	else if (is(n, "GlobalAveragePool")) join_pool(j, n, "QLinearGlobalAveragePool");
	else if (is(n, "AveragePool")) join_pool(j, n, "QLinearAveragePool");
	else if (is_one_of(n->proto->op_type, moving) && is(n, n->proto->op_type)) join_move(j, n);
}

static void count_uses(struct joining *j)
{
	const struct slp_onnx_model *m = j->m;
	for (int i = 0; i < m->nnames; i++) j->uses[i] = m->names[i].uses, j->first[i] = -1;
	for (int i = 0; i < m->nnodes; i++)
		for (int k = 0; k < m->nodes[i].nin; k++)
			if (m->nodes[i].in[k] >= 0) j->uses[m->nodes[i].in[k]]++, j->first[m->nodes[i].in[k]] = i;
	for (int g = 1; g < m->ngraphs; g++)
		for (int k = 0; k < m->graphs[g].noutputs; k++)
			if (m->graphs[g].outputs[k] >= 0) j->uses[m->graphs[g].outputs[k]]++;
}

static bool has_some(const struct slp_onnx_model *m)
{
	for (int i = 0; i < m->nnodes; i++)
		if (!strcmp(m->nodes[i].proto->op_type, "DequantizeLinear")) return true;
	return false;
}

bool slp_onnx_quantised_join(struct slp_onnx_parsing *p)
{
	struct slp_onnx_model *m = p->m;
	if (!has_some(m)) return true;
	size_t names = (size_t)m->nnames + 1;
	m->joined = slp_calloc((size_t)m->nnodes * MOST_INPUTS + 1, sizeof *m->joined);
	int *room = slp_calloc(2 * names, sizeof *room);
	struct joining j = {p->f, m, room, room + names, m->joined};
	bool ok = m->joined && room;
	if (ok) count_uses(&j);
	for (int i = 0; ok && i < m->nnodes; i++) join(&j, &m->nodes[i]);
	if (m->most < MOST_INPUTS + 2) m->most = MOST_INPUTS + 2;
	free(room);
	return ok || slp_file_fail(p->f, SL_ENOMEM, "no memory");
}
