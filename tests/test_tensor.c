/* Tensors: making them, values in and out, views, references and scopes. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <starling.h>

#include "check.h"
#include "gate.h"
#include "tensor/tensor.h"

static int refs(const sl_tensor *t)
{
	return atomic_load(&t->storage->refs);
}

/* ---- types ------------------------------------------------------------------------------------------------------- */

static void test_dtypes(void)
{
	CHECK(sl_dtype_size(SL_FLOAT32) == 4 && sl_dtype_size(SL_FLOAT64) == 8);
	CHECK(sl_dtype_size(SL_INT32) == 4 && sl_dtype_size(SL_UINT8) == 1);
	CHECK(!strcmp(sl_dtype_name(SL_FLOAT64), "float64") && !strcmp(sl_dtype_name(SL_UINT8), "uint8"));
	CHECK(sl_dtype_size(SL_DTYPE_COUNT) == 0 && !strcmp(sl_dtype_name((enum sl_dtype) - 1), "?"));
}

static void test_shapes(void)
{
	char text[128];
	CHECK(SL_SHAPE(2, 3, 4).ndim == 3 && sl_shape_size(SL_SHAPE(2, 3, 4)) == 24);
	CHECK(sl_shape_size(SL_SCALAR) == 1 && sl_shape_size(SL_SHAPE(5, 0, 7)) == 0);
	CHECK(sl_shape_equal(SL_SHAPE(2, 3), SL_SHAPE(2, 3)));
	CHECK(!sl_shape_equal(SL_SHAPE(2, 3), SL_SHAPE(3, 2)) && !sl_shape_equal(SL_SHAPE(2), SL_SHAPE(2, 1)));
	CHECK(!strcmp(sl_shape_string(SL_SCALAR, text), "()"));
	CHECK(!strcmp(sl_shape_string(SL_SHAPE(3), text), "(3,)"));
	CHECK(!strcmp(sl_shape_string(SL_SHAPE(2, 0, 7), text), "(2, 0, 7)"));
	int64_t m = INT64_MIN;
	CHECK(strlen(sl_shape_string(SL_SHAPE(m, m, m, m, m, m), text)) == 127); /* the longest: cut off */
}

static void test_invalid_shapes(void)
{
	static const sl_shape invalid[] = {
	        {9, {1, 1, 1, 1, 1, 1, 1, 1}},
	        {-1, {0}},
	        {1, {-1}},
	        {3, {2, -3, 4}},
	        {2, {0, -1}},
	        {1, {INT64_MAX}},
	        {2, {INT64_MAX, 2}},
	        {4, {1 << 20, 1 << 20, 1 << 20, 1 << 20}},
	        {6, {1 << 30, 1 << 30, 1 << 30, 1 << 30, 1 << 30, 1 << 30}},
	};
	float v = 0;
	for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++) {
		CHECK_NULL(sl_from(&v, invalid[i]), SL_ESHAPE, "sl_from");
		CHECK_NULL(sl_adopt(&v, invalid[i], NULL, NULL), SL_ESHAPE, "sl_adopt");
		CHECK_NULL(sl_zeros(invalid[i]), SL_ESHAPE);
		CHECK_NULL(sl_ones(invalid[i], .dtype = SL_UINT8), SL_ESHAPE);
	}
}

