/* Cases of softmax, the losses and what metrics count.  The expected values are PyTorch's, in float64. */
#include <math.h>
#include <starling.h>

#include "common/axis.h"
#include "cases.h"
#include "loss/pair_loss.h"
#include "reduce/topk_hits.h"

/* clang-format off */
#define AXIS(a) &(const struct slp_axis_attrs){a}
#define DELTA(d) &(const struct slp_huber_attrs){d}
#define K(k) &(const struct slp_topk_attrs){k}

#define THESE(type, shape, n, ...) {type, shape, 0, 0, {__VA_ARGS__}, n}
#define RANDOM(...) {SL_FLOAT32, __VA_ARGS__, -3, 3, {0}, 0}
#define OF(type, ...) {type, __VA_ARGS__, 0, 3, {0}, 0}
/* clang-format on */
#define X6 THESE(SL_FLOAT32, DIMS(2, 3), 6, 1, 2, 3, -1, 0.5, 1000)
#define X6B THESE(SL_FLOAT32, DIMS(2, 3), 6, 1, 2, 3, -1, 0.5, 2)
#define T6 THESE(SL_FLOAT32, DIMS(2, 3), 6, 0, 2, 1, 1, 1, -1)
#define DY6 THESE(SL_FLOAT32, DIMS(2, 3), 6, 1, -2, 0.5, 3, 0, -1)
#define DLOSS THESE(SL_FLOAT32, DIMS(2), 2, 1, -0.5)
#define LABELS(type, ...) THESE(type, DIMS(2), 2, __VA_ARGS__)

/* Shapes of all kinds: along the last axis, short and long, and along others; several threads, with tails. */
/* clang-format off */
#define WAY(op, label, axis, grad, shape) {op, label, AXIS(axis), 1, {RANDOM(shape)}, 0, !(grad), SL_OK, {0}, 0}
#define WAYS(op)                                                                                                       \
	WAY(op, "one element", 0, true, DIMS(1)), WAY(op, "size 1", 1, true, DIMS(3, 1, 2)),                           \
		WAY(op, "middle axis", 1, true, DIMS(2, 3, 4)), WAY(op, "first axis", -3, true, DIMS(4, 1, 3)),        \
		WAY(op, "scores", 1, false, DIMS(5001, 10)), WAY(op, "long rows", 1, false, DIMS(3, 40001)),           \
		WAY(op, "rows of a warp", 1, false, DIMS(5, 48)), WAY(op, "rows of a block", 1, false, DIMS(3, 640)),   \
		WAY(op, "columns", 1, false, DIMS(3, 21, 1003)), WAY(op, "empty", 1, true, DIMS(0, 3)),                \
		WAY(op, "empty axis", 1, true, DIMS(3, 0)),                                                            \
		{op, "no such axis", AXIS(2), 1, {RANDOM(DIMS(2, 3))}, 0, true, SL_EINVAL, {0}, 0},                    \
		{op, "scalar", AXIS(0), 1, {RANDOM(NO_DIMS)}, 0, true, SL_EINVAL, {0}, 0},                             \
		{op, "integers", AXIS(0), 1, {OF(SL_INT32, DIMS(3))}, 0, true, SL_EDTYPE, {0}, 0},                     \
		{op, "no numbers", AXIS(1), 1, {THESE(SL_FLOAT32, DIMS(2, 2), 4, NAN, 1, INFINITY, 2)}, 0, true,       \
		 SL_OK, {NAN, NAN, NAN, NAN}, 4}
