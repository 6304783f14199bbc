/* ONNX operators, computed: random numbers.  They are those of Starling's generator, which a run of the program seeds:
 * an operator's own seed would give the same in each pass. */
#include "onnx/model/call.h"
#include "op.h"
#include "starling/functions.h"

/* Of this type, or the requested one; SL_DTYPE_DEFAULT after an error. */
static enum sl_dtype asked(struct slp_onnx_call *c, enum sl_dtype otherwise)
{
	if (!slp_onnx_attr(c, "dtype")) return otherwise;
	enum sl_dtype dtype = slp_onnx_dtype_numbered((int)slp_onnx_attr_int(c, "dtype", 0));
	if (dtype == SL_DTYPE_DEFAULT)
		slp_onnx_call_fail(c, SL_EUNSUPPORTED, "data type %lld is not supported",
		                   (long long)slp_onnx_attr_int(c, "dtype", 0));
	return dtype;
}

static void give_random(struct slp_onnx_call *c, sl_shape shape, enum sl_dtype otherwise)
{
	bool normal = c->op->name[6] == 'N';
	double a = slp_onnx_attr_float(c, normal ? "mean" : "low", 0),
	       b = slp_onnx_attr_float(c, normal ? "scale" : "high", 1);
	enum sl_dtype dtype = asked(c, otherwise), made = dtype == SL_FLOAT64 ? dtype : SL_FLOAT32;
	struct sl_make make = {made, sl_tensor_device(c->beside)};
	if (!c->failed && !slp_is_float(dtype)) slp_onnx_call_fail(c, SL_EDTYPE, "makes floats");
	if (c->failed) return;
	sl_tensor *t = (normal ? sl_normal_at : sl_uniform_at)(c->at, shape, a, b, make);
	slp_onnx_set_output(c, 0, dtype == made ? t : sl_cast_at(c->at, t, dtype));
}

void slp_onnx_import_random(struct slp_onnx_call *c)
{
	sl_shape shape = {0};
	int n = slp_onnx_attr_ints(c, "shape", shape.dim, SL_MAX_NDIM);
	shape.ndim = n > 0 ? n : 0;
	if (n < 0 || !slp_shape_valid(shape)) slp_onnx_call_fail(c, SL_EFORMAT, "has no shape");
	if (!c->failed) give_random(c, shape, SL_FLOAT32);
}

void slp_onnx_import_random_like(struct slp_onnx_call *c)
{
	sl_shape shape = slp_onnx_shape(c, 0);
	if (!c->failed) give_random(c, shape, slp_onnx_dtype(&c->in[0]));
}

void slp_onnx_import_bernoulli(struct slp_onnx_call *c)
{
	enum sl_dtype dtype = asked(c, slp_onnx_dtype(&c->in[0]));
	sl_tensor *p = slp_onnx_tensor(c, 0);
	if (p && sl_tensor_dtype(p) != SL_FLOAT64) p = sl_cast_at(c->at, p, SL_FLOAT32);
	if (!c->failed) slp_onnx_set_output(c, 0, p ? sl_cast_at(c->at, sl_bernoulli_at(c->at, p), dtype) : NULL);
}

/* The input has the logarithms of the weights. */
void slp_onnx_import_multinomial(struct slp_onnx_call *c)
{
	enum sl_dtype dtype = asked(c, SL_INT32);
	int64_t count = slp_onnx_attr_int(c, "sample_size", 1);
	sl_tensor *p = slp_onnx_tensor(c, 0);
	if (c->failed || !p) {
		c->failed = true;
		return;
	}
	slp_onnx_set_output(c, 0,
	                    sl_cast_at(c->at, sl_multinomial_at(c->at, sl_softmax_at(c->at, p, -1), count), dtype));
}