static void test_invalid_arguments(void)
{
	float v[2] = {0};
	CHECK_NULL(sl_from(v, SL_SHAPE(2), .dtype = SL_DTYPE_COUNT), SL_EDTYPE, "sl_from");
	CHECK_NULL(sl_from(v, SL_SHAPE(2), .dtype = (enum sl_dtype) - 1), SL_EDTYPE, "-1");
	CHECK_NULL(sl_zeros(SL_SHAPE(2), .dtype = SL_DTYPE_COUNT), SL_EDTYPE);
	CHECK_NULL(sl_from(NULL, SL_SHAPE(2)), SL_EINVAL, "data is NULL");
	SL_SCOPE {
		sl_tensor *t = sl_from(v, SL_SHAPE(2));
		CHECK_STATUS(sl_read(t, v, 4), SL_EINVAL, "float32 (2,)", "8 bytes", "4 were given", SL_HERE);
		CHECK_STATUS(sl_write(t, v, 9), SL_EINVAL, "sl_write", "9 were given", SL_HERE);
		CHECK(isnan(sl_item(t)));
		CHECK_STATUS(sl_error(), SL_ESHAPE, "sl_item", "single element");
		sl_error_clear();
	}
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

#define CHECK_ROUND_TRIP(symbol, type, ...)                                                                            \
	SL_SCOPE {                                                                                                     \
		type in[] = {__VA_ARGS__}, out[sizeof in / sizeof *in];                                                \
		int64_t n = sizeof in / sizeof *in;                                                                    \
		sl_tensor *t = sl_from(in, SL_SHAPE(n), .dtype = symbol);                                              \
		in[0] = in[1]; /* the memory is ours again */                                                          \
		CHECK(sl_tensor_dtype(t) == symbol && sl_tensor_bytes(t) == sizeof in);                                \
		CHECK_OK(sl_read(t, out, sizeof out));                                                                 \
		CHECK(!memcmp(&out[0], &((type[]){__VA_ARGS__})[0], sizeof out));                                      \
		CHECK_OK(sl_write(t, in, sizeof in));                                                                  \
		CHECK_OK(sl_read(t, out, sizeof out));                                                                 \
		CHECK(!memcmp(out, in, sizeof in));                                                                    \
		CHECK(sl_item(sl_rows(t, 1, 2)) == (double)in[1]);                                                     \
	}

static void test_round_trip(void)
{
	CHECK_ROUND_TRIP(SL_FLOAT32, float, 1.5f, -0.0f, INFINITY, 1e-45f, 3e38f);
	CHECK_ROUND_TRIP(SL_FLOAT64, double, 1e308, 5e-324, 0.1, -INFINITY);
	CHECK_ROUND_TRIP(SL_INT32, int32_t, INT32_MIN, INT32_MAX, 0, -1);
	CHECK_ROUND_TRIP(SL_UINT8, uint8_t, 0, 255, 128);
	CHECK_ROUND_TRIP(SL_INT8, int8_t, INT8_MIN, INT8_MAX, 0);
	CHECK_ROUND_TRIP(SL_INT16, int16_t, INT16_MIN, INT16_MAX, 0);
	CHECK_ROUND_TRIP(SL_UINT16, uint16_t, 0, UINT16_MAX);
	CHECK_ROUND_TRIP(SL_UINT32, uint32_t, 0, UINT32_MAX);
	CHECK_ROUND_TRIP(SL_UINT64, uint64_t, 0, UINT64_MAX, (uint64_t)1 << 63);
}

static void test_made(void)
{
	SL_SCOPE {
		CHECK_ALL(sl_zeros(SL_SHAPE(3, 4)), 0);
		CHECK_ALL(sl_ones(SL_SHAPE(300, 400)), 1);
		CHECK_ALL(sl_full(SL_SHAPE(2), 2.5, .dtype = SL_FLOAT64), 2.5);
		CHECK_ALL(sl_full(SL_SHAPE(5), 7, .dtype = SL_INT32), 7);
		CHECK_ALL(sl_full(SL_SHAPE(5), 255, .dtype = SL_UINT8), 255);
		CHECK_VALUES(sl_arange(0, 5, 1), 0, 1, 2, 3, 4);
		CHECK(sl_item(sl_full(SL_SCALAR, 0.5)) == 0.5);
		CHECK(sl_tensor_shape(sl_ones(SL_SCALAR)).ndim == 0);
		CHECK(sl_tensor_size(sl_ones(SL_SHAPE(2, 3, 4, 5, 6, 7))) == 5040);
	}
}

static void test_empty(void)
{
	SL_SCOPE {
		sl_tensor *t = sl_from(NULL, SL_SHAPE(0, 3)), *z = sl_zeros(SL_SHAPE(3, 0));
		CHECK(sl_tensor_size(t) == 0 && sl_tensor_bytes(t) == 0);
		CHECK_OK(sl_read(t, NULL, 0));
		CHECK_OK(sl_write(t, NULL, 0));
		CHECK_OK(sl_wait(sl_add(t, t)));
		CHECK_OK(sl_wait(sl_add_scalar(z, 1)));
		CHECK(sl_shape_equal(sl_tensor_shape(sl_flatten(z)), SL_SHAPE(3, 0)));
		CHECK(sl_tensor_size(sl_rows(t, 0, 0)) == 0);
		CHECK(sl_tensor_size(sl_rows(sl_ones(SL_SHAPE(2)), 1, 1)) == 0);
		CHECK(sl_tensor_shape(sl_reshape(t, SL_SHAPE(0))).ndim == 1);
		CHECK_NULL(sl_reshape(t, SL_SHAPE(-1, 0)), SL_ESHAPE);
		CHECK_NULL(sl_reshape(t, SL_SCALAR), SL_ESHAPE);
		CHECK(sl_tensor_size(sl_clone(t)) == 0);
		CHECK_OK(sl_wait_all());
	}
}

static void test_large(void)
{
	int64_t n = (int64_t)1 << 24; /* 64 MiB */
	SL_SCOPE {
		sl_tensor *t = sl_add_scalar(sl_zeros(SL_SHAPE(n / 1024, 1024)), 3);
		CHECK_ALL(t, 3);
		CHECK_ALL(sl_rows(t, n / 1024 - 1, n / 1024), 3);
	}
}

/* Written while operations are under way: those before see the old values, those after the new ones. */
static void test_write_in_order(void)
{
	SL_SCOPE {
		float v[3] = {1, 2, 3}, w[3] = {5, 6, 7};
		sl_tensor *t = sl_from(v, SL_SHAPE(3)), *before = sl_add_scalar(t, 1);
		CHECK_OK(sl_write(t, w, sizeof w));
		sl_tensor *after = sl_add_scalar(t, 1);
		CHECK_OK(sl_write(sl_rows(t, 1, 2), v, sizeof *v));
		CHECK_VALUES(before, 2, 3, 4);
		CHECK_VALUES(after, 6, 7, 8);
		CHECK_VALUES(t, 5, 1, 7);
	}
}

/* ---- views ------------------------------------------------------------------------------------------------------- */

static void test_views_share(void)
{
	SL_SCOPE {
		sl_tensor *t = sl_zeros(SL_SHAPE(4, 3)), *r = sl_rows(t, 1, 3), *s = sl_rows(r, 1, 2),
		          *f = sl_reshape(t, SL_SHAPE(2, -1));
		sl_add_scalar_(r, 1);
		sl_add_scalar_(s, 1);
		CHECK_VALUES(t, 0, 0, 0, 1, 1, 1, 2, 2, 2, 0, 0, 0);
		CHECK_VALUES(f, 0, 0, 0, 1, 1, 1, 2, 2, 2, 0, 0, 0);
		CHECK(sl_shape_equal(sl_tensor_shape(f), SL_SHAPE(2, 6)));
		CHECK_VALUES(sl_add(s, s), 4, 4, 4);
		CHECK_OK(sl_write(sl_flatten(s), ((float[]){7, 8, 9}), 12));
		CHECK_VALUES(sl_rows(f, 1, 2), 7, 8, 9, 0, 0, 0);
		CHECK_VALUES(sl_detach(s), 7, 8, 9);
		sl_tensor *c = sl_clone(r);
		sl_add_scalar_(c, 1);
		CHECK_VALUES(r, 1, 1, 1, 7, 8, 9);
		CHECK(refs(c) == 1 && refs(t) == 7);
	}
}

/* A view keeps the values when the tensor goes. */
static void test_view_outlives(void)
{
	sl_tensor *view = NULL;
	SL_SCOPE
		view = sl_retain(sl_rows(sl_reshape(sl_full(SL_SHAPE(6), 4), SL_SHAPE(3, 2)), 2, 3));
	CHECK(refs(view) == 1);
	CHECK_VALUES(view, 4, 4);
	sl_release(view);
}

static void check_reshape(sl_shape from, sl_shape to, sl_shape expected)
{
	SL_SCOPE
		CHECK(sl_shape_equal(sl_tensor_shape(sl_reshape(sl_zeros(from), to)), expected));
}

static void test_reshape(void)
{
	check_reshape(SL_SHAPE(2, 3), SL_SHAPE(-1), SL_SHAPE(6));
	check_reshape(SL_SHAPE(2, 3), SL_SHAPE(3, -1), SL_SHAPE(3, 2));
	check_reshape(SL_SHAPE(1, 1), SL_SCALAR, SL_SCALAR);
	check_reshape(SL_SCALAR, SL_SHAPE(1, 1, 1), SL_SHAPE(1, 1, 1));
	check_reshape(SL_SHAPE(0, 3), SL_SHAPE(7, 0), SL_SHAPE(7, 0));
	check_reshape(SL_SHAPE(0, 3), SL_SHAPE(3, -1), SL_SHAPE(3, 0));
	SL_SCOPE {
		sl_tensor *t = sl_zeros(SL_SHAPE(2, 3));
		CHECK_NULL(sl_reshape(t, SL_SHAPE(4, 2)), SL_ESHAPE, "(2, 3)", "(4, 2)");
		CHECK_NULL(sl_reshape(t, SL_SHAPE(-1, -1)), SL_ESHAPE);
		CHECK_NULL(sl_reshape(t, SL_SHAPE(-2, -3)), SL_ESHAPE);
		CHECK_NULL(sl_reshape(t, SL_SHAPE(4, -1)), SL_ESHAPE);
		CHECK_NULL(sl_reshape(t, SL_SHAPE(INT64_MAX, INT64_MAX)), SL_ESHAPE);
		CHECK_NULL(sl_reshape(t, ((sl_shape){9, {6, 1, 1, 1, 1, 1, 1, 1}})), SL_ESHAPE);
		CHECK_NULL(sl_reshape(t, ((sl_shape){-1, {6}})), SL_ESHAPE);
	}
}

static void test_flatten(void)
{
	SL_SCOPE {
		CHECK(sl_shape_equal(sl_tensor_shape(sl_flatten(sl_zeros(SL_SHAPE(2, 3, 4)))), SL_SHAPE(2, 12)));
		CHECK(sl_shape_equal(sl_tensor_shape(sl_flatten(sl_zeros(SL_SHAPE(5)))), SL_SHAPE(5, 1)));
		CHECK(sl_shape_equal(sl_tensor_shape(sl_flatten(sl_zeros(SL_SCALAR))), SL_SHAPE(1, 1)));
	}
}

static void test_rows_rejected(void)
{
	SL_SCOPE {
		sl_tensor *t = sl_zeros(SL_SHAPE(4, 3));
		CHECK_NULL(sl_rows(t, -1, 2), SL_ESHAPE, "-1 to 2", "(4, 3)");
		CHECK_NULL(sl_rows(t, 3, 2), SL_ESHAPE, "3 to 2");
		CHECK_NULL(sl_rows(t, 0, 5), SL_ESHAPE, "0 to 5");
		CHECK_NULL(sl_rows(sl_zeros(SL_SCALAR), 0, 1), SL_ESHAPE, "()");
		CHECK(sl_rows(t, 0, 4) != NULL && sl_rows(t, 4, 4) != NULL);
	}
}

/* ---- references and scopes --------------------------------------------------------------------------------------- */

static void test_references(void)
{
	sl_tensor *t = sl_ones(SL_SHAPE(2)), *view = sl_rows(t, 0, 1);
	CHECK(refs(t) == 2);
	CHECK(sl_retain(view) == view);
	sl_release(view);
	CHECK(refs(t) == 2);
	sl_release(view);
	CHECK(refs(t) == 1);
	CHECK_ALL(t, 1);
	sl_release(t);
}

/* How a block is left; each time the views made in it must go. */
static int leave_by_return(sl_tensor *t)
{
	SL_SCOPE {
		sl_rows(t, 0, 1);
		SL_SCOPE {
			sl_rows(t, 0, 1);
			return refs(t);
		}
	}
	return -1;
}

static int leave_by_goto(sl_tensor *t)
{
	int inside = -1;
	SL_SCOPE {
		sl_rows(t, 0, 1);
		SL_SCOPE {
			sl_rows(t, 0, 1);
			inside = refs(t);
			goto out;
		}
	}
out:
	return inside;
}

static int leave_by_break(sl_tensor *t)
{
	int inside = -1;
	SL_SCOPE {
		sl_rows(t, 0, 1);
		inside = refs(t);
		if (inside) break;
		inside = -1;
	}
	return inside;
}

static int leave_by_continue(sl_tensor *t)
{
	int rounds = 0;
	for (int i = 0; i < 3; i++)
		SL_SCOPE {
			sl_rows(t, 0, 1);
			rounds += refs(t);
			if (i < 2) continue;
			rounds += 10;
		}
	return rounds;
}

static void test_leaving(void)
{
	sl_tensor *t = sl_ones(SL_SHAPE(2));
	CHECK(leave_by_return(t) == 3 && refs(t) == 1);
	CHECK(leave_by_goto(t) == 3 && refs(t) == 1);
	CHECK(leave_by_break(t) == 2 && refs(t) == 1);
	CHECK(leave_by_continue(t) == 16 && refs(t) == 1);
	sl_release(t);
}

static void test_nested_scopes(void)
{
	sl_tensor *t = sl_ones(SL_SHAPE(2)), *kept = NULL;
	SL_SCOPE {
		sl_tensor *outer = sl_rows(t, 0, 1);
		SL_SCOPE {
			sl_rows(t, 0, 1);
			kept = sl_retain(sl_rows(t, 1, 2));
			CHECK(refs(t) == 4);
		}
		CHECK(refs(t) == 3);
		CHECK_ALL(outer, 1);
		for (int i = 0; i < 200; i++) sl_rows(t, 0, 1);
		CHECK(refs(t) == 203);
	}
	CHECK(refs(t) == 2);
	CHECK_ALL(kept, 1);
	sl_release(kept);
	kept = sl_rows(t, 0, 1); /* in no scope: ours */
	CHECK(refs(t) == 2);
	sl_release(kept);
	sl_release(t);
}

/* Scopes belong to threads. */
static void *scoped_thread(void *arg)
{
	sl_tensor *t = arg;
	for (int i = 0; i < 200; i++)
		SL_SCOPE
			for (int k = 0; k < 10; k++) sl_rows(t, 0, 1);
	return NULL;
}

static void test_scope_threads(void)
{
	sl_tensor *t = sl_ones(SL_SHAPE(2));
	SL_SCOPE {
		pthread_t threads[2];
		sl_rows(t, 0, 1);
		for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, scoped_thread, t);
		for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
		CHECK(refs(t) == 2);
	}
	CHECK(refs(t) == 1);
	sl_release(t);
}

