/* Tensors of different data types in one call: every operation with every pair, and the functions that are made of
 * operations.  The rule is in doc/design.md. */
#include <math.h>
#include <string.h>
#include <starling.h>

#include "check.h"
#include "op_case.h"
#include "tensor/tensor.h"

/* ---- operations -------------------------------------------------------------------------------------------------- */

static bool is_any(enum sl_dtype a, enum sl_dtype b, bool (*what)(enum sl_dtype))
{
	return what(a) || what(b);
}

static bool is_half(enum sl_dtype d)
{
	return slp_is_half(d);
}

/* Operations that take float32 beside a half type. */
static bool takes_float32_beside(const struct slp_case *c, int i)
{
	static const char *const names[] = {"batch_norm", "layer_norm", "recurrent", "fused", "norm_affine"};
	for (size_t n = 0; n < sizeof names / sizeof *names; n++)
		if (!strncmp(c->op, names[n], strlen(names[n]))) return true;
	/* Statistics of the forward pass: (batch, heads, positions) of attention_heads. */
	return (!strcmp(c->op, "attention_grad") && i == 5) ||
	       (!strcmp(c->op, "attention_heads_grad") && c->in[i].shape.ndim == 3);
}

/* int8 stands for the other narrow integers, which are for make check-long. */
static bool tried(int dtype)
{
	return slp_long() || (dtype != SL_INT16 && dtype != SL_UINT16 && dtype != SL_UINT32);
}

/* Whether the case's call may have type b for input i, the others having a. */
static bool may_mix(const struct slp_case *c, int i, enum sl_dtype a, enum sl_dtype b)
{
	return takes_float32_beside(c, i) && is_any(a, b, is_half) && slp_promoted(a) == slp_promoted(b) &&
	       !(is_half(a) && is_half(b));
}

static enum sl_status types_of(const struct slp_case *c, int i, enum sl_dtype a, enum sl_dtype b)
{
	const struct sl_op *op = slp_op_find(c->op);
	struct slp_type in[SLP_CASE_INPUTS], out[SLP_MAX_OUTPUTS];
	union {
		char bytes[SLP_MAX_ATTRS];
		max_align_t align;
	} attrs = {{0}};
	if (c->attrs) memcpy(attrs.bytes, c->attrs, op->attrs_size);
	for (int k = 0; k < c->nin; k++) {
		enum sl_dtype d = c->in[k].dtype;
		in[k] = (struct slp_type){d != SL_FLOAT32 ? d : k == i ? b : a, c->in[k].shape};
	}
	return slp_call_types("here.c:1", op, attrs.bytes, c->nin, in, out);
}

/* The message names the call, its place, and both types, unless one of them is not taken at all. */
static void check_message(const char *name, enum sl_status got, enum sl_dtype a, enum sl_dtype b)
{
	const char *m = sl_error_message(), *said[] = {"here.c:1", name, sl_dtype_name(a), sl_dtype_name(b)};
	bool floats = slp_is_float(a) && slp_is_float(b);
	for (size_t n = 0; n < (floats ? 4 : 2); n++)
		CHECK_SAYING(got == SL_EDTYPE && strstr(m, said[n]), "%s of %s and %s: %s: %s", name, sl_dtype_name(a),
		             sl_dtype_name(b), sl_status_name(got), m);
}

/* Floats among the inputs, input i not counted. */
static int others(const struct slp_case *c, int i)
{
	int n = 0;
	for (int k = 0; k < c->nin; k++) n += k != i && c->in[k].dtype == SL_FLOAT32;
	return n;
}

static int check_pair(const struct slp_case *c, int i, enum sl_dtype a, enum sl_dtype b)
{
	bool may = may_mix(c, i, a, b);
	enum sl_status s = types_of(c, i, a, b);
	if (!may) check_message(c->op, s, a, b);
	else
		CHECK_SAYING(s == SL_OK || s == SL_EDTYPE, "%s, input %d of %s beside %s: %s", c->op, i,
		             sl_dtype_name(b), sl_dtype_name(a), sl_error_message());
	sl_error_clear();
	return s == SL_OK;
}

