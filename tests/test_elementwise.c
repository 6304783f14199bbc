/* Elementwise operations, filling and copies as programs call them. */
#include <math.h>
#include <string.h>

#include "check.h"

#define FROM(...) sl_from(((const float[]){__VA_ARGS__}), SL_SHAPE(SL_COUNT_(float, __VA_ARGS__)))

/* ---- functions of one tensor, of two, of a tensor and a number --------------------------------------------------- */

static void test_one(void)
{
	SL_SCOPE {
		sl_tensor *x = FROM(-2, 0, 4);
		CHECK_VALUES(sl_neg(x), 2, 0, -4);
		CHECK_VALUES(sl_abs(x), 2, 0, 4);
		CHECK_VALUES(sl_exp(x), 0.1353352832, 1, 54.59815);
		CHECK_VALUES(sl_log(x), NAN, -INFINITY, 1.3862943611);
		CHECK_VALUES(sl_sqrt(x), NAN, 0, 2);
		CHECK_VALUES(sl_square(x), 4, 0, 16);
		CHECK_VALUES(sl_reciprocal(x), -0.5, INFINITY, 0.25);
		CHECK_VALUES(sl_relu(x), 0, 0, 4);
		CHECK_VALUES(sl_sigmoid(x), 0.1192029220, 0.5, 0.9820137900);
		CHECK_VALUES(sl_tanh(x), -0.9640275801, 0, 0.9993292997);
		CHECK_VALUES(sl_gelu(x), -0.0455002639, 0, 3.9998733150);
		CHECK_VALUES(sl_softplus(x), 0.1269280110, 0.6931471806, 4.0181499279);
		CHECK_NULL(sl_exp(sl_cast(x, SL_INT32)), SL_EDTYPE, "exp", "sl_cast");
	}
}

static void test_two(void)
{
	SL_SCOPE {
		sl_tensor *a = FROM(1, 5, 3), *b = FROM(2, 2, 3);
		CHECK_VALUES(sl_add(a, b), 3, 7, 6);
		CHECK_VALUES(sl_sub(a, b), -1, 3, 0);
		CHECK_VALUES(sl_mul(a, b), 2, 10, 9);
		CHECK_VALUES(sl_div(a, b), 0.5, 2.5, 1);
		CHECK_VALUES(sl_pow(a, b), 1, 25, 27);
		CHECK_VALUES(sl_maximum(a, b), 2, 5, 3);
		CHECK_VALUES(sl_minimum(a, b), 1, 2, 3);
		CHECK_VALUES(sl_eq(a, b), 0, 0, 1);
		CHECK_VALUES(sl_ne(a, b), 1, 1, 0);
		CHECK_VALUES(sl_lt(a, b), 1, 0, 0);
		CHECK_VALUES(sl_le(a, b), 1, 0, 1);
		CHECK_VALUES(sl_gt(a, b), 0, 1, 0);
		CHECK_VALUES(sl_ge(a, b), 0, 1, 1);
		CHECK_NULL(sl_add(a, FROM(1, 2)), SL_ESHAPE, "add", "(3,)", "(2,)");
		CHECK_NULL(sl_add(a, sl_cast(b, SL_INT32)), SL_EDTYPE, "add", "sl_cast");
	}
}

/* Two data types: neither is cut to the other's. */
static void test_compare_types(void)
{
	SL_SCOPE {
		sl_tensor *f = FROM(0.5, 2, 300),
		          *d = sl_from(((double[]){0.1, 2, 16777217}), SL_SHAPE(3), .dtype = SL_FLOAT64);
		sl_tensor *i = sl_from(((int32_t[]){0, 2, 16777217}), SL_SHAPE(3), .dtype = SL_INT32);
		sl_tensor *u = sl_from(((uint8_t[]){0, 2, 255}), SL_SHAPE(3), .dtype = SL_UINT8);
		CHECK_VALUES(sl_eq(f, i), 0, 1, 0);
		CHECK_VALUES(sl_eq(i, u), 1, 1, 0);
		CHECK_VALUES(sl_lt(u, f), 1, 0, 1);
		CHECK_VALUES(sl_ge(d, f), 0, 1, 1);
		CHECK_VALUES(sl_eq(sl_cast(i, SL_FLOAT32), i), 1, 1, 0); /* no float32 is 2^24 + 1 */
		CHECK_VALUES(sl_gt_scalar(i, 1.5), 0, 1, 1);
		CHECK_VALUES(sl_lt_scalar(u, 1000), 1, 1, 1);
		CHECK_NULL(sl_eq(f, sl_ones(SL_SHAPE(2), .dtype = SL_INT32)), SL_ESHAPE, "eq");
	}
}