/* ------------------------------------------------------------------------------------------------------------------ */

/* What sl_values shows are the tensor's values themselves; where they may change behind the program's back there are
 * none. */
static void test_values_without_a_copy(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_mul_scalar(sl_ones(SL_SHAPE(4)), 3), *row = sl_rows(x, 1, 2);
		const float *v = sl_values(x), *part = sl_values(row);
		CHECK(!v == !part);
		CHECK(!v || (v[0] == 3 && part == v + 1));
		if (part) sl_values_end(row);
		sl_add_scalar_(x, 1);
		CHECK_OK(sl_wait(x));
		CHECK(!v || v[3] == 4);
		CHECK(!sl_values(x)); /* written twice */
		if (v) sl_values_end(x);
		sl_tensor *w = sl_ones(SL_SHAPE(2));
		sl_attach_grad(w);
		CHECK(!sl_values(w) && sl_error() == SL_OK);
	}
	sl_values_end(NULL);
}

static const struct slp_test type_tests[] = {
        {"dtypes", test_dtypes},
        {"shapes", test_shapes},
        {"invalid shapes", test_invalid_shapes},
        {"invalid arguments", test_invalid_arguments},
        {0},
};
/* Behind a closed gate nothing is computed: the time is up; with the gate open everything is there. */
static void test_poll(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(3));
		CHECK(sl_wait(x) == SL_OK && sl_poll(x, 0));
		slp_gate_close(0);
		sl_tensor *y = sl_add_scalar(x, 1);
		CHECK(!sl_poll(y, 0.01));
		CHECK(!sl_poll(NULL, 0.01));
		CHECK(sl_poll(x, SLP_PATIENCE)); /* what reads it does not matter */
		slp_gate_open();
		CHECK(sl_poll(y, SLP_PATIENCE));
		CHECK(sl_poll(NULL, SLP_PATIENCE));
		float values[3];
		CHECK(sl_read(y, values, sizeof values) == SL_OK && values[2] == 2);
		CHECK(sl_poll(sl_var("data"), 0)); /* a wait would say at once what is wrong */
		sl_error_clear();
	}
}

