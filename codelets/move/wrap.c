/* wrap: integers in another integer type, without the bits that it lacks, as C converts them; and arithmetic of int64
 * whose results lose what 64 bits cannot hold. */
#include <string.h>

#include "op_inner.h"
#include "modular.h"
#include "op_list/move.h"

static const struct slp_attr wrap_attrs[] = {
        SLP_ATTR(struct slp_cast, dtype, SLP_INT, 1, "data type of the result"),
        {0},
};

static bool is_whole(enum sl_dtype dtype)
{
	return slp_kind_of(dtype) == SLP_KIND_INT;
}

static enum sl_status wrap_infer(struct slp_infer *c)
{
	const struct slp_cast *a = c->attrs;
	if (!is_whole(c->in[0].dtype) || !is_whole((enum sl_dtype)a->dtype))
		return slp_reject(c, SL_EDTYPE, "takes and makes integers, such as int64 or uint8");
	c->out[0] = (struct slp_type){(enum sl_dtype)a->dtype, c->in[0].shape};
	return SL_OK;
}

#define AS_FLOAT(element) return 0;
#define AS_BOOL(element) return 0;
#define AS_INT(element)                                                                                                \
	{                                                                                                              \
		element e;                                                                                             \
		memcpy(&e, (const char *)v->ptr + (size_t)i * sizeof e, sizeof e);                                     \
		return (uint64_t)(int64_t)e;                                                                           \
	}

/* Element i in 64 bits. */
static uint64_t bits_at(const struct slp_view *v, int64_t i)
{
	enum sl_dtype dtype = v->type.dtype;
#define X(symbol, name, element, kind, ...)                                                                            \
	if (dtype == symbol) AS_##kind(element)
	SL_DTYPE_LIST(X)
#undef X
	return 0;
}

static void wrap_range(void *arg, int64_t begin, int64_t end)
{
	const struct slp_kernel *k = arg;
	const struct slp_view *to = &k->out[0];
	size_t size = sl_dtype_size(to->type.dtype);
	for (int64_t i = begin; i < end; i++) {
		uint64_t bits = bits_at(&k->in[0], i);
		memcpy((char *)to->ptr + (size_t)i * size, &bits, size); /* the lowest byte comes first */
	}
}

static enum sl_status wrap_cpu(const struct slp_kernel *k)
{
	slp_parallel_for(slp_size(&k->in[0]), SLP_GRAIN, wrap_range, (void *)k);
	return SL_OK;
}

static enum sl_status wrap_ref(const struct slp_kernel *k)
{
	wrap_range((void *)k, 0, slp_size(&k->in[0]));
	return SL_OK;
}

const struct sl_op slp_op_wrap = {
        .name = "wrap",
        .doc = "the lower bits of integers as another integer type",
        .args = "x",
        SLP_NIN(1),
        .nout = 1,
        .attr_table = wrap_attrs,
        .attrs_size = sizeof(struct slp_cast),
        .rows = SLP_ROWS(SLP_ROW(SLP_ANY & ~(SLP_FLOATS | SLP_HALVES | SLP_DTYPE(SL_BOOL)), wrap_cpu, slp_cuda_wrap)),
        .infer = wrap_infer,
        .grad = slp_constant,
        .ref = wrap_ref,
};

sl_tensor *slp_wrap(const char *at, sl_tensor *x, enum sl_dtype dtype)
{
	return slp_apply1(at, &slp_op_wrap, &(struct slp_cast){(int)dtype}, 1, &x);
}

/* ---- arithmetic -------------------------------------------------------------------------------------------------- */

struct modular_attrs {
	int kind;
};

static const struct slp_attr modular_attrs[] = {
        SLP_ATTR(struct modular_attrs, kind, SLP_INT, 1,
                 "0: a + b, 1: a - b, 2: a b, 3 to 5: and, or, xor, 6, 7: shifted by b to the left, to the right"),
        {0},
};

static enum sl_status modular_infer(struct slp_infer *c)
{
	const struct modular_attrs *a = c->attrs;
	if (a->kind < SLP_MODULAR_ADD || a->kind >= SLP_MODULAR_KINDS)
		return slp_reject(c, SL_EINVAL, "there is no kind %d", a->kind);
	if (c->in[0].dtype != SL_INT64 || c->in[1].dtype != SL_INT64)
		return slp_reject(c, SL_EDTYPE, "takes int64 only");
	if (!sl_shape_equal(c->in[0].shape, c->in[1].shape)) return slp_reject(c, SL_ESHAPE, "the shapes differ");
	c->out[0] = c->in[0];
	return SL_OK;
}

static void modular_range(void *arg, int64_t begin, int64_t end)
{
	const struct slp_kernel *k = arg;
	const uint64_t *a = k->in[0].ptr, *b = k->in[1].ptr;
	uint64_t *y = k->out[0].ptr;
	int kind = ((const struct modular_attrs *)k->attrs)->kind;
	for (int64_t i = begin; i < end; i++) y[i] = slp_modular_of(kind, a[i], b[i]);
}

static enum sl_status modular_cpu(const struct slp_kernel *k)
{
	slp_parallel_for(slp_size(&k->in[0]), SLP_GRAIN, modular_range, (void *)k);
	return SL_OK;
}

static enum sl_status modular_ref(const struct slp_kernel *k)
{
	modular_range((void *)k, 0, slp_size(&k->in[0]));
	return SL_OK;
}

const struct sl_op slp_op_modular = {
        .name = "modular",
        .doc = "sums, differences or products of int64 modulo 2^64, or functions of their bits",
        .args = "a b",
        SLP_NIN(2),
        .nout = 1,
        .attr_table = modular_attrs,
        .attrs_size = sizeof(struct modular_attrs),
        .inplace = true,
        .elementwise = true,
        .rows = SLP_ROWS(SLP_ROW(SLP_I64, modular_cpu, slp_cuda_modular)),
        .infer = modular_infer,
        .flops = slp_flops_elementwise,
        .grad = slp_constant,
        .ref = modular_ref,
};

sl_tensor *slp_modular(const char *at, sl_tensor *a, sl_tensor *b, int kind)
{
	return slp_apply1(at, &slp_op_modular, &(struct modular_attrs){kind}, 2, (sl_tensor *[]){a, b});
}
