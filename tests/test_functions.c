/* Functions made of operations: their values and gradients are PyTorch's, eagerly and hybridised; mistakes; random
 * numbers. */
#include <math.h>

#include "check.h"

enum { MOST = 64 };

/* Numbers without a pattern; as in the script that made functions.def, 1.5 sin(0.7 i + 0.3 + k). */
static sl_tensor *filled(sl_shape shape, int k)
{
	double v[MOST];
	for (int i = 0; i < MOST; i++) v[i] = 1.5 * sin(0.7 * i + 0.3 + k);
	return sl_from(v, shape, .dtype = SL_FLOAT64);
}
#define OTHER(k, ...) filled(SL_SHAPE(__VA_ARGS__), k)

static sl_tensor *doubles(const double *v, sl_shape shape)
{
	return sl_from(v, shape, .dtype = SL_FLOAT64);
}

static sl_tensor *ints(const int32_t *v, sl_shape shape)
{
	return sl_from(v, shape, .dtype = SL_INT32);
}
#define INTS(shape, ...) ints((const int32_t[]){__VA_ARGS__}, SL_SHAPE shape)
#define DOUBLES(shape, ...) doubles((const double[]){__VA_ARGS__}, SL_SHAPE shape)
#define LIST(...) ((sl_tensor *const[]){__VA_ARGS__})

/* ---- the functions, as functions.def names them ------------------------------------------------------------------ */

#define FUNCTION(name, value)                                                                                          \
	static sl_tensor *name##_of(sl_tensor *x)                                                                      \
	{                                                                                                              \
		return value;                                                                                          \
	}

FUNCTION(where, sl_where(sl_gt_scalar(x, 0.2), sl_mul_scalar(x, 2), OTHER(1, 2, 3)))
FUNCTION(where_of_infinities, sl_where(sl_cast(sl_gt_scalar(x, 0), SL_BOOL), x,
                                       sl_masked_fill(sl_full(SL_SHAPE(2, 3), INFINITY, .dtype = SL_FLOAT64),
                                                      sl_cast(sl_le_scalar(x, 0), SL_INT32), -1)))
FUNCTION(masked_fill, sl_softmax(sl_masked_fill(x, sl_gt_scalar(OTHER(2, 2, 3), 0.5), -INFINITY), 1))
FUNCTION(clip, sl_clip(x, -0.5, 0.8))
FUNCTION(leaky_relu, sl_leaky_relu(x, 0.1))
FUNCTION(elu, sl_elu(x, 1.3))
FUNCTION(softsign, sl_softsign(x))
FUNCTION(logsumexp, sl_logsumexp(x, SL_AXES(-1)))
FUNCTION(logsumexp_of_all, sl_logsumexp(sl_mul_scalar(x, 100), .keepdims = true))
FUNCTION(variance, sl_variance(x, SL_AXES(0), .ddof = 1))
FUNCTION(std, sl_std(x, .keepdims = true))
FUNCTION(stack, sl_stack(LIST(x, sl_mul_scalar(x, 2)), 2, 1))
FUNCTION(stack_last, sl_stack(LIST(x, sl_mul_scalar(x, 2), OTHER(1, 2, 2)), 3, -1))
FUNCTION(tile, sl_tile(x, -1, 3))
FUNCTION(repeat, sl_repeat(x, 0, 2))
FUNCTION(flip, sl_mul(sl_flip(x), OTHER(1, 2, 3)))
FUNCTION(flip_rows, sl_mul(sl_flip(x, SL_AXES(0)), OTHER(1, 2, 3)))
FUNCTION(pad, sl_mul(sl_pad(x, 1, 2, 1, .value = 0.25), OTHER(1, 2, 6)))
FUNCTION(pad_reflect, sl_mul(sl_pad(x, -1, 3, 1, .reflect = true), OTHER(1, 2, 8)))
FUNCTION(index_add, sl_index_add(OTHER(1, 4, 2), INTS((3), 3, 0, 3), x))
#define ATTENTION(q, k, v, ...) sl_scaled_dot_product_attention(q, k, v, __VA_ARGS__)
FUNCTION(attention_q, ATTENTION(x, OTHER(1, 1, 2, 4, 3), OTHER(2, 1, 2, 4, 2), .causal = true))
FUNCTION(attention_k, ATTENTION(OTHER(1, 2, 3, 2), x, OTHER(2, 2, 4, 3), .mask = OTHER(3, 3, 4)))
FUNCTION(attention_v, ATTENTION(OTHER(1, 2, 3, 2), OTHER(2, 2, 4, 2), x,
                                .mask = sl_gt_scalar(OTHER(3, 2, 1, 4), 0, .dtype = SL_BOOL)))