static const struct slp_test value_tests[] = {
        {"round trip", test_round_trip},
        {"made", test_made},
        {"empty", test_empty},
        {"large", test_large},
        {"write in order", test_write_in_order},
        {"poll", test_poll},
        {"without a copy", test_values_without_a_copy},
        {0},
};
static const struct slp_test view_tests[] = {
        {"share memory", test_views_share}, {"outlive the tensor", test_view_outlives}, {"reshape", test_reshape},
        {"flatten", test_flatten},          {"rows rejected", test_rows_rejected},      {0},
};
static const struct slp_test lifetime_tests[] = {
        {"references", test_references},
        {"leaving a scope", test_leaving},
        {"nested scopes", test_nested_scopes},
        {"scopes of threads", test_scope_threads},
        {0},
};

int main(int argc, char **argv)
{
	return slp_test_main(
	        argc, argv,
	        (const struct slp_suite[]){
	                {.name = "types", .tests = type_tests, .start = slp_start_engine, .stop = slp_stop_engine},
	                {.name = "values", .tests = value_tests, .start = slp_start_engine, .stop = slp_stop_engine},
	                {.name = "views", .tests = view_tests, .start = slp_start_engine, .stop = slp_stop_engine},
	                {.name = "lifetime",
	                 .tests = lifetime_tests,
	                 .start = slp_start_engine,
	                 .stop = slp_stop_engine},
	                {0},
	        });
}