/* An integer tensor takes no fraction, however it is called. */
static void test_integer_and_fraction(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_from(((int32_t[]){1, 2, 3}), SL_SHAPE(3), .dtype = SL_INT32);
		CHECK_NULL(sl_add_scalar(x, 0.5), SL_EDTYPE, "add_scalar", "0.5", "int32", "sl_cast");
		CHECK_NULL(sl_mul_scalar_(x, 2.9), SL_EDTYPE, "mul_scalar", "2.9");
		CHECK_VALUES(sl_mul_scalar_(x, 2), 2, 4, 6);
		CHECK_VALUES(sl_mul_scalar(sl_cast(x, SL_FLOAT32), 2.5), 5, 10, 15);
		sl_tensor *v = sl_var("x", SL_VAR_SHAPE(3), .dtype = SL_INT32), *open = sl_var("x", .dtype = SL_INT32);
		CHECK_NULL(sl_mul_scalar(v, 2.9), SL_EDTYPE, "mul_scalar");
		sl_graph *graph = sl_graph_define(sl_mul_scalar(open, 2.9));
		CHECK(graph && !sl_compile(graph, .shapes = &SL_SHAPE(3)) && sl_error() == SL_EDTYPE);
		sl_error_clear();
		sl_graph_free(graph);
		graph = sl_graph_parse("input x: int32 (3,)\ny = mul_scalar(x, value=2.9)\nreturn y\n");
		CHECK(!graph || !sl_compile(graph));
		CHECK_SAYING(sl_error() == SL_EDTYPE && strstr(sl_error_message(), "2.9"), "message: %s",
		             sl_error_message());
		sl_error_clear();
		sl_graph_free(graph);
	}
}

static void test_number(void)
{
	SL_SCOPE {
		sl_tensor *x = FROM(1, 2, 4);
		CHECK_VALUES(sl_add_scalar(x, 2), 3, 4, 6);
		CHECK_VALUES(sl_sub_scalar(x, 2), -1, 0, 2);
		CHECK_VALUES(sl_mul_scalar(x, 2), 2, 4, 8);
		CHECK_VALUES(sl_div_scalar(x, 2), 0.5, 1, 2);
		CHECK_VALUES(sl_pow_scalar(x, 2), 1, 4, 16);
		CHECK_VALUES(sl_maximum_scalar(x, 2), 2, 2, 4);
		CHECK_VALUES(sl_minimum_scalar(x, 2), 1, 2, 2);
		CHECK_VALUES(sl_eq_scalar(x, 2), 0, 1, 0);
		CHECK_VALUES(sl_ne_scalar(x, 2), 1, 0, 1);
		CHECK_VALUES(sl_lt_scalar(x, 2), 1, 0, 0);
		CHECK_VALUES(sl_le_scalar(x, 2), 1, 1, 0);
		CHECK_VALUES(sl_gt_scalar(x, 2), 0, 0, 1);
		CHECK_VALUES(sl_ge_scalar(x, 2), 0, 1, 1);
		CHECK_VALUES(sl_rsub_scalar(x, 2), 1, 0, -2);
		CHECK_VALUES(sl_rdiv_scalar(x, 2), 2, 1, 0.5);
		CHECK_VALUES(sl_rpow_scalar(x, 2), 2, 4, 16);
	}
}

/* ---- in place ---------------------------------------------------------------------------------------------------- */

static void test_in_place(void)
{
	SL_SCOPE {
		sl_tensor *x = FROM(1, -2, 4);
		CHECK(sl_add_(x, FROM(1, 1, 1)) == x);
		CHECK(sl_mul_(x, FROM(3, 3, 3)) == x);
		CHECK(sl_sub_(x, FROM(2)) == x);
		CHECK(sl_div_(x, FROM(2, 4, 2)) == x);
		CHECK_VALUES(x, 2, -1.25, 6.5);
		CHECK(sl_mul_scalar_(sl_add_scalar_(x, 1), 4) == x);
		CHECK(sl_div_scalar_(sl_sub_scalar_(x, 2), 2) == x);
		CHECK_VALUES(x, 5, -1.5, 14);
		CHECK(sl_relu_(x) == x);
		CHECK_VALUES(x, 5, 0, 14);
		CHECK(sl_copy_(x, FROM(7, 8, 9)) == x);
		CHECK_VALUES(x, 7, 8, 9);
		CHECK(sl_fill_(x, 0.5) == x);
		CHECK_VALUES(x, 0.5, 0.5, 0.5);
		CHECK_NULL(sl_add_(x, sl_ones(SL_SHAPE(2, 3))), SL_ESHAPE, "add");
		CHECK_NULL(sl_copy_(x, FROM(1)), SL_ESHAPE, "copy_over");
		CHECK_NULL(sl_copy_(x, sl_ones(SL_SHAPE(3), .dtype = SL_FLOAT64)), SL_EDTYPE, "copy_over");
		CHECK_VALUES(x, 0.5, 0.5, 0.5);
	}
}