/* clang-format on */
/* The second input is what the operation returns: for random ones any numbers do. */
/* clang-format off */
#define BACK(op, label, axis, shape) {op, label, AXIS(axis), 2, {RANDOM(shape), RANDOM(shape)}, 0, true, SL_OK, {0}, 0}
#define BACKS(op)                                                                                                      \
	BACK(op, "middle axis", 1, DIMS(2, 3, 4)), BACK(op, "scores", 1, DIMS(5001, 10)),                              \
		BACK(op, "rows of a warp", 1, DIMS(5, 48)), BACK(op, "rows of a block", 1, DIMS(3, 640)),               \
		BACK(op, "columns", 1, DIMS(3, 21, 1003)), BACK(op, "empty", 0, DIMS(0, 3)),                           \
		{op, "shapes differ", AXIS(0), 2, {RANDOM(DIMS(3)), RANDOM(DIMS(3, 1))}, 0, true, SL_ESHAPE, {0}, 0}

#define LABELLED(label, grad, n, classes, type)                                                                        \
	{"softmax_cross_entropy", label, NULL, 2,                                                                      \
	 {RANDOM(DIMS(n, classes)), {type, DIMS(n), 0, classes < 256 ? classes : 256, {0}, 0}}, 0, !(grad), SL_OK,     \
	 {0}, 0}
#define LABELLED_BACK(label, n, classes, type)                                                                         \
	LABELLED_BACK_OF("softmax_cross_entropy_grad", label, n, classes, type),                                       \
		LABELLED_BACK_OF("softmax_cross_entropy_both", label, n, classes, type)
#define LABELLED_BACK_OF(op, label, n, classes, type)                                                                  \
	{op, label, NULL, 3,                                                                 \
	 {RANDOM(DIMS(n)), RANDOM(DIMS(n, classes)), {type, DIMS(n), 0, classes < 256 ? classes : 256, {0}, 0}}, 0,    \
	 true, SL_OK, {0}, 0}
#define BAD(op, label, status, count, ...) {op, label, NULL, count, {__VA_ARGS__}, 0, true, status, {0}, 0}
/* clang-format on */

/* Losses of pairs: some samples of every size, threads with tails, mistakes; the kinks of l1 and Huber's are checked
 * with known values. */
/* clang-format off */
#define SAMPLE(op, label, a, none, shape) {op, label, a, 2, {RANDOM(shape), RANDOM(shape)}, 0, none, SL_OK, {0}, 0}
#define SAMPLE_BACK(op, label, a, rows, shape)                                                                         \
	{op, label, a, 3, {RANDOM(rows), RANDOM(shape), RANDOM(shape)}, 0, true, SL_OK, {0}, 0}
#define PAIRS(op, a, kinks)                                                                                            \
	SAMPLE(op, "one number a sample", a, kinks, DIMS(5)), SAMPLE(op, "four axes", a, kinks, DIMS(2, 3, 1, 2)),      \
		SAMPLE(op, "many samples", a, true, DIMS(70001, 1)),                                                   \
		SAMPLE(op, "short samples", a, true, DIMS(9001, 13)),                                                  \
		SAMPLE(op, "a block", a, true, DIMS(2, 2048)), SAMPLE(op, "large samples", a, true, DIMS(3, 40001)),   \
		SAMPLE(op, "empty", a, false, DIMS(0, 2)),                                                             \
		{op, "mean of nothing", a, 2, {RANDOM(DIMS(2, 0)), RANDOM(DIMS(2, 0))}, 0, true, SL_OK, {NAN, NAN}, 2},\
		{op, "no numbers", a, 2,                                                                               \
		 {THESE(SL_FLOAT32, DIMS(2, 2), 4, 1, NAN, 2, 0.5), THESE(SL_FLOAT32, DIMS(2, 2), 4, 0, 1, NAN, 0.5)}, \
		 0, true, SL_OK, {NAN, NAN}, 2},                                                                       \
		BAD(op, "scalars", SL_ESHAPE, 2, RANDOM(NO_DIMS), RANDOM(NO_DIMS)),                                    \
		BAD(op, "shapes differ", SL_ESHAPE, 2, RANDOM(DIMS(3, 1)), RANDOM(DIMS(3))),                           \
		BAD(op, "data types differ", SL_EDTYPE, 2, RANDOM(DIMS(3)), OF(SL_INT32, DIMS(3))),                    \
		BAD(op, "integers", SL_EDTYPE, 2, OF(SL_INT32, DIMS(3)), OF(SL_INT32, DIMS(3))),                       \
		SAMPLE_BACK(op "_grad", "large samples", a, DIMS(3), DIMS(3, 40001)),                                  \
		SAMPLE_BACK(op "_grad", "many samples", a, DIMS(70001), DIMS(70001)),                                  \
		SAMPLE_BACK(op "_grad", "short samples", a, DIMS(9001), DIMS(9001, 13)),                               \
		SAMPLE_BACK(op "_grad", "empty", a, DIMS(0), DIMS(0, 2)),                                              \
		{op "_grad", "no number", a, 3,                                                                        \
		 {THESE(SL_FLOAT32, DIMS(2), 2, 1, 1), THESE(SL_FLOAT32, DIMS(2, 1), 2, NAN, 0),                       \
		  THESE(SL_FLOAT32, DIMS(2, 1), 2, 0, NAN)},                                                           \
		 0, true, SL_OK, {NAN, NAN}, 2},                                                                       \
		BAD(op "_grad", "too many losses", SL_ESHAPE, 3, RANDOM(DIMS(3)), RANDOM(DIMS(2, 3)), RANDOM(DIMS(2, 3)))
