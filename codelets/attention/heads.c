/* Attention whose heads stay where projections write them: (batch, positions, parts, heads, width), of which q, k and v
 * are parts.  The graph pass heads makes these operations of attention between transpositions, whose copies they avoid.
 * The kernels are those of attention, at the steps of a struct slp_heads_call. */
#include "attention.h"
#include "op_inner.h"
#include "op_list/attention.h"

#include <math.h>
#include <string.h>

static const struct slp_attr attr_table[] = {
        SLP_ATTR_DEFAULTED(struct slp_attention_attrs, scale, "of the products; 0: one over the root of the width"),
        SLP_ATTR(struct slp_attention_attrs, causal, SLP_BOOL, 1, "a query does not see later keys"),
        SLP_ATTR(struct slp_attention_attrs, sources, SLP_INT, 1,
                 "1: q, k and v are the parts of one tensor; 2: k and v of the second; 3: each has its own"),
        {0},
};

/* The tensor that holds operand i of q, k and v, among the sources; its part there; the number of parts. */
static int source_of(int sources, int i)
{
	return sources == 1 ? 0 : sources == 2 ? i > 0 : i;
}

static int part_of(int sources, int i)
{
	return sources == 1 ? i : sources == 2 ? i == 2 : 0;
}

static int64_t parts_of(int sources, int source)
{
	return sources == 1 ? 3 : sources == 2 && source == 1 ? 2 : 1;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* The operand of attention that a part of a source is: (batch, heads, positions, width). */
static struct slp_type operand_type(const struct slp_type *source)
{
	const int64_t *d = source->shape.dim;
	return (struct slp_type){source->dtype, SL_SHAPE(d[0], d[3], d[1], d[4])};
}

/* The sizes of a call: q, k and v have the types `t`. */
static struct slp_attention sizes(const struct slp_attention_attrs *attrs, const struct slp_type t[3],
                                  const sl_shape *mask)
{
	struct slp_attention a = slp_attention_of(attrs, t[0].shape, t[1].shape, t[2].shape, mask);
	int64_t heads = t[0].shape.dim[1], parts[3];
	for (int i = 0; i < 3; i++) parts[i] = parts_of(attrs->sources, source_of(attrs->sources, i));
	a.inner = heads > 0 ? heads : 1;
	a.q = slp_heads_at_places(a.t, parts[0], heads, a.d);
	a.k = slp_heads_at_places(a.s, parts[1], heads, a.d);
	a.v = slp_heads_at_places(a.s, parts[2], heads, a.dv);
	a.y = slp_heads_at_places(a.t, 1, heads, a.dv);
	return a;
}

/* Operand i of q, k and v within its source, or the gradient's within that of the source. */
static struct slp_view part(const struct slp_view *sources, int n, int i)
{
	struct slp_view v = sources[source_of(n, i)];
	int64_t width = v.type.shape.dim[3] * v.type.shape.dim[4];
	if (slp_size(&v)) v.ptr = (char *)v.ptr + (size_t)(part_of(n, i) * width) * sl_dtype_size(v.type.dtype);
	v.type = operand_type(&v.type);
	return v;
}

void slp_heads_call_of(const struct slp_kernel *k, bool back, struct slp_heads_call *c)
{
	const struct slp_attention_attrs *attrs = k->attrs;
	int n = attrs->sources, first = back ? 1 : 0, mask = first + n + (back ? 2 : 0);
	struct slp_type types[3];
	c->k = *k;
	c->k.in = c->in;
	c->k.out = c->out;
	for (int i = 0; i < 3; i++) {
		c->in[first + i] = part(k->in + first, n, i);
		types[i] = c->in[first + i].type;
		if (back) c->out[i] = part(k->out, n, i);
	}
	if (back) {
		c->in[0] = k->in[0];
		c->in[4] = k->in[1 + n];
		c->in[5] = k->in[2 + n];
	} else {
		c->out[0] = k->out[0];
		c->out[1] = k->out[1];
	}
	c->k.nin = back ? 6 : 3;
	c->k.nout = back ? 3 : 2;
	bool masked = k->nin > mask;
	if (masked) c->in[c->k.nin++] = k->in[mask];
	c->a = sizes(attrs, types, masked ? &k->in[mask].type.shape : NULL);
}

/* ---- rules ------------------------------------------------------------------------------------------------------- */

/* The types of q, k and v of a call whose sources begin at input `first`. */
static enum sl_status operands(const struct slp_infer *c, int first, struct slp_type t[3])
{
	const struct slp_attention_attrs *a = c->attrs;
	int n = a->sources;
	if (n < 1 || n > 3) return slp_reject(c, SL_EINVAL, "%d sources, 1 to 3 needed", n);
	if (c->nin < first + n) return slp_reject(c, SL_EINVAL, "%d inputs for %d sources", c->nin, n);
	for (int i = 0; i < n; i++) {
		sl_shape s = c->in[first + i].shape;
		if (s.ndim != 5 || s.dim[2] != parts_of(n, i))
			return slp_reject(c, SL_ESHAPE, "source %d must be (batch, positions, %lld, heads, width)", i,
			                  (long long)parts_of(n, i));
	}
	for (int i = 0; i < 3; i++) t[i] = operand_type(&c->in[first + source_of(n, i)]);
	return SL_OK;
}

static enum sl_status attention_heads_infer(struct slp_infer *c)
{
	struct slp_type t[3];
	struct slp_attention_attrs *a = c->attrs;
	enum sl_status status = operands(c, 0, t);
	if (status) return status;
	if (c->nin > a->sources + 1) return slp_reject(c, SL_EINVAL, "%d inputs for %d sources", c->nin, a->sources);
	status = slp_attention_check(c, &t[0], &t[1], &t[2], c->nin > a->sources ? &c->in[a->sources] : NULL);
	if (status) return status;
	if (!isfinite(a->scale)) return slp_reject(c, SL_EINVAL, "scale is %g, a finite number needed", a->scale);
	slp_attention_set_scale(a, t[0].shape);
	const int64_t *d = t[0].shape.dim;
	c->out[0] = (struct slp_type){t[0].dtype, SL_SHAPE(d[0], d[2], d[1], t[2].shape.dim[3])};
	c->out[1] = (struct slp_type){slp_promoted(t[0].dtype), SL_SHAPE(d[0], d[1], d[2])};
	return SL_OK;
}

/* dy, sources, y, logs, mask */
static enum sl_status attention_heads_grad_infer(struct slp_infer *c)
{
	struct slp_type t[3];
	struct slp_attention_attrs *a = c->attrs;
	enum sl_status status = operands(c, 1, t);
	int n = a->sources, y = 1 + n;
	if (status) return status;
	if (c->nin < n + 3 || c->nin > n + 4) return slp_reject(c, SL_EINVAL, "%d inputs for %d sources", c->nin, n);
	status = slp_attention_check(c, &t[0], &t[1], &t[2], c->nin > n + 3 ? &c->in[n + 3] : NULL);
	if (status) return status;
	const int64_t *d = t[0].shape.dim;
	sl_shape result = SL_SHAPE(d[0], d[2], d[1], t[2].shape.dim[3]);
	if (!sl_shape_equal(c->in[0].shape, result) || !sl_shape_equal(c->in[y].shape, result) ||
	    !sl_shape_equal(c->in[y + 1].shape, SL_SHAPE(d[0], d[1], d[2])))
		return slp_reject(c, SL_ESHAPE, "dy, y and logs must have the shapes of the results");
	if (c->in[0].dtype != t[0].dtype || c->in[y].dtype != t[0].dtype ||
	    (c->in[y + 1].dtype != t[0].dtype && c->in[y + 1].dtype != slp_promoted(t[0].dtype)))
		return slp_reject(c, SL_EDTYPE, "all must be floats of one data type");
	slp_attention_set_scale(a, t[0].shape);
	for (int i = 0; i < 3; i++) /* results without a source are empty */
		c->out[i] = i < n ? c->in[1 + i] : (struct slp_type){t[0].dtype, SL_SHAPE(0)};
	return SL_OK;
}

/* Of a call that the rules accept. */
static struct slp_attention sizes_of(const struct slp_infer *c, bool back)
{
	struct slp_type t[3];
	const struct slp_attention_attrs *a = c->attrs;
	int mask = a->sources + (back ? 3 : 0);
	for (int i = 0; i < 3; i++) t[i] = operand_type(&c->in[back + source_of(a->sources, i)]);
	return sizes(a, t, c->nin > mask ? &c->in[mask].shape : NULL);
}

static double attention_heads_flops(const struct slp_infer *c)
{
	bool back = c->op == &slp_op_attention_heads_grad;
	struct slp_attention a = sizes_of(c, back);
	return slp_attention_work(&a, back);
}

static size_t attention_heads_scratch(const struct slp_infer *c)
{
	bool back = c->op == &slp_op_attention_heads_grad;
	struct slp_attention a = sizes_of(c, back);
	return slp_attention_memory(&a, c->in[back].dtype, back);
}

/* Half types without cuDNN's graph are products of matrices, whose heads follow each other. */
bool slp_attention_takes_heads(enum sl_dtype dtype, int64_t d, int64_t dv, bool masked)
{
	int64_t most = d > dv ? d : dv;
	if (slp_is_half(dtype)) return !masked && slp_attention_suits_graph(d, dv);
	return dtype == SL_FLOAT32 && most <= SLP_ATTENTION_TILE;
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

static enum sl_status attention_heads_ref(const struct slp_kernel *k)
{
	struct slp_heads_call c;
	slp_heads_call_of(k, false, &c);
	return slp_attention_plain(&c.k, &c.a);
}

static enum sl_status attention_heads_grad_ref(const struct slp_kernel *k)
{
	struct slp_heads_call c;
	slp_heads_call_of(k, true, &c);
	return slp_attention_grad_plain(&c.k, &c.a);
}

/* The logs of half types are float32. */
/* clang-format off */
#define HEADS(op_name, about, inputs, least_in, most_in, results)                                                      \
	const struct sl_op slp_op_##op_name = {                                                                        \
		.name = #op_name,                                                                                      \
		.doc = about,                                                                                          \
		.args = inputs,                                                                                        \
		.nin_min = least_in,                                                                                   \
		.nin_max = most_in,                                                                                    \
		.nout = results,                                                                                       \
		.attr_table = attr_table,                                                                              \
		.attrs_size = sizeof(struct slp_attention_attrs),                                                      \
		.rows = SLP_ROWS(SLP_ROW(SLP_F32, slp_##op_name##_cpu, slp_cuda_##op_name),                            \
		                 SLP_ROW(SLP_F64, op_name##_ref, slp_cuda_##op_name),                                  \
		                 SLP_ROW(SLP_DTYPE(SL_BFLOAT16) | SLP_F32, NULL, slp_cuda_##op_name),                  \
		                 SLP_ROW(SLP_DTYPE(SL_FLOAT16) | SLP_F32, NULL, slp_cuda_##op_name)),                  \
		.declines = true,                                                                                      \
		.aligned = true,                                                                                       \
		.infer = op_name##_infer,                                                                              \
		.flops = attention_heads_flops,                                                                        \
		.ref = op_name##_ref,                                                                                  \
		.scratch = attention_heads_scratch}
/* clang-format on */

HEADS(attention_heads, "attention whose heads stay in their sources", "q k v mask", 1, 4, 2);
HEADS(attention_heads_grad, "gradients of attention_heads", "dy q k v y logs mask", 4, 7, 3);