/* An argument may be given twice. */
static void test_with_itself(void)
{
	SL_SCOPE {
		sl_tensor *x = FROM(1, -2, 4);
		CHECK_VALUES(sl_mul(x, x), 1, 4, 16);
		CHECK(sl_add_(x, x) == x);
		CHECK_VALUES(x, 2, -4, 8);
		CHECK(sl_copy_(x, x) == x);
		CHECK_VALUES(x, 2, -4, 8);
		CHECK_VALUES(sl_sub_(x, x), 0, 0, 0);
		sl_tensor *rows = sl_ones(SL_SHAPE(4, 2));
		CHECK_NULL(sl_add_(rows, sl_rows(rows, 1, 2)), SL_EINVAL, "add", "clone");
		CHECK_NULL(sl_add_(sl_rows(rows, 0, 2), sl_rows(rows, 1, 3)), SL_EINVAL, "add", "clone");
		CHECK(sl_add_(sl_rows(rows, 0, 2), sl_rows(rows, 2, 4)) != NULL);
		CHECK(sl_add_(rows, sl_reshape(rows, SL_SHAPE(4, 2))) == rows);
	}
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

/* What was repeated gets the sum; the values are PyTorch's. */
static void test_broadcast_gradients(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_arange(1, 7, 1), *w = FROM(1, 2, 3), *s = sl_full(SL_SCALAR, 2), *y = NULL;
		CHECK_OK(sl_attach_grad(x));
		CHECK_OK(sl_attach_grad(w));
		CHECK_OK(sl_attach_grad(s));
		SL_RECORD {
			sl_tensor *m = sl_reshape(x, SL_SHAPE(2, 3));
			y = sl_div(sl_mul(m, w), s);
		}
		CHECK_OK(sl_backward(y));
		CHECK_VALUES(sl_grad(x), 0.5, 1, 1.5, 0.5, 1, 1.5);
		CHECK_VALUES(sl_grad(w), 2.5, 3.5, 4.5);
		CHECK_VALUES(sl_grad(s), -11.5);
	}
}

/* A result that goes into two places gets the gradients of both. */
static void test_used_twice(void)
{
	SL_SCOPE {
		sl_tensor *x = FROM(1, 2, 3), *y = NULL;
		CHECK_OK(sl_attach_grad(x));
		SL_RECORD
			y = sl_add(sl_add(x, x), sl_sub(sl_square(x), x));
		CHECK_OK(sl_backward(y));
		CHECK_VALUES(sl_grad(x), 3, 5, 7);
	}
}

static void test_in_place_gradients(void)
{
	SL_SCOPE {
		sl_tensor *x = FROM(-1, 2, 3), *from = FROM(4, 5, 6), *y = NULL;
		CHECK_OK(sl_attach_grad(x));
		CHECK_OK(sl_attach_grad(from));
		SL_RECORD
			y = sl_relu_(sl_mul_scalar(x, 2));
		CHECK_OK(sl_backward(y));
		CHECK_VALUES(sl_grad(x), 0, 2, 2);
		SL_RECORD
			y = sl_fill_(sl_mul_scalar(x, 2), 1);
		CHECK_OK(sl_backward(y));
		CHECK_VALUES(sl_grad(x), 0, 0, 0);
		SL_RECORD
			y = sl_copy_(sl_mul_scalar(x, 2), sl_mul_scalar(from, 3));
		CHECK_OK(sl_backward(y));
		CHECK_VALUES(sl_grad(x), 0, 0, 0);
		CHECK_VALUES(sl_grad(from), 3, 3, 3);
	}
}

