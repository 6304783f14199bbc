/* ONNX models: types of integers.  int8, int16, uint16 and uint32 are held in wider types between the nodes, uint64 as
 * int64 of the same bits; results that do not fit the type of the format wrap, as two's complement does.  Inputs and
 * results of the model have the types of the format. */
#include "io/elements.h"
#include "onnx/model/call.h"
#include "op_inner.h"
#include "starling/primitives.h"

enum { UINT8 = 2, INT8, UINT16, INT16, INT32, INT64, UINT32 = 12, UINT64 };

static bool is_one_of(const char *name, const char *const *list)
{
	while (*list && strcmp(name, *list)) list++;
	return *list != NULL;
}

/* Operators whose results of integers may not fit the type of their inputs. */
static bool may_overflow(const char *name)
{
	static const char *const names[] = {"Add",        "Sub",      "Mul",    "Div",    "Neg",     "Abs",
	                                    "Pow",        "PRelu",    "Sum",    "CumSum", "CumProd", "ReduceSum",
	                                    "ReduceProd", "ReduceL1", "MatMul", "Gemm",   "Einsum",  "ReduceSumSquare",
	                                    "BitwiseNot", "BitShift", NULL};
	return is_one_of(name, names);
}

/* Operators whose results are int64 whatever their inputs are. */
static bool counts(const char *name)
{
	static const char *const names[] = {"Shape", "Size", "ArgMax", "ArgMin", "NonZero", "SequenceLength", NULL};
	return is_one_of(name, names);
}

static bool is_narrow(int type)
{
	return (type >= UINT8 && type <= INT32) || type == UINT32;
}

int slp_onnx_type_of(const struct slp_onnx_value *v)
{
	if (v->type || v->sequence) return v->type;
	return slp_elements[slp_onnx_dtype(v)].onnx;
}

bool slp_onnx_widen(struct slp_onnx_call *c)
{
	if (!c->nin || !is_narrow(slp_onnx_type_of(&c->in[0])) || !may_overflow(c->op->name)) return false;
	for (int i = 0; i < c->nin; i++) {
		enum sl_dtype d = slp_onnx_dtype(&c->in[i]);
		if (!slp_onnx_present(c->in[i]) || c->in[i].sequence || slp_is_float(d) || d == SL_BOOL) continue;
		int type = slp_onnx_type_of(&c->in[i]);
		c->in[i] = slp_onnx_cast(c, c->in[i], SL_INT64);
		c->in[i].type = type;
		if (!slp_onnx_present(c->in[i])) c->failed = true;
	}
	return !c->failed;
}

sl_tensor *slp_onnx_in_type(struct slp_onnx_call *c, sl_tensor *t, int type)
{
	enum sl_dtype dtype = slp_onnx_element_numbered(type), has = sl_tensor_dtype(t);
	if (dtype == SL_DTYPE_COUNT || dtype == has) return t;
	return dtype == SL_UINT64 && has == SL_INT64 ? slp_wrap(c->at, t, dtype) : sl_cast_at(c->at, t, dtype);
}

/* Sums of products of bytes are int32. */
static bool sums_bytes(const char *name)
{
	return !strcmp(name, "MatMulInteger") || !strcmp(name, "ConvInteger");
}

/* The first input that may have the type of the results. */
static int first_like_result(const char *name)
{
	return !strcmp(name, "OneHot") ? 2 : !strcmp(name, "Where") ? 1 : 0;
}

/* The type of the first input that is held in the result's type. */
static int type_of_result(const struct slp_onnx_call *c, const struct slp_onnx_value *y)
{
	enum sl_dtype dtype = slp_onnx_dtype(y);
	if (counts(c->op->name)) return INT64;
	if (sums_bytes(c->op->name) && dtype == SL_INT32) return INT32;
	for (int i = first_like_result(c->op->name); i < c->nin; i++)
		if (slp_onnx_present(c->in[i]) && !c->in[i].sequence && c->in[i].type &&
		    slp_onnx_dtype(&c->in[i]) == dtype)
			return c->in[i].type;
	return 0;
}

static void wrap(struct slp_onnx_call *c, struct slp_onnx_value *y, int type)
{
	enum sl_dtype dtype = slp_onnx_dtype_numbered(type);
	if (slp_onnx_dtype(y) != SL_INT64) return;
	*y = slp_onnx_wrapped(c, *y, type);
	if (!c->failed && slp_onnx_present(*y)) *y = slp_onnx_cast(c, *y, dtype);
	if (!slp_onnx_present(*y)) c->failed = true;
	y->type = type;
}

void slp_onnx_set_types(struct slp_onnx_call *c, bool widened)
{
	int first = c->nin ? c->in[0].type : 0;
	for (int i = 0; i < c->nout && !c->failed; i++) {
		if (!slp_onnx_present(c->out[i]) || c->out[i].sequence) continue;
		if (widened) wrap(c, &c->out[i], first);
		else if (!c->out[i].type) c->out[i].type = type_of_result(c, &c->out[i]);
	}
}