FUNCTION(take_along, sl_take_along(x, INTS((2, 4, 2), 0, 1, 2, 1, 2, 1, 0, 0, 2, 1, 0, 1, 1, 2, 2, 2), 1))
FUNCTION(scatter_add, sl_scatter_add(OTHER(1, 2, 4), INTS((2, 3), 0, 3, 0, 1, 2, 3), x, -1))
FUNCTION(scatter_add_to, sl_scatter_add(x, INTS((1, 3), 2, 0, 2), OTHER(1, 1, 3), 0))
FUNCTION(sort, sl_mul(sl_sort(x, 1, false), OTHER(1, 2, 5)))
FUNCTION(sort_down, sl_mul(sl_sort(x, 0, true), OTHER(1, 5, 2)))
FUNCTION(topk, sl_topk(x, 2, -1, NULL))
FUNCTION(cumsum, sl_cumsum(x, 1))
FUNCTION(prod, sl_prod(sl_mul(x, DOUBLES((3, 2), 0, 1, 1, 1, 1, 0)), SL_AXES(0)))
FUNCTION(einsum_product, sl_einsum("ij,kj->ik", x, OTHER(1, 4, 3)))
FUNCTION(einsum_attention, sl_einsum("bqhd, bkhd -> bhqk", x, OTHER(1, 1, 3, 2, 3)))
FUNCTION(einsum_transpose, sl_einsum("ij->ji", x))
FUNCTION(einsum_sum, sl_einsum("ij->", x))
FUNCTION(einsum_same, sl_einsum("...->...", x))
FUNCTION(einsum_outer, sl_einsum("i,j", x, OTHER(1, 2)))
FUNCTION(einsum_three, sl_einsum("ab,bc,cd->da", x, OTHER(1, 3, 2), OTHER(2, 2, 4)))
FUNCTION(einsum_batch, sl_einsum("ijk,jil->kl", x, OTHER(1, 3, 2, 2)))
FUNCTION(einsum_sums_first, sl_einsum("ab,cd->ac", x, OTHER(1, 4, 2)))
FUNCTION(einsum_dots, sl_einsum("...i,ji->...j", x, OTHER(1, 2, 3)))
FUNCTION(einsum_broadcast, sl_einsum("...ij,k...j->i...k", x, OTHER(1, 2, 3, 3)))
FUNCTION(einsum_dots_summed, sl_einsum("a...,...->a", x, OTHER(1, 2, 3)))
FUNCTION(einsum_diagonal, sl_einsum("ii->i", x))
FUNCTION(einsum_trace, sl_einsum("iji", x))
FUNCTION(einsum_diagonals, sl_einsum("ijij,jk->jk", x, OTHER(1, 2, 3)))
FUNCTION(conv1d, sl_conv1d(x, OTHER(1, 3, 2, 3), OTHER(2, 3), .stride = 2, .pad = 1))
FUNCTION(conv1d_groups, sl_conv1d(x, OTHER(1, 2, 2, 2), NULL, .groups = 2, .dilation = 2))
FUNCTION(conv_transpose2d, sl_conv_transpose2d(x, OTHER(1, 2, 2, 3, 3), OTHER(2, 2), .stride = {2, 2}, .pad = {1, 1},
                                               .output_pad = {1, 1}))
FUNCTION(conv_transpose2d_more,
         sl_conv_transpose2d(x, OTHER(1, 2, 1, 2, 2), NULL, .pad = {1, 1}, .dilation = {2, 2}, .output_pad = {0, 1}))