static void check_case(const struct slp_case *c, int *mixed)
{
	for (int i = 0; i < c->nin; i++) {
		if (c->in[i].dtype != SL_FLOAT32 || !others(c, i)) continue;
		for (int a = SL_DTYPE_DEFAULT + 1; a < SL_DTYPE_COUNT; a++)
			for (int b = SL_DTYPE_DEFAULT + 1; b < SL_DTYPE_COUNT; b++)
				if (a != b && tried(a) && tried(b))
					*mixed += check_pair(c, i, (enum sl_dtype)a, (enum sl_dtype)b);
	}
}

static void test_operations(void)
{
	int mixed = 0;
	for (const struct slp_case *const *t = slp_case_tables; *t; t++)
		for (const struct slp_case *c = *t; c->op; c++)
			if (!c->reject) check_case(c, &mixed);
	CHECK_SAYING(mixed > 0, "no operation takes float32 beside a half type");
}

/* ---- functions --------------------------------------------------------------------------------------------------- */

enum rule { ONE_TYPE, COMPARES, SECOND_IS_MASK, SECOND_IS_ADDED };

static const char at[] = "here.c:1";

#define VECTORS(X)                                                                                                     \
	X(add, ONE_TYPE, sl_add_at(at, a, b))                                                                          \
	X(sub, ONE_TYPE, sl_sub_at(at, a, b))                                                                          \
	X(mul, ONE_TYPE, sl_mul_at(at, a, b))                                                                          \
	X(div, ONE_TYPE, sl_div_at(at, a, b))                                                                          \
	X(pow, ONE_TYPE, sl_pow_at(at, a, b))                                                                          \
	X(maximum, ONE_TYPE, sl_maximum_at(at, a, b))                                                                  \
	X(minimum, ONE_TYPE, sl_minimum_at(at, a, b))                                                                  \
	X(eq, COMPARES, sl_eq_at(at, a, b))                                                                            \
	X(ne, COMPARES, sl_ne_at(at, a, b))                                                                            \
	X(lt, COMPARES, sl_lt_at(at, a, b))                                                                            \
	X(le, COMPARES, sl_le_at(at, a, b))                                                                            \
	X(gt, COMPARES, sl_gt_at(at, a, b))                                                                            \
	X(ge, COMPARES, sl_ge_at(at, a, b))                                                                            \
	X(logical_and, COMPARES, sl_logical_and_at(at, a, b))                                                          \
	X(logical_or, COMPARES, sl_logical_or_at(at, a, b))                                                            \
	X(logical_xor, COMPARES, sl_logical_xor_at(at, a, b))                                                          \
	X(add_inplace, ONE_TYPE, sl_add_inplace_at(at, a, b))                                                          \
	X(copy_inplace, ONE_TYPE, sl_copy_inplace_at(at, a, b))                                                        \
	X(dot, ONE_TYPE, sl_dot_at(at, a, b, (struct sl_dot_opts){false, true}))                                       \
	X(matmul, ONE_TYPE, sl_matmul_at(at, a, b, (struct sl_dot_opts){false, true}))                                 \
	X(linear, ONE_TYPE, sl_linear_at(at, a, b, NULL, (struct sl_linear_opts){true}))                               \
	X(l1_loss, ONE_TYPE, sl_l1_loss_at(at, a, b))                                                                  \
	X(l2_loss, ONE_TYPE, sl_l2_loss_at(at, a, b))                                                                  \
	X(bce_logits_loss, ONE_TYPE, sl_bce_logits_loss_at(at, a, b))                                                  \
	X(huber_loss, ONE_TYPE, sl_huber_loss_at(at, a, b, (struct sl_huber_loss_opts){0}))                            \
	X(concat, ONE_TYPE, sl_concat_at(at, (sl_tensor *[]){a, b}, 2, 0))                                             \
	X(where, ONE_TYPE, sl_where_at(at, a, a, b))                                                                   \
	X(masked_fill, SECOND_IS_MASK, sl_masked_fill_at(at, a, b, 0))                                                 \
	X(einsum, ONE_TYPE, sl_einsum_at(at, "ij,kj->ik", (sl_tensor *[]){a, b}, 2))                                   \
	X(kl_div, ONE_TYPE, sl_kl_div_at(at, a, b))                                                                    \
	X(cosine_similarity, ONE_TYPE, sl_cosine_similarity_at(at, a, b, 1))                                           \
	X(attention_keys, ONE_TYPE, sl_scaled_dot_product_attention_at(at, a, b, a, (struct sl_attention_opts){0}))    \
	X(attention_mask, SECOND_IS_ADDED,                                                                             \
	  sl_scaled_dot_product_attention_at(at, a, a, a, (struct sl_attention_opts){.mask = b}))

