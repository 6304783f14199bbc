/* Copies, and conversions between data types. */
#include <string.h>

#include "fill/fill.h"
#include "common/scalar.h"

extern const struct sl_op slp_op_copy, slp_op_copy_over, slp_op_cast;
enum sl_status slp_cuda_copy(const struct slp_kernel *k);
enum sl_status slp_cuda_copy_over(const struct slp_kernel *k);
enum sl_status slp_cuda_cast(const struct slp_kernel *k);

static enum sl_status give(struct slp_grad *g, int i, sl_tensor *d)
{
	g->din[i] = d;
	return d ? SL_OK : sl_error();
}

/* ---- copy, copy_over --------------------------------------------------------------------------------------------- */

static enum sl_status copy_infer(struct slp_infer *c)
{
	c->out[0] = c->in[0];
	return SL_OK;
}

static double copy_bytes(const struct slp_infer *c)
{
	return 2.0 * (double)sl_shape_size(c->out[0].shape) * (double)sl_dtype_size(c->out[0].dtype);
}

static enum sl_status copy_over_infer(struct slp_infer *c)
{
	if (c->in[0].dtype != c->in[1].dtype)
		return slp_reject(c, SL_EDTYPE, "the data types differ; convert one with sl_cast");
	if (!sl_shape_equal(c->in[0].shape, c->in[1].shape)) return slp_reject(c, SL_ESHAPE, "the shapes differ");
	return copy_infer(c);
}

/* The input that is copied is the last one. */
static const struct slp_view *copied(const struct slp_kernel *k)
{
	return &k->in[k->nin - 1];
}

static enum sl_status copy_ref(const struct slp_kernel *k)
{
	for (int64_t i = 0; i < slp_size(&k->out[0]); i++) slp_set(&k->out[0], i, slp_get(copied(k), i));
	return SL_OK;
}

static void copy_range(void *arg, int64_t begin, int64_t end)
{
	const struct slp_kernel *k = arg;
	size_t size = sl_dtype_size(k->out[0].type.dtype), offset = (size_t)begin * size;
	const char *from = copied(k)->ptr;
	char *to = k->out[0].ptr;
	if (from != to) memcpy(to + offset, from + offset, (size_t)(end - begin) * size);
}

static enum sl_status copy_cpu(const struct slp_kernel *k)
{
	slp_parallel_for(slp_size(&k->out[0]), SLP_GRAIN, copy_range, (void *)k);
	return SL_OK;
}

/* x may be elsewhere: the gradient goes back there, as it is. */
static enum sl_status copy_grad(struct slp_grad *g)
{
	sl_device to = sl_tensor_device(g->in[0]);
	sl_tensor *d = g->dout[0];
	return give(g, 0, sl_device_equal(sl_tensor_device(d), to) ? d : sl_place_at(g->at, d, to));
}

static enum sl_status copy_over_grad(struct slp_grad *g)
{
	enum sl_status s = SL_OK;
	if (g->need[0]) s = give(g, 0, slp_zeros_like(g->at, g->dout[0]));
	if (g->need[1] && s == SL_OK) s = give(g, 1, g->dout[0]);
	return s;
}

const struct sl_op slp_op_copy = {
        .name = "copy",
        .doc = "the same elements in other memory",
        .args = "x",
        .nin = 1,
        .nout = 1,
        .cpu_dtypes = SLP_ALL_DTYPES,
        .cuda_dtypes = SLP_ALL_DTYPES,
        .infer = copy_infer,
        .grad = copy_grad,
        .ref = copy_ref,
        .cpu = copy_cpu,
        .cuda = SLP_CUDA(slp_cuda_copy),
};

const struct sl_op slp_op_copy_over = {
        .name = "copy_over",
        .doc = "the elements of from, in place of those of x",
        .args = "x from",
        .nin = 2,
        .nout = 1,
        .inplace = true,
        .cpu_dtypes = SLP_ALL_DTYPES,
        .cuda_dtypes = SLP_ALL_DTYPES,
        .infer = copy_over_infer,
        .bytes = copy_bytes,
        .grad = copy_over_grad,
        .ref = copy_ref,
        .cpu = copy_cpu,
        .cuda = SLP_CUDA(slp_cuda_copy_over),
};

/* Writes the elements of `from` to x, and returns x.  SL_ESHAPE, SL_EDTYPE if they differ in shape or data type; the
 * other errors of what runs in place: see sl_add_.
 *
 *     sl_copy_(weights, snapshot); */
sl_tensor *sl_copy_inplace_at(const char *at, sl_tensor *x, sl_tensor *from)
{
	return slp_apply_inplace(at, &slp_op_copy_over, NULL, 2, (sl_tensor *[]){x, from});
}