FUNCTION(conv_transpose2d_weight, sl_conv_transpose2d(OTHER(1, 1, 2, 2, 2), x, NULL, .groups = 2))
FUNCTION(resize, sl_resize2d(x, 5, 4))
FUNCTION(resize_whole, sl_resize2d(x, 4, 3))
FUNCTION(resize_bilinear, sl_resize2d(x, 5, 4, .bilinear = true))
FUNCTION(resize_aligned, sl_resize2d(x, 5, 4, .bilinear = true, .align_corners = true))
FUNCTION(resize_smaller, sl_resize2d(x, 3, 3, .bilinear = true))
FUNCTION(adaptive_avg, sl_adaptive_pool2d(x, SL_POOL_AVG, 3, 4))
FUNCTION(adaptive_max, sl_adaptive_pool2d(x, SL_POOL_MAX, 2, 3))
FUNCTION(adaptive_even, sl_adaptive_pool2d(x, SL_POOL_AVG, 2, 3))
FUNCTION(rms_norm, sl_rms_norm(x, OTHER(1, 4)))
FUNCTION(group_norm, sl_group_norm(x, 2, OTHER(1, 4), OTHER(2, 4)))
FUNCTION(group_norm_gamma, sl_group_norm(OTHER(1, 1, 4, 2, 2), 2, x, NULL))
FUNCTION(instance_norm, sl_instance_norm(x, OTHER(1, 2), OTHER(2, 2)))
FUNCTION(cross_entropy, sl_cross_entropy(x, INTS((2, 4), 0, 2, 1, 1, 2, 0, 0, 1)))
FUNCTION(cross_entropy_ignore, sl_cross_entropy(x, INTS((4), 0, -100, 2, 1), .ignore = true, .ignore_index = -100))
FUNCTION(cross_entropy_masked,
         sl_cross_entropy(sl_masked_fill(x, DOUBLES((3, 4), 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 0), -INFINITY),
                          INTS((3), 0, 2, 2), .ignore = true, .ignore_index = 2))
FUNCTION(cross_entropy_weights, sl_cross_entropy(x, INTS((2, 2), 0, 2, 1, 0), .weights = DOUBLES((3), 1, 2, 0.5),
                                                 .label_smoothing = 0.1, .ignore = true, .ignore_index = 1))
FUNCTION(cross_entropy_smooth, sl_cross_entropy(x, INTS((3), 3, 0, 1), .label_smoothing = 0.2))
FUNCTION(cross_entropy_sum, sl_cross_entropy(x, INTS((4), 0, -100, 2, 1), .weights = DOUBLES((3), 1, 2, 0.5),
                                             .label_smoothing = 0.1, .ignore = true, .ignore_index = -100, .sum = true))
FUNCTION(cross_entropy_plain_sum, sl_cross_entropy(x, INTS((3), 3, 0, 1), .sum = true))
FUNCTION(cross_entropy_none, sl_cross_entropy(x, INTS((2), -100, -100), .ignore = true, .ignore_index = -100))
FUNCTION(cross_entropy_no_weight, sl_cross_entropy(x, INTS((2), 0, -100), .weights = DOUBLES((3), 0, 2, 0.5),
                                                   .label_smoothing = 0.1, .ignore = true, .ignore_index = -100))
FUNCTION(cross_entropy_weight_0,
         sl_cross_entropy(x, INTS((2), 0, 1), .weights = DOUBLES((3), 0, 2, 0.5), .label_smoothing = 0.1))
FUNCTION(cross_entropy_infinite, sl_cross_entropy(sl_masked_fill(x, INTS((2, 3), 0, 1, 0, 0, 0, 1), -INFINITY),
                                                  INTS((2), 0, 1), .ignore = true, .ignore_index = -100))
FUNCTION(kl_div, sl_kl_div(sl_log_softmax(x, 1), DOUBLES((2, 3), 0.5, 0.25, 0.25, 0, 0.75, 0.25)))
FUNCTION(kl_div_target, sl_kl_div(sl_log_softmax(OTHER(1, 2, 3), 1), sl_softmax(x, 1)))
FUNCTION(cosine_similarity, sl_cosine_similarity(x, OTHER(1, 2, 3), 1))
FUNCTION(cosine_embedding, sl_cosine_embedding_loss(x, OTHER(1, 3, 2), DOUBLES((3), 1, -1, -1), -0.2))

static sl_tensor *split_of(sl_tensor *x)
{
	sl_tensor *parts[3];
	return sl_split(x, 1, 3, parts) == SL_OK ? sl_mul(parts[2], parts[0]) : NULL;
}

/* ---- values and gradients ---------------------------------------------------------------------------------------- */