#define X(name, rule, call)                                                                                            \
	static sl_tensor *call_##name(sl_tensor *a, sl_tensor *b)                                                      \
	{                                                                                                              \
		return call;                                                                                           \
	}
VECTORS(X)
#undef X

static const struct function {
	const char *name;
	enum rule rule;
	sl_tensor *(*call)(sl_tensor *a, sl_tensor *b);
} functions[] = {
#define X(name, rule, call) {#name, rule, call_##name},
        VECTORS(X)
#undef X
};

static bool may_call(const struct function *f, enum sl_dtype a, enum sl_dtype b)
{
	bool halves = is_half(a) && is_half(b);
	switch (f->rule) {
	case ONE_TYPE: return false;
	case COMPARES: return !halves;
	case SECOND_IS_MASK: return true;
	case SECOND_IS_ADDED: return !slp_is_float(b);
	}
	return false;
}

static void check_function(const struct function *f, enum sl_dtype a, enum sl_dtype b)
{
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(3, 3), .dtype = a), *y = sl_ones(SL_SHAPE(3, 3), .dtype = b);
		sl_tensor *z = f->call(x, y);
		bool may = may_call(f, a, b), mask = f->rule == SECOND_IS_MASK || f->rule == SECOND_IS_ADDED;
		if (!may) {
			CHECK_SAYING(!z, "%s takes %s and %s", f->name, sl_dtype_name(a), sl_dtype_name(b));
			check_message("", sl_error(), a, b);
		} else if (!mask || is_half(a) || a == SL_FLOAT32) {
			CHECK_SAYING(z && sl_wait(z) == SL_OK, "%s of %s and %s: %s", f->name, sl_dtype_name(a),
			             sl_dtype_name(b), sl_error_message());
		}
		sl_error_clear();
	}
}

static void test_functions(void)
{
	for (size_t n = 0; n < sizeof functions / sizeof *functions; n++)
		for (int a = SL_DTYPE_DEFAULT + 1; a < SL_DTYPE_COUNT; a++)
			for (int b = SL_DTYPE_DEFAULT + 1; b < SL_DTYPE_COUNT; b++)
				if (a != b && tried(a) && tried(b))
					check_function(&functions[n], (enum sl_dtype)a, (enum sl_dtype)b);
}

/* Autocast converts what would not mix. */
static void test_autocast(void)
{
	SL_SCOPE
		SL_AUTOCAST(SL_BFLOAT16)
		{
			sl_tensor *a = sl_ones(SL_SHAPE(2, 2), .dtype = SL_BFLOAT16),
			          *b = sl_ones(SL_SHAPE(2, 2), .dtype = SL_FLOAT16);
			CHECK(sl_item(sl_sum(sl_add(a, b))) == 8);
			CHECK(sl_item(sl_sum(sl_dot(a, b))) == 8);
			CHECK(sl_item(sl_sum(sl_lt(a, b))) == 0);
			/* the mask is added: the query sees the first key alone */
			sl_tensor *v = sl_from(((float[]){3, 5}), SL_SHAPE(2, 1)),
			          *mask = sl_from(((float[]){0, -INFINITY}), SL_SHAPE(1, 2));
			sl_tensor *y = sl_scaled_dot_product_attention(sl_ones(SL_SHAPE(1, 1), .dtype = SL_BFLOAT16),
			                                               sl_ones(SL_SHAPE(2, 1)), v, .mask = mask);
			CHECK(sl_item(y) == 3);
			CHECK_OK(sl_wait_all());
		}
}

static const struct slp_test tests[] = {
        {"operations", test_operations}, {"functions", test_functions}, {"autocast", test_autocast}, {0}};

int main(int argc, char **argv)
{
	return slp_test_main(
	        argc, argv,
	        (const struct slp_suite[]){
	                {.name = "mixed", .tests = tests, .start = slp_start_engine, .stop = slp_stop_engine}, {0}});
}