/* ---- cast -------------------------------------------------------------------------------------------------------- */

static const struct slp_attr cast_attrs[] = {
        SLP_ATTR(struct slp_cast, dtype, SLP_INT, 1, "data type of the result"),
        {0},
};

static enum sl_status cast_infer(struct slp_infer *c)
{
	int dtype = ((const struct slp_cast *)c->attrs)->dtype;
	if (dtype < 0 || dtype >= SL_DTYPE_COUNT) return slp_reject(c, SL_EDTYPE, "there is no data type %d", dtype);
	c->out[0] = (struct slp_type){(enum sl_dtype)dtype, c->in[0].shape};
	return SL_OK;
}

/* Nothing flows back through integers. */
static enum sl_status cast_grad(struct slp_grad *g)
{
	enum sl_dtype from = sl_tensor_dtype(g->in[0]);
	if (!slp_is_float(from) || !slp_is_float(sl_tensor_dtype(g->out[0]))) return SL_OK;
	return give(g, 0, sl_cast_at(g->at, g->dout[0], from));
}

static enum sl_status cast_ref(const struct slp_kernel *k)
{
	for (int64_t i = 0; i < slp_size(&k->out[0]); i++) slp_set_truncated(&k->out[0], i, slp_get(&k->in[0], i));
	return SL_OK;
}

SLP_VFN int32_t as_SL_INT32(double x)
{
	double y = x > INT32_MIN ? x : INT32_MIN;
	y = y < INT32_MAX ? y : INT32_MAX;
	return x == x ? (int32_t)y : 0;
}

SLP_VFN uint8_t as_SL_UINT8(double x)
{
	double y = x > 0 ? x : 0;
	return (uint8_t)(int32_t)(y < UINT8_MAX ? y : UINT8_MAX);
}

#define as_SL_FLOAT32(x) (float)(x)
#define as_SL_FLOAT64(x) (double)(x)

#define CAST(from, from_type, to, to_type)                                                                             \
	SLP_CLONES static void cast_##from##_##to(void *arg, int64_t begin, int64_t end)                               \
	{                                                                                                              \
		const struct slp_kernel *k = arg;                                                                      \
		const from_type *in = k->in[0].ptr;                                                                    \
		to_type *out = k->out[0].ptr;                                                                          \
		SLP_INDEPENDENT                                                                                        \
		for (int64_t i = begin; i < end; i++) out[i] = as_##to(in[i]);                                         \
	}
#define X(from, name, type)                                                                                            \
	CAST(from, type, SL_FLOAT32, float)                                                                            \
	CAST(from, type, SL_FLOAT64, double)                                                                           \
	CAST(from, type, SL_INT32, int32_t)                                                                            \
	CAST(from, type, SL_UINT8, uint8_t)
SL_DTYPE_LIST(X)
#undef X

typedef void cast_fn(void *arg, int64_t begin, int64_t end);

static enum sl_status cast_cpu(const struct slp_kernel *k)
{
	static cast_fn *const casts[][SL_DTYPE_COUNT] = {
#define X(from, name, type)                                                                                            \
	[from] = {cast_##from##_SL_FLOAT32, cast_##from##_SL_FLOAT64, cast_##from##_SL_INT32, cast_##from##_SL_UINT8},
	        SL_DTYPE_LIST(X)
#undef X
	};
	cast_fn *f = casts[k->in[0].type.dtype][k->out[0].type.dtype];
	slp_parallel_for(slp_size(&k->out[0]), SLP_GRAIN, f, (void *)k);
	return SL_OK;
}

const struct sl_op slp_op_cast = {
        .name = "cast",
        .doc = "the same numbers in another data type",
        .args = "x",
        .nin = 1,
        .nout = 1,
        .attr_table = cast_attrs,
        .attrs_size = sizeof(struct slp_cast),
        .cpu_dtypes = SLP_ALL_DTYPES,
        .cuda_dtypes = SLP_ALL_DTYPES,
        .infer = cast_infer,
        .flops = slp_flops_elementwise,
        .grad = cast_grad,
        .ref = cast_ref,
        .cpu = cast_cpu,
        .cuda = SLP_CUDA(slp_cuda_cast),
};

/* The elements of x in another data type.  Integers lose the fraction, as in C, and saturate; NaN becomes 0.
 * Gradients flow back between floats.  SL_EDTYPE if there is no such data type.
 *
 *     sl_tensor *pixels = sl_div_scalar(sl_cast(bytes, SL_FLOAT32), 255); */
sl_tensor *sl_cast_at(const char *at, sl_tensor *x, enum sl_dtype dtype)
{
	return slp_apply1(at, &slp_op_cast, &(struct slp_cast){(int)dtype}, 1, &x);
}