struct expectation {
	const char *name;
	sl_tensor *(*function)(sl_tensor *x);
	sl_shape shape;
	const double *values, *gradient;
	int count;
};

#define UNPACK(...) __VA_ARGS__
static const struct expectation expected[] = {
/* clang-format off */
#define X(name, dims, values, gradient)                                                                                \
	{#name, name##_of, {SL_COUNT_(int64_t, UNPACK dims), {UNPACK dims}}, (const double[]){UNPACK values},          \
	 (const double[]){UNPACK gradient}, SL_COUNT_(double, UNPACK values)},
/* clang-format on */
#include "functions.def"
#undef X
};

static bool check_one(const struct expectation *e, sl_block *block)
{
	bool ok = true;
	SL_SCOPE {
		sl_tensor *x = filled(e->shape, 0), *y = NULL, *loss = NULL;
		sl_attach_grad(x);
		SL_RECORD {
			y = sl_forward(block, x);
			loss = sl_mul_scalar(sl_sum(sl_square(y)), 0.5);
		}
		ok = slp_check_values(e->name, __LINE__, y, e->count, e->values) && CHECK_OK(sl_backward(loss)) &&
		     slp_check_values(e->name, __LINE__, sl_grad(x), (int)sl_shape_size(e->shape), e->gradient);
	}
	return ok;
}

static void test_values(void)
{
	for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
		sl_block *block = sl_lambda(expected[i].name, expected[i].function);
		bool ok = check_one(&expected[i], block) && CHECK_OK(sl_hybridize(block)) &&
		          check_one(&expected[i], block) && check_one(&expected[i], block);
		if (!ok) fprintf(stderr, "%s\n", expected[i].name);
		sl_error_clear();
		sl_block_free(block);
	}
}

/* ---- what gradients are not asked of ----------------------------------------------------------------------------- */

static void test_ends(void)
{
	SL_SCOPE {
		sl_tensor *none = sl_full(SL_SHAPE(2), -INFINITY), *x = sl_arange(0, 4, 1);
		CHECK_VALUES(sl_logsumexp(none), -INFINITY);
		CHECK_VALUES(sl_logsumexp(sl_full(SL_SHAPE(2), INFINITY)), INFINITY);
		CHECK_VALUES(sl_variance(sl_cast(x, SL_INT32)), 1.25);
		CHECK_VALUES(sl_variance(sl_full(SL_SHAPE(1), 2), .ddof = 1), NAN);
		CHECK(sl_tensor_size(sl_tile(x, 0, 0)) == 0);
		CHECK_VALUES(sl_clip(sl_full(SL_SHAPE(1), NAN), 0, 1), NAN);
		CHECK_VALUES(
		        sl_where(sl_cast(sl_from(((int64_t[]){0, -5, 1}), SL_SHAPE(3), .dtype = SL_INT64), SL_INT64),
		                 sl_full(SL_SHAPE(3), 7, .dtype = SL_UINT8), sl_zeros(SL_SHAPE(1), .dtype = SL_UINT8)),
		        0, 7, 7);
		sl_tensor *logits = sl_ones(SL_SHAPE(1, 2)), *nothing;
		CHECK_OK(sl_attach_grad(logits));
		SL_RECORD
			nothing = sl_cross_entropy(logits, INTS((1), 1), .ignore = true, .ignore_index = 1);
		CHECK_OK(sl_backward(nothing));
		CHECK_VALUES(sl_grad(logits), 0, 0); /* as PyTorch: no sample counts */
	}
}

/* What leaves x as it is gives a tensor of its own all the same, whose owner releases it. */
static void test_same(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(1, 2)), *image = sl_ones(SL_SHAPE(1, 2, 3, 3)), *one = NULL;
		CHECK_OK(sl_split(x, 0, 1, &one));
		sl_tensor *const same[] = {one,
		                           sl_einsum("ij->ij", x),
		                           sl_einsum("...", x),
		                           sl_tile(x, 0, 1),
		                           sl_repeat(x, 1, 1),
		                           sl_pad(x, 0, 0, 0),
		                           sl_flip(sl_sum(x)),
		                           sl_concat(&x, 1, 0),
		                           sl_transpose(x, SL_AXES(0, 1)),
		                           sl_reshape(x, SL_SHAPE(1, 2)),
		                           sl_broadcast_to(x, SL_SHAPE(1, 2)),
		                           sl_slice(x, 1, 0, 2, 1),
		                           sl_sum(x, SL_AXES(0), .keepdims = true),
		                           sl_cast(x, SL_FLOAT32),
		                           sl_dropout(x, 0)};
		for (size_t i = 0; i < sizeof same / sizeof *same; i++)
			CHECK_SAYING(same[i] && same[i] != x, "%zu: %s", i, sl_error_message());
		CHECK(sl_resize2d(image, 3, 3) != image && sl_adaptive_pool2d(image, SL_POOL_AVG, 3, 3) != image);
	}
}