/* clang-format on */
/* Known values, there and back. */
/* clang-format off */
#define PAIR(op, label, a, none, x, t, first, second, ...)                                                             \
	{op, label, a, 2, {x, t}, 0, none, SL_OK, {first, second}, 2},                                                 \
		{op "_grad", label, a, 3, {DLOSS, x, t}, 0, true, SL_OK, {__VA_ARGS__}, 6}
#define XB THESE(SL_FLOAT32, DIMS(2, 3), 6, 1, -2, 100, -100, 0.5, 0)
#define TB THESE(SL_FLOAT32, DIMS(2, 3), 6, 0, 1, 1, 0, 0.25, 1)
#define HITS(label, count, scores, labels, ...)                                                                        \
	{"topk_hits", label, K(count), 2, {scores, labels}, 0, true, SL_OK, {__VA_ARGS__}, SL_COUNT_(double, __VA_ARGS__)}
/* clang-format on */
#define S8 THESE(SL_FLOAT32, DIMS(2, 4), 8, 0.1, 0.7, 0.7, -1, 3, 1, 2, INFINITY)
#define N8 THESE(SL_FLOAT32, DIMS(2, 4), 8, 0.1, NAN, 0.7, -1, NAN, NAN, NAN, NAN)

/* clang-format off */
const struct slp_case slp_cases_loss[] = {
	{"softmax", "known values", AXIS(1), 1, {X6}, 0, false, SL_OK, {0.0900305732, 0.244728471, 0.665240956, 0, 0, 1}, 6},
	{"softmax", "axis 0", AXIS(0), 1, {X6}, 0, false, SL_OK, {0.880797078, 0.817574476, 0, 0.119202922, 0.182425524, 1}, 6},
	{"softmax", "-inf", AXIS(-1), 1, {THESE(SL_FLOAT32, DIMS(3), 3, -INFINITY, 0, 0)}, 0, true, SL_OK, {0, 0.5, 0.5}, 3},
	WAYS("softmax"),
	{"log_softmax", "known values", AXIS(1), 1, {X6}, 0, false, SL_OK, {-2.40760596, -1.40760596, -0.407605964, -1001, -999.5, 0}, 6},
	{"log_softmax", "axis 0", AXIS(0), 1, {X6}, 0, false, SL_OK, {-0.126928011, -0.201413278, -997, -2.12692801, -1.70141328, 0}, 6},
	WAYS("log_softmax"),
	{"softmax_grad", "known values", AXIS(1), 2, {DY6, THESE(SL_FLOAT32, DIMS(2, 3), 6, 0.2, 0.3, 0.5, 0.1, 0.6, 0.3)}, 0, true, SL_OK, {0.23, -0.555, 0.325, 0.3, 0, -0.3}, 6},
	{"softmax_grad", "axis 0", AXIS(0), 2, {DY6, THESE(SL_FLOAT32, DIMS(2, 3), 6, 0.2, 0.3, 0.5, 0.1, 0.6, 0.3)}, 0, true, SL_OK, {0.1, -0.42, 0.275, 0.25, 0.36, -0.285}, 6},
	BACKS("softmax_grad"),
	{"log_softmax_grad", "known values", AXIS(1), 2, {DY6, THESE(SL_FLOAT32, DIMS(2, 3), 6, -1.5, -0.5, -1, -2, -0.25, -3)}, 0, true, SL_OK, {1.11156508, -1.69673467, 0.683939721, 2.72932943, -1.55760157, -1.09957414}, 6},
	{"log_softmax_grad", "axis 0", AXIS(0), 2, {DY6, THESE(SL_FLOAT32, DIMS(2, 3), 6, -1.5, -0.5, -1, -2, -0.25, -3)}, 0, true, SL_OK, {0.107479359, -0.786938681, 0.683939721, 2.45865887, 1.55760157, -0.975106466}, 6},
	BACKS("log_softmax_grad"),

	{"softmax_cross_entropy", "known values", NULL, 2, {X6B, LABELS(SL_INT32, 2, 0)}, 0, false, SL_OK, {0.407605964, 3.2413113}, 2},
	{"softmax_cross_entropy", "large logits", NULL, 2, {X6, LABELS(SL_UINT8, 2, 0)}, 0, true, SL_OK, {0.407605964, 1001}, 2},
	LABELLED("scores", false, 5001, 10, SL_INT32), LABELLED("many classes", false, 37, 5003, SL_UINT8),
	LABELLED("one class", true, 3, 1, SL_INT32), LABELLED("empty", true, 0, 3, SL_INT32),
	LABELLED("uint8", true, 4, 3, SL_UINT8),
	BAD("softmax_cross_entropy", "three axes", SL_ESHAPE, 2, RANDOM(DIMS(2, 3, 1)), OF(SL_INT32, DIMS(2))),
	BAD("softmax_cross_entropy", "too few labels", SL_ESHAPE, 2, RANDOM(DIMS(2, 3)), OF(SL_INT32, DIMS(1))),
	BAD("softmax_cross_entropy", "labels in two axes", SL_ESHAPE, 2, RANDOM(DIMS(2, 3)), OF(SL_INT32, DIMS(2, 1))),
	BAD("softmax_cross_entropy", "labels are floats", SL_EDTYPE, 2, RANDOM(DIMS(2, 3)), OF(SL_FLOAT32, DIMS(2))),
	BAD("softmax_cross_entropy", "integer logits", SL_EDTYPE, 2, OF(SL_INT32, DIMS(2, 3)), OF(SL_INT32, DIMS(2))),
	{"softmax_cross_entropy_grad", "known values", NULL, 3, {DLOSS, X6B, LABELS(SL_INT32, 2, 0)}, 0, true, SL_OK, {0.0900305732, 0.244728471, -0.334759044, 0.480443713, -0.0876451961, -0.392798517}, 6},
	{"softmax_cross_entropy_grad", "large logits", NULL, 3, {DLOSS, X6, LABELS(SL_UINT8, 2, 0)}, 0, true, SL_OK, {0.0900305732, 0.244728471, -0.334759044, 0.5, 0, -0.5}, 6},
	LABELLED_BACK("scores", 5001, 10, SL_INT32), LABELLED_BACK("many classes", 37, 5003, SL_UINT8),
	LABELLED_BACK("empty", 0, 3, SL_INT32),
	{"softmax_cross_entropy_both", "known values", NULL, 3, {DLOSS, X6B, LABELS(SL_INT32, 2, 0)}, 0, true, SL_OK, {0.0900305732, 0.244728471, -0.334759044, 0.480443713, -0.0876451961, -0.392798517}, 6},
	BAD("softmax_cross_entropy_both", "labels are floats", SL_EDTYPE, 3, RANDOM(DIMS(2)), RANDOM(DIMS(2, 3)), OF(SL_FLOAT32, DIMS(2))),
	BAD("softmax_cross_entropy_grad", "too few losses", SL_ESHAPE, 3, RANDOM(DIMS(1)), RANDOM(DIMS(2, 3)), OF(SL_INT32, DIMS(2))),

	PAIR("l1_loss", "known values", NULL, true, X6B, T6, 1, 1.83333333, 0.333333333, 0, 0.333333333, 0.166666667, 0.166666667, -0.166666667),
	PAIRS("l1_loss", NULL, true),
	PAIR("l2_loss", "known values", NULL, false, X6B, T6, 0.833333333, 2.20833333, 0.333333333, 0, 0.666666667, 0.333333333, 0.0833333333, -0.5),
	PAIRS("l2_loss", NULL, false),
	PAIR("huber_loss", "known values", NULL, true, X6B, T6, 0.666666667, 1.375, 0.333333333, 0, 0.333333333, 0.166666667, 0.0833333333, -0.166666667),
	PAIR("huber_loss", "delta 1.5", DELTA(1.5), false, X6B, T6, 0.791666667, 1.79166667, 0.333333333, 0, 0.5, 0.25, 0.0833333333, -0.25),
	PAIRS("huber_loss", DELTA(0.75), false),
	{"huber_loss", "negative delta", DELTA(-1), 2, {RANDOM(DIMS(3)), RANDOM(DIMS(3))}, 0, true, SL_EINVAL, {0}, 0},
	PAIR("bce_logits_loss", "known values", NULL, false, X6B, T6, -0.17040765, 1.97142223, 0.243686193, -0.373067641, -0.0158086244, 0.121843096, 0.0629234448, -0.31346618),
	PAIR("bce_logits_loss", "large logits", NULL, false, XB, TB, 1.1467299, 0.514074722, 0.243686193, -0.293599026, 0, 0, -0.0620765552, 0.0833333333),
	PAIRS("bce_logits_loss", NULL, false),

	HITS("the largest", 1, S8, LABELS(SL_INT32, 0, 3), 0, 1),
	HITS("ties", 1, S8, LABELS(SL_INT32, 2, 0), 1, 0),
	HITS("among two", 2, S8, LABELS(SL_UINT8, 0, 0), 0, 1),
	HITS("among three", 3, S8, LABELS(SL_INT32, 0, 2), 1, 1),
	HITS("more than there are", 9, S8, LABELS(SL_INT32, 3, 1), 1, 1),
	HITS("NaN is larger", 1, N8, LABELS(SL_INT32, 2, 0), 0, 0),
	HITS("NaN is no hit", 9, N8, LABELS(SL_INT32, 2, 0), 1, 0),
	{"topk_hits", "scores", K(3), 2, {RANDOM(DIMS(5001, 10)), OF(SL_INT32, DIMS(5001))}, 0, true, SL_OK, {0}, 0},
	{"topk_hits", "many classes", K(5), 2, {RANDOM(DIMS(37, 5003)), OF(SL_UINT8, DIMS(37))}, 0, true, SL_OK, {0}, 0},
	{"topk_hits", "empty", K(1), 2, {RANDOM(DIMS(0, 3)), OF(SL_INT32, DIMS(0))}, 0, true, SL_OK, {0}, 0},
	{"topk_hits", "k is 0", K(0), 2, {S8, LABELS(SL_INT32, 2, 0)}, 0, true, SL_EINVAL, {0}, 0},
	{"topk_hits", "too few labels", K(1), 2, {S8, OF(SL_INT32, DIMS(1))}, 0, true, SL_ESHAPE, {0}, 0},
	{"topk_hits", "integers", K(1), 2, {OF(SL_INT32, DIMS(2, 4)), LABELS(SL_INT32, 2, 0)}, 0, true, SL_EDTYPE, {0}, 0},
	{0},
};
