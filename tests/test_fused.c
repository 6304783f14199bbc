/* fused: programs give the bits of the operations that they are made of, one by one; making programs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <starling.h>

#include "op_list/binary.h"
#include "check.h"
#include "fill/fill.h"
#include "elementwise/fused.h"

enum { ROWS = 37, COLUMNS = 131 };

/* Reals in [low, high), and a few special ones. */
static sl_tensor *numbers(sl_shape shape, double low, double high)
{
	static const float special[] = {0, -0.0f, 1, -1, INFINITY, -INFINITY, NAN, 1e-40f, 3e38f};
	int64_t n = sl_shape_size(shape), count = (int64_t)(sizeof special / sizeof *special);
	float *values = malloc((size_t)n * sizeof *values);
	for (int64_t i = 0; i < n; i++)
		values[i] = i % 97 < count && n > 97 ? special[i % 97] : (float)(low + (high - low) * drand48());
	sl_tensor *t = sl_from(values, shape);
	free(values);
	return t;
}

static bool same_bits(sl_tensor *a, sl_tensor *b)
{
	size_t bytes = sl_tensor_bytes(a);
	char *x = malloc(bytes + 1), *y = malloc(bytes + 1);
	bool same = bytes == sl_tensor_bytes(b) && sl_read(a, x, bytes) == SL_OK && sl_read(b, y, bytes) == SL_OK &&
	            !memcmp(x, y, bytes);
	free(x);
	free(y);
	return same;
}

/* op alone, and twice in a program, against op called. */
static void check_function(const struct sl_op *op, sl_tensor *a, sl_tensor *b)
{
	struct slp_value number = {0.3};
	struct slp_fused_attrs f = {0};
	sl_tensor *in[] = {a, b};
	int first = slp_fused_add(&f, op, &number, 0, 1);
	slp_fused_add(&f, op, &number, first, 1);
	sl_tensor *once = slp_apply1(SL_HERE, op, &number, op->nin_max, in);
	sl_tensor *twice = slp_apply1(SL_HERE, op, &number, op->nin_max, (sl_tensor *[]){once, b});
	CHECK_SAYING(same_bits(twice, slp_apply1(SL_HERE, &slp_op_fused, &f, 2, in)), "%s", op->name);
	CHECK_OK(sl_error());
}

static void test_functions(void)
{
	int count = 0;
	for (const struct sl_op **op = slp_ops; *op; op++) {
		if (!slp_fused_takes(*op)) continue;
		count++;
		SL_SCOPE {
			check_function(*op, numbers(SL_SHAPE(ROWS, COLUMNS), -3, 3),
			               numbers(SL_SHAPE(ROWS, COLUMNS), -3, 3));
			check_function(*op, numbers(SL_SHAPE(70003), -3, 3), numbers(SL_SHAPE(70003), -3, 3));
			check_function(*op, sl_cast(numbers(SL_SHAPE(3001), -3, 3), SL_FLOAT64),
			               sl_cast(numbers(SL_SHAPE(3001), -3, 3), SL_FLOAT64));
		}
	}
	CHECK(count > 50);
}

/* With operands that are broadcast in all ways. */
static void test_broadcast(void)
{
	const sl_shape shapes[] = {SL_SCALAR, SL_SHAPE(131), SL_SHAPE(5, 1, 1), SL_SHAPE(5, 7, 131), SL_SHAPE(7, 1)};
	for (int i = 0; i < 25; i++)
		SL_SCOPE {
			sl_tensor *x = numbers(SL_SHAPE(5, 7, 131), -2, 2), *a = numbers(shapes[i % 5], -2, 2),
			          *b = numbers(shapes[i / 5], 1, 2);
			struct slp_fused_attrs f = {0};
			int t = slp_fused_add(&f, slp_op_find("add"), NULL, 0, 1);
			t = slp_fused_add(&f, slp_op_find("div"), NULL, t, 2);
			t = slp_fused_add(&f, slp_op_find("tanh"), NULL, t, 0);
			slp_fused_add(&f, slp_op_find("mul"), NULL, t, 1);
			sl_tensor *want = sl_mul(sl_tanh(sl_div(sl_add(x, a), b)), a);
			CHECK(same_bits(want, slp_apply1(SL_HERE, &slp_op_fused, &f, 3, (sl_tensor *[]){x, a, b})));
		}
}

static void test_in_place(void)
{
	SL_SCOPE {
		sl_tensor *x = numbers(SL_SHAPE(9000), -2, 2), *y = numbers(SL_SHAPE(9000), -2, 2);
		struct slp_fused_attrs f = {0};
		int t = slp_fused_add(&f, slp_op_find("mul"), NULL, 0, 1);
		t = slp_fused_add(&f, slp_op_find("sub"), NULL, t, 0);
		slp_fused_add(&f, slp_op_find("mul"), NULL, t, 0);
		sl_tensor *want = sl_mul(sl_sub(sl_mul(x, y), x), x);
		CHECK(slp_apply_inplace(SL_HERE, &slp_op_fused, &f, 2, (sl_tensor *[]){x, y}) == x);
		CHECK(same_bits(want, x));
	}
}

/* A full program takes no more, and stays as it was; equal numbers share a place. */
static void test_limits(void)
{
	const struct sl_op *scaled = slp_op_find("mul_scalar"), *add = slp_op_find("add");
	struct slp_fused_attrs f = {0};
	CHECK(slp_fused_add(&f, slp_op_find("sum"), NULL, 0, 0) == -1 && slp_fused_count(&f) == 0);
	for (int i = 0; i < SLP_FUSED_NUMBERS; i++)
		CHECK(slp_fused_add(&f, scaled, &(struct slp_value){i}, 0, 0) == SLP_FUSED_RESULT + i);
	struct slp_fused_attrs before = f;
	CHECK(slp_fused_add(&f, scaled, &(struct slp_value){99}, 0, 0) == -1);
	CHECK(!memcmp(&f, &before, sizeof f));
	CHECK(slp_fused_add(&f, scaled, &(struct slp_value){3}, 0, 0) == SLP_FUSED_RESULT + SLP_FUSED_NUMBERS);
	while (slp_fused_count(&f) < SLP_FUSED_STEPS) CHECK(slp_fused_add(&f, add, NULL, 0, 0) > 0);
	CHECK(slp_fused_add(&f, add, NULL, 0, 0) == -1);
	SL_SCOPE
		CHECK_VALUES(slp_apply1(SL_HERE, &slp_op_fused, &f, 1, (sl_tensor *[]){sl_arange(1, 3, 1)}), 2, 4);
}

static const struct slp_test tests[] = {{"functions", test_functions},
                                        {"broadcast", test_broadcast},
                                        {"in place", test_in_place},
                                        {"limits", test_limits},
                                        {0}};

int main(int argc, char **argv)
{
	return slp_test_main(
	        argc, argv,
	        (const struct slp_suite[]){
	                {.name = "fused", .tests = tests, .start = slp_start_engine, .stop = slp_stop_engine}, {0}});
}