/* ---- without a scope --------------------------------------------------------------------------------------------- */

/* The arguments, and what comes beside the result. */
static struct {
	sl_tensor *a, *b, *i, *l, *q, *w, *m, *g, *r;
} given;
static sl_tensor *also[2];

#define ALONE(X)                                                                                                       \
	X(sl_where(given.a, given.a, given.a))                                                                         \
	X(sl_masked_fill(given.a, given.a, 1))                                                                         \
	X(sl_clip(given.a, 0, 1))                                                                                      \
	X(sl_leaky_relu(given.a, 0.1))                                                                                 \
	X(sl_elu(given.a, 1))                                                                                          \
	X(sl_softsign(given.a))                                                                                        \
	X(sl_einsum("ij,jk->ki", given.a, given.b))                                                                    \
	X(sl_conv_transpose2d(given.q, given.w, NULL))                                                                 \
	X(sl_conv1d(given.g, given.g, NULL))                                                                           \
	X(sl_resize2d(given.q, 3, 3, .bilinear = true))                                                                \
	X(sl_resize2d(given.q, 4, 8))                                                                                  \
	X(sl_adaptive_pool2d(given.q, SL_POOL_MAX, 2, 3))                                                              \
	X(sl_pool2d(given.q, .kernel = {2, 2}))                                                                        \
	X(sl_cross_entropy(given.a, given.l, .label_smoothing = 0.1))                                                  \
	X(sl_softmax_cross_entropy(given.a, given.l))                                                                  \
	X(sl_topk_hits(given.a, given.l, 2))                                                                           \
	X(sl_kl_div(given.a, given.a))                                                                                 \
	X(sl_cosine_similarity(given.a, given.a, 1))                                                                   \
	X(sl_cosine_embedding_loss(given.a, given.a, given.l, 0))                                                      \
	X(sl_split(given.a, 1, 2, also) == SL_OK ? sl_clone(given.a) : NULL)                                           \
	X(sl_stack(LIST(given.a, given.a), 2, 0))                                                                      \
	X(sl_tile(given.a, 0, 2))                                                                                      \
	X(sl_repeat(given.a, 1, 2))                                                                                    \
	X(sl_flip(given.a))                                                                                            \
	X(sl_pad(given.a, 1, 1, 1))                                                                                    \
	X(sl_index_add(given.a, given.l, given.a))                                                                     \
	X(sl_rms_norm(given.a, NULL))                                                                                  \
	X(sl_group_norm(given.a, 2, NULL, NULL))                                                                       \
	X(sl_instance_norm(given.q, NULL, NULL))                                                                       \
	X(sl_gather(given.a, given.l))                                                                                 \
	X(sl_one_hot(given.l, 3))                                                                                      \
	X(sl_take_along(given.a, given.i, 1))                                                                          \
	X(sl_scatter_add(given.a, given.i, given.a, 1))                                                                \
	X(sl_sort(given.a, 1, true))                                                                                   \
	X(sl_topk(given.a, 3, 1, &also[0]))                                                                            \
	X(sl_randint(SL_SHAPE(5), 0, 3))                                                                               \
	X(sl_bernoulli(given.a))                                                                                       \
	X(sl_permutation(9))                                                                                           \
	X(sl_multinomial(given.a, 3))                                                                                  \
	X(sl_logsumexp(given.a))                                                                                       \
	X(sl_variance(given.a, .ddof = 1))                                                                             \
	X(sl_std(given.a))                                                                                             \
	X(sl_mean(given.l))                                                                                            \
	X(sl_gt(given.a, given.i, .dtype = SL_INT32))                                                                  \
	X(sl_scaled_dot_product_attention(given.q, given.q, given.q, .mask = given.m))                                 \
	X(sl_recurrent(SL_CELL_LSTM, given.g, given.r, NULL, .last_state = &also[0], .last_cell = &also[1]))           \
	X(sl_recurrent(SL_CELL_LSTM, given.g, given.r, NULL, .lengths = given.l, .last_state = &also[0],               \
	               .last_cell = &also[1]))