static void test_cast_gradients(void)
{
	SL_SCOPE {
		sl_tensor *x = FROM(-1.5, 2.5), *y = NULL;
		CHECK_OK(sl_attach_grad(x));
		SL_RECORD
			y = sl_mul_scalar(sl_cast(x, SL_FLOAT64), 3);
		CHECK(sl_tensor_dtype(y) == SL_FLOAT64);
		CHECK_OK(sl_backward(y));
		CHECK(sl_tensor_dtype(sl_grad(x)) == SL_FLOAT32);
		CHECK_VALUES(sl_grad(x), 3, 3);
	}
}

/* ---- making tensors ---------------------------------------------------------------------------------------------- */

static void test_filled(void)
{
	SL_SCOPE {
		CHECK_VALUES(sl_zeros(SL_SHAPE(2)), 0, 0);
		CHECK_VALUES(sl_ones(SL_SHAPE(2), .dtype = SL_UINT8), 1, 1);
		CHECK_VALUES(sl_full(SL_SHAPE(1, 2), -7.9, .dtype = SL_INT32), -7, -7);
		CHECK_VALUES(sl_full(SL_SCALAR, 2.5), 2.5);
		CHECK(sl_tensor_size(sl_zeros(SL_SHAPE(3, 0))) == 0);
		CHECK_NULL(sl_zeros(SL_SHAPE(3, -1)), SL_ESHAPE, "fill", "axis 1 has size -1");
		CHECK_NULL(sl_zeros(SL_SHAPE(INT64_C(1) << 40, INT64_C(1) << 40)), SL_ESHAPE, "fill");
		CHECK_NULL(sl_ones(SL_SHAPE(3), .dtype = SL_DTYPE_COUNT), SL_EDTYPE, "there is no data type 14");
	}
}

static void test_arange(void)
{
	SL_SCOPE {
		CHECK_VALUES(sl_arange(0, 4, 1), 0, 1, 2, 3);
		CHECK_VALUES(sl_arange(1, 2, 0.3), 1, 1.3, 1.6, 1.9);
		CHECK_VALUES(sl_arange(5, 0, -2, .dtype = SL_INT32), 5, 3, 1);
		CHECK(sl_tensor_size(sl_arange(0, -1, 1)) == 0 && sl_tensor_size(sl_arange(3, 3, 1)) == 0);
		CHECK_NULL(sl_arange(0, 1, 0), SL_EINVAL, "sl_arange");
		CHECK_NULL(sl_arange(0, INFINITY, 1), SL_EINVAL, "sl_arange");
		CHECK_NULL(sl_arange(0, 1, NAN), SL_EINVAL, "sl_arange");
		CHECK_NULL(sl_arange(0, 1e300, 1), SL_ESHAPE, "sl_arange");
	}
}

static void test_cast(void)
{
	SL_SCOPE {
		sl_tensor *x = FROM(-1.5, 2.5, 300, NAN);
		CHECK_VALUES(sl_cast(x, SL_INT32), -1, 2, 300, 0);
		CHECK_VALUES(sl_cast(x, SL_UINT8), 0, 2, 255, 0);
		CHECK_VALUES(sl_cast(x, SL_FLOAT64), -1.5, 2.5, 300, NAN);
		CHECK_NULL(sl_cast(x, SL_DTYPE_COUNT), SL_EDTYPE, "cast");
	}
}

static const struct slp_test function_tests[] = {
        {"of one tensor", test_one},
        {"of two tensors", test_two},
        {"of a tensor and a number", test_number},
        {"comparing data types", test_compare_types},
        {"integers and fractions", test_integer_and_fraction},
        {"in place", test_in_place},
        {"with itself", test_with_itself},
        {0},
};
static const struct slp_test gradient_tests[] = {
        {"broadcast", test_broadcast_gradients},
        {"used twice", test_used_twice},
        {"in place", test_in_place_gradients},
        {"cast", test_cast_gradients},
        {0},
};
static const struct slp_test making_tests[] = {
        {"filled", test_filled},
        {"arange", test_arange},
        {"cast", test_cast},
        {0},
};

int main(int argc, char **argv)
{
	return slp_test_main(
	        argc, argv,
	        (const struct slp_suite[]){
	                {.name = "functions",
	                 .tests = function_tests,
	                 .start = slp_start_engine,
	                 .stop = slp_stop_engine},
	                {.name = "gradients",
	                 .tests = gradient_tests,
	                 .start = slp_start_engine,
	                 .stop = slp_stop_engine},
	                {.name = "making", .tests = making_tests, .start = slp_start_engine, .stop = slp_stop_engine},
	                {0},
	        });
}
