/* Losses: labels that are no class, gradients to both sides, hits among the largest scores, a small
 * classifier that learns. */
#include <math.h>

#include "check.h"

static sl_tensor *labels_of(const int32_t *labels, int n)
{
	return sl_from(labels, SL_SHAPE(n), .dtype = SL_INT32, .device = sl_cpu(0));
}

/* Found while the kernel runs: reported at the wait, with the sample; what depends on it is not computed. */
static void check_bad_label(const int32_t labels[3], const char *sample, const char *label)
{
	SL_SCOPE {
		sl_tensor *x = sl_zeros(SL_SHAPE(3, 4), .device = sl_cpu(0));
		sl_tensor *mean = sl_mean(sl_softmax_cross_entropy(x, labels_of(labels, 3)));
		CHECK(mean != NULL);
		CHECK_STATUS(sl_wait(mean), SL_EINVAL, "softmax_cross_entropy", "test_loss.c", sample, label, "0 to 3");
		sl_error_clear();
	}
	sl_wait_all();
	sl_error_clear();
}

static void test_bad_labels(void)
{
	check_bad_label((int32_t[]){0, 4, -1}, "sample 1", "label 4");
	check_bad_label((int32_t[]){-1, 0, 0}, "sample 0", "label -1");
	SL_SCOPE {
		sl_tensor *x = sl_zeros(SL_SHAPE(2, 4), .device = sl_cpu(0));
		CHECK_ALL(sl_softmax_cross_entropy(x, labels_of((int32_t[]){3, 0}, 2)), log(4));
	}
}

static void test_both_sides(void)
{
	SL_SCOPE {
		sl_tensor *x = slp_leaf(3, 1), *target = slp_leaf(3, 4), *loss;
		SL_RECORD
			loss = sl_l2_loss(x, target);
		CHECK_VALUES(loss, 4.5, 4.5, 4.5);
		CHECK_OK(sl_backward(loss));
		CHECK_ALL(sl_grad(x), -3);
		CHECK_ALL(sl_grad(target), 3);
	}
}

/* By the target, the losses but for that of probabilities have the negative slope of x. */
static void test_slopes(void)
{
	SL_SCOPE {
		sl_tensor *x = slp_leaf(3, 1), *target = slp_leaf(3, 4), *loss;
		SL_RECORD
			loss = sl_add(sl_l1_loss(x, target), sl_huber_loss(x, target, .delta = 2));
		CHECK_VALUES(loss, 7, 7, 7);
		CHECK_OK(sl_backward(loss));
		CHECK_ALL(sl_grad(x), -3);
		CHECK_ALL(sl_grad(target), 3);
		SL_RECORD
			loss = sl_bce_logits_loss(x, target);
		CHECK_OK(sl_backward(loss));
		CHECK_VALUES(sl_grad(x), -3.26894142, -4.11920292, -5.04742587);
		CHECK_VALUES(sl_grad(target), -1, -2, -3);
	}
}

static void test_topk(void)
{
	const float scores[] = {0.1, 0.7, 0.2, 0.4, 0.3, 0.2};
	SL_SCOPE {
		sl_tensor *x = sl_from(scores, SL_SHAPE(2, 3), .device = sl_cpu(0));
		sl_tensor *labels = labels_of((int32_t[]){2, 2}, 2);
		CHECK_VALUES(sl_topk_hits(x, labels, 1), 0, 0);
		CHECK_VALUES(sl_topk_hits(x, labels, 2), 1, 0);
		CHECK(sl_item(sl_mean(sl_topk_hits(x, labels, 2))) == 0.5);
		CHECK_NULL(sl_topk_hits(x, labels, 0), SL_EINVAL, "k is 0");
		CHECK_STATUS(sl_wait(sl_topk_hits(x, labels_of((int32_t[]){0, 3}, 2), 1)), SL_EINVAL, "topk_hits",
		             "sample 1", "label 3", "0 to 2");
		sl_error_clear();
	}
	sl_wait_all();
	sl_error_clear();
}

/* Two classes that a line parts; the loss falls at every step. */
static void test_learning(void)
{
	const float points[] = {1, 2, 2, 1, -1, -2, -2, -1};
	SL_SCOPE {
		sl_tensor *x = sl_from(points, SL_SHAPE(4, 2)), *w = sl_zeros(SL_SHAPE(2, 2));
		sl_tensor *y = sl_from(((int32_t[]){0, 0, 1, 1}), SL_SHAPE(4), .dtype = SL_INT32);
		CHECK_OK(sl_attach_grad(w));
		double last = INFINITY;
		for (int step = 0; step < 20; step++) {
			sl_tensor *loss;
			SL_RECORD
				loss = sl_mean(sl_softmax_cross_entropy(sl_dot(x, w), y));
			CHECK_OK(sl_backward(loss));
			CHECK_OK(sl_sgd_update(&w, (sl_tensor *[]){sl_grad(w)}, NULL, 1, .lr = 0.5));
			CHECK(sl_item(loss) < last);
			last = sl_item(loss);
		}
		CHECK(last < 0.1);
		CHECK_VALUES(sl_argmax(sl_dot(x, w), 1), 0, 0, 1, 1);
	}
}

static void test_mistakes(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_zeros(SL_SHAPE(3, 4)), *y = sl_zeros(SL_SHAPE(3), .dtype = SL_INT32);
		CHECK_NULL(sl_softmax_cross_entropy(y, x), SL_EDTYPE, "logits int32 (3,)", "labels float32 (3, 4)");
		CHECK_NULL(sl_softmax_cross_entropy(x, sl_zeros(SL_SHAPE(3))), SL_EDTYPE, "int32, int64 or uint8");
		CHECK_NULL(sl_softmax_cross_entropy(sl_flatten(sl_zeros(SL_SHAPE(2, 2))), y), SL_ESHAPE, "one label");
		CHECK_NULL(sl_l2_loss(x, sl_zeros(SL_SHAPE(12))), SL_ESHAPE, "target", "sl_reshape");
		CHECK_NULL(sl_huber_loss(x, x, .delta = -1), SL_EINVAL, "delta is -1");
		CHECK_NULL(sl_softmax(x, 2), SL_EINVAL, "axis 2", "2 axes");
	}
}

static const struct slp_test tests[] = {
        {"labels that are no class", test_bad_labels},
        {"gradients to both sides", test_both_sides},
        {"slopes", test_slopes},
        {"the largest scores", test_topk},
        {"learning", test_learning},
        {"mistakes", test_mistakes},
        {NULL, NULL},
};

static const struct slp_suite suites[] = {
        {"loss", tests, slp_start_engine, slp_stop_engine, NULL, NULL},
        {NULL, NULL, NULL, NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
	return slp_test_main(argc, argv, suites);
}