static const char *const alone[] = {
#define X(...) #__VA_ARGS__,
        ALONE(X)
#undef X
};

static sl_tensor *call_alone(size_t which)
{
	size_t k = 0;
#define X(...)                                                                                                         \
	if (k++ == which) return __VA_ARGS__;
	ALONE(X)
#undef X
	return NULL;
}

static void run_alone(size_t which, int times)
{
	for (int i = 0; i < times; i++) {
		also[0] = also[1] = NULL;
		sl_tensor *y = call_alone(which);
		CHECK_SAYING(y != NULL, "%s: %s", alone[which], sl_error_message());
		sl_release(y);
		for (int k = 0; k < 2; k++) sl_release(also[k]);
		sl_error_clear();
		sl_wait_all(); /* buffers in flight are not used again */
	}
}

/* Whoever has no scope releases the results: that is all there is to release. */
static void test_alone(void)
{
	enum { TIMES = 20 };
	given.a = sl_full(SL_SHAPE(2, 4), 0.5), given.b = sl_ones(SL_SHAPE(4, 2));
	given.i = sl_zeros(SL_SHAPE(2, 4), .dtype = SL_INT64), given.l = sl_ones(SL_SHAPE(2), .dtype = SL_INT64);
	given.q = sl_ones(SL_SHAPE(1, 1, 2, 4)), given.w = sl_ones(SL_SHAPE(1, 1, 2, 2));
	given.m = sl_ones(SL_SHAPE(2, 2), .dtype = SL_BOOL);
	given.g = sl_ones(SL_SHAPE(3, 2, 8)), given.r = sl_ones(SL_SHAPE(8, 2));
	for (size_t which = 0; which < sizeof alone / sizeof *alone; which++) {
		struct sl_stats before, after;
		run_alone(which, 3);
		sl_stats_get(&before);
		run_alone(which, TIMES);
		sl_stats_get(&after);
		CHECK_SAYING(after.handles < before.handles + TIMES && after.bytes < before.bytes + TIMES * 8,
		             "%s: %d calls leave %lld handles, %lld bytes", alone[which], TIMES,
		             (long long)(after.handles - before.handles), (long long)(after.bytes - before.bytes));
	}
	sl_tensor **list = &given.a;
	for (size_t k = 0; k < sizeof given / sizeof *list; k++) sl_release(list[k]);
}

/* Places of the largest; a place that is not there is none of another row. */
static void test_places(void)
{
	SL_SCOPE {
		sl_tensor *x = DOUBLES((2, 3), 3, 1, 2, 5, 6, 4), *where = NULL, *best = sl_topk(x, 2, 1, &where);
		CHECK_VALUES(best, 3, 2, 6, 5);
		CHECK_VALUES(where, 0, 2, 1, 0);
		sl_tensor *cpu = sl_place(x, sl_cpu(0));
		sl_tensor *outside = sl_place(INTS((2, 1), 0, 3), sl_cpu(0));
		CHECK_STATUS(sl_wait(sl_take_along(cpu, outside, 1)), SL_EINVAL, "index -1");
		sl_error_clear();
		CHECK_NULL(sl_topk(x, 4, 1, NULL), SL_EINVAL, "4 largest of 3");
		CHECK_NULL(sl_take_along(x, x, 1), SL_EDTYPE, "int32 or int64 needed");
		CHECK_NULL(sl_take_along(x, INTS((3), 0, 0, 0), 1), SL_ESHAPE, "axis 1");
		CHECK_NULL(sl_scatter_add(x, INTS((2, 1), 0, 0), x, 1), SL_ESHAPE, "one shape");
	}
	sl_wait_all();
	sl_error_clear();
}

/* log(0) of no elements; gradients have their shape. */
static void test_empty(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_zeros(SL_SHAPE(2, 0, 3), .dtype = SL_FLOAT64), *y;
		CHECK_VALUES(sl_logsumexp(x, SL_AXES(0, 1)), -INFINITY, -INFINITY, -INFINITY);
		CHECK_VALUES(sl_logsumexp(x), -INFINITY);
		y = sl_logsumexp(x, SL_AXES(1), .keepdims = true);
		CHECK(sl_shape_equal(sl_tensor_shape(y), SL_SHAPE(2, 1, 3)));
		y = sl_logsumexp(x, SL_AXES(0));
		CHECK(sl_shape_equal(sl_tensor_shape(y), SL_SHAPE(0, 3)));
		CHECK_OK(sl_wait(y));
		sl_attach_grad(x);
		SL_RECORD
			y = sl_sum(sl_logsumexp(x, SL_AXES(1)));
		CHECK_OK(sl_backward(y));
		CHECK(sl_grad(x) && sl_shape_equal(sl_tensor_shape(sl_grad(x)), SL_SHAPE(2, 0, 3)));
		CHECK_NULL(sl_logsumexp(sl_zeros(SL_SHAPE(0), .dtype = SL_INT32)), SL_EDTYPE, "int32");
		CHECK_NULL(sl_logsumexp(x, SL_AXES(3)), SL_EINVAL, "axis 3");
		CHECK_NULL(sl_max(x, SL_AXES(1)), SL_ESHAPE, "no elements");
	}
}

/* Frequencies of many, bounds, and the same after the same seed. */
static void test_random(void)
{
	SL_SCOPE {
		sl_seed(3);
		sl_tensor *dice = sl_randint(SL_SHAPE(60000), 1, 7),
		          *coin = sl_bernoulli(sl_full(SL_SHAPE(60000), 0.25));
		sl_seed(3);
		sl_tensor *again = sl_randint(SL_SHAPE(60000), 1, 7);
		CHECK(sl_tensor_dtype(dice) == SL_INT32);
		CHECK_VALUES(sl_all(sl_eq(dice, again)), 1);
		CHECK_VALUES(sl_min(dice), 1);
		CHECK_VALUES(sl_max(dice), 6);
		for (int i = 1; i <= 6; i++) {
			double share = sl_item(sl_mean(sl_eq_scalar(dice, i)));
			CHECK(fabs(share - 1 / 6.0) < 0.01);
		}
		CHECK(fabs(sl_item(sl_mean(coin)) - 0.25) < 0.01);
		CHECK_VALUES(sl_mean(sl_mul(coin, sl_rsub_scalar(coin, 1))), 0);
		CHECK_VALUES(sl_bernoulli(DOUBLES((4), 0, 1, 0, 1)), 0, 1, 0, 1);
		CHECK(sl_tensor_shape(sl_bernoulli(sl_ones(SL_SCALAR))).ndim == 0 &&
		      sl_tensor_size(sl_bernoulli(sl_ones(SL_SHAPE(2, 0)))) == 0);
		sl_tensor *order = sl_permutation(1000), *p = DOUBLES((2, 4), 0, 2, 1, 1, 0, 0, 0, 0.5);
		CHECK_VALUES(sl_all(sl_eq(sl_sort(order, 0, false), sl_arange(0, 1000, 1, .dtype = SL_INT32))), 1);
		CHECK(sl_item(sl_sum(sl_eq(order, sl_arange(0, 1000, 1, .dtype = SL_INT32)))) < 20);
		sl_tensor *draws = sl_multinomial(p, 40000), *first = sl_rows(draws, 0, 1);
		CHECK_VALUES(sl_all(sl_eq_scalar(sl_rows(draws, 1, 2), 3)), 1);
		for (int i = 0; i < 4; i++) {
			double share = sl_item(sl_mean(sl_eq_scalar(first, i)));
			CHECK(fabs(share - (i == 0 ? 0 : i == 1 ? 0.5 : 0.25)) < 0.015);
		}
		CHECK_ALL(sl_multinomial(sl_concat(SL_ARRAY(sl_tensor *, sl_zeros(SL_SHAPE(2, 99999)),
		                                            sl_ones(SL_SHAPE(2, 1))),
		                                   2, 1),
		                         3),
		          99999);
		CHECK_NULL(sl_randint(SL_SHAPE(2), 3, 3), SL_EINVAL, "sl_randint", "from 3");
		CHECK_NULL(sl_randint(SL_SHAPE(2), 0, 257, .dtype = SL_UINT8), SL_EDTYPE, "sl_randint", "257", "uint8");
		CHECK_NULL(sl_randint(SL_SHAPE(2), 1LL << 40, (1LL << 40) + 2), SL_EDTYPE, "sl_randint", "int32");
		CHECK_ALL(sl_randint(SL_SHAPE(9), 1LL << 40, (1LL << 40) + 1, .dtype = SL_INT64), 0x1p40);
	}
}

static void test_mistakes(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_zeros(SL_SHAPE(2, 3)), *y = sl_zeros(SL_SHAPE(4, 2)), *parts[2] = {NULL};
		CHECK_NULL(sl_where(x, x, y), SL_ESHAPE, "take_unless");
		CHECK_NULL(sl_where(NULL, x, x), SL_EINVAL, "sl_where", "condition");
		CHECK_NULL(sl_clip(x, 1, 0), SL_EINVAL, "low 1 is above high 0");
		CHECK_NULL(sl_variance(x, .ddof = -1), SL_EINVAL, "ddof -1");
		CHECK_STATUS(sl_split(x, 1, 2, parts), SL_ESHAPE, "3 elements", "2 parts");
		sl_error_clear();
		CHECK(parts[0] == NULL);
		CHECK_NULL(sl_stack(LIST(x, x), 2, 3), SL_EINVAL, "axis 3");
		CHECK_NULL(sl_tile(x, 2, 3), SL_EINVAL, "axis 2", "2 axes");
		CHECK_NULL(sl_repeat(x, 0, -1), SL_EINVAL, "-1 times");
		CHECK_NULL(sl_pad(x, 1, 3, 0, .reflect = true), SL_EINVAL, "3 before");
		CHECK_NULL(sl_pad(x, 1, 1, 0, .value = 5, .reflect = true), SL_EINVAL, "reflect");
		CHECK_NULL(sl_flip(x, SL_AXES(0), .keepdims = true), SL_EINVAL, "keepdims");
		CHECK_NULL(sl_resize2d(sl_ones(SL_SHAPE(1, 1, 4, 4)), 2, 2, .align_corners = true), SL_EINVAL,
		           "bilinear");
		CHECK_NULL(sl_cross_entropy(x, sl_zeros(SL_SHAPE(2), .dtype = SL_INT32), .ignore_index = -1), SL_EINVAL,
		           "ignore_index is -1");
		CHECK_NULL(sl_einsum("ij,jk", x, y), SL_ESHAPE, "ij,jk");
		CHECK_NULL(sl_einsum("ii->i", x), SL_ESHAPE, "ii->i");
		CHECK_NULL(sl_einsum("ij->ii", x), SL_EINVAL, "ij->ii");
		CHECK_NULL(sl_einsum("i......->i", x), SL_EINVAL, "i......->i");
		CHECK_NULL(sl_einsum("...ijk", x), SL_ESHAPE, "...ijk");
		CHECK_NULL(sl_einsum("i..->i", x), SL_EINVAL, "i..->i");
		CHECK_NULL(sl_einsum("ij->ik", x), SL_ESHAPE, "ij->ik");
		CHECK_NULL(sl_einsum("ij", x, y), SL_EINVAL, "2 terms");
		CHECK_NULL(sl_conv1d(x, x, NULL), SL_ESHAPE, "2 axes, 3 needed");
		CHECK_NULL(sl_resize2d(x, 2, 2), SL_ESHAPE, "images");
		CHECK_NULL(sl_group_norm(x, 2, NULL, NULL), SL_ESHAPE, "2 groups");
		CHECK_NULL(sl_cross_entropy(x, y, .label_smoothing = 2), SL_EINVAL, "label_smoothing 2");
		CHECK_NULL(sl_stack(LIST(sl_var("v")), 1, 0), SL_ESHAPE, "not known yet");
	}
}

static const struct slp_test tests[] = {
        {"values and gradients", test_values},
        {"ends", test_ends},
        {"nothing to do", test_same},
        {"places", test_places},
        {"without a scope", test_alone},
        {"no elements", test_empty},
        {"random numbers", test_random},
        {"mistakes", test_mistakes},
        {NULL, NULL},
};

static const struct slp_suite suites[] = {
        {"functions", tests, slp_start_engine, slp_stop_engine, NULL, NULL},
        {NULL, NULL, NULL, NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
	return slp_test_main(argc, argv, suites);
}
