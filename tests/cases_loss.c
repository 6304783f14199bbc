/* Cases of softmax, the losses and the optimisers' steps.  The expected values are PyTorch's, in float64.  What the
 * optimisers' steps do to their operands is checked in test_optim.c. */
#include <math.h>

#include "axis.h"
#include "cases.h"
#include "optim.h"

#define DIMS(...) {SL_COUNT_(int64_t, __VA_ARGS__), {__VA_ARGS__}}
#define NO_DIMS {0, {0}}
#define LIST(...) {__VA_ARGS__}
#define AXIS(a) &(const struct slp_axis_attrs){a}
#define SGD &(const struct slp_sgd_attrs){0.1, 0.9, 0.01, 0.5}

#define THESE(type, shape, n, ...) {type, shape, 0, 0, {__VA_ARGS__}, n}
#define RANDOM(...) {SL_FLOAT32, __VA_ARGS__, -3, 3, {0}, 0}
#define OF(type, ...) {type, __VA_ARGS__, 0, 3, {0}, 0}
#define X6 THESE(SL_FLOAT32, DIMS(2, 3), 6, 1, 2, 3, -1, 0.5, 1000)
#define X6B THESE(SL_FLOAT32, DIMS(2, 3), 6, 1, 2, 3, -1, 0.5, 2)
#define T6 THESE(SL_FLOAT32, DIMS(2, 3), 6, 0, 2, 1, 1, 1, -1)
#define DY6 THESE(SL_FLOAT32, DIMS(2, 3), 6, 1, -2, 0.5, 3, 0, -1)
#define DLOSS THESE(SL_FLOAT32, DIMS(2), 2, 1, -0.5)
#define LABELS(type, ...) THESE(type, DIMS(2), 2, __VA_ARGS__)

/* Shapes of all kinds: along the last axis, short and long, and along others; several threads, with tails. */
#define WAY(op, label, axis, grad, shape) {op, label, AXIS(axis), 1, {RANDOM(shape)}, 0, !(grad), SL_OK, {0}, 0}
#define WAYS(op)                                                                                                       \
	WAY(op, "one element", 0, true, DIMS(1)), WAY(op, "size 1", 1, true, DIMS(3, 1, 2)),                           \
		WAY(op, "middle axis", 1, true, DIMS(2, 3, 4)), WAY(op, "first axis", -3, true, DIMS(4, 1, 3)),        \
		WAY(op, "scores", 1, false, DIMS(5001, 10)), WAY(op, "long rows", 1, false, DIMS(3, 40001)),           \
		WAY(op, "columns", 1, false, DIMS(3, 21, 1003)), WAY(op, "empty", 1, true, DIMS(0, 3)),                \
		WAY(op, "empty axis", 1, true, DIMS(3, 0)),                                                            \
		{op, "no such axis", AXIS(2), 1, {RANDOM(DIMS(2, 3))}, 0, true, SL_EINVAL, {0}, 0},                    \
		{op, "scalar", AXIS(0), 1, {RANDOM(NO_DIMS)}, 0, true, SL_EINVAL, {0}, 0},                             \
		{op, "integers", AXIS(0), 1, {OF(SL_INT32, DIMS(3))}, 0, true, SL_EDTYPE, {0}, 0},                     \
		{op, "no numbers", AXIS(1), 1, {THESE(SL_FLOAT32, DIMS(2, 2), 4, NAN, 1, INFINITY, 2)}, 0, true,       \
		 SL_OK, {NAN, NAN, NAN, NAN}, 4}
/* The second input is what the operation returns: for random ones any numbers do. */
#define BACK(op, label, axis, shape) {op, label, AXIS(axis), 2, {RANDOM(shape), RANDOM(shape)}, 0, true, SL_OK, {0}, 0}
#define BACKS(op)                                                                                                      \
	BACK(op, "middle axis", 1, DIMS(2, 3, 4)), BACK(op, "scores", 1, DIMS(5001, 10)),                              \
		BACK(op, "columns", 1, DIMS(3, 21, 1003)), BACK(op, "empty", 0, DIMS(0, 3)),                           \
		{op, "shapes differ", AXIS(0), 2, {RANDOM(DIMS(3)), RANDOM(DIMS(3, 1))}, 0, true, SL_ESHAPE, {0}, 0}

#define LABELLED(label, grad, n, classes, type)                                                                        \
	{"softmax_cross_entropy", label, NULL, 2,                                                                      \
	 {RANDOM(DIMS(n, classes)), {type, DIMS(n), 0, classes < 256 ? classes : 256, {0}, 0}}, 0, !(grad), SL_OK,     \
	 {0}, 0}
#define LABELLED_BACK(label, n, classes, type)                                                                         \
	{"softmax_cross_entropy_grad", label, NULL, 3,                                                                 \
	 {RANDOM(DIMS(n)), RANDOM(DIMS(n, classes)), {type, DIMS(n), 0, classes < 256 ? classes : 256, {0}, 0}}, 0,    \
	 true, SL_OK, {0}, 0}
#define BAD(op, label, status, count, ...) {op, label, NULL, count, {__VA_ARGS__}, 0, true, status, {0}, 0}

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
	BAD("softmax_cross_entropy_grad", "too few losses", SL_ESHAPE, 3, RANDOM(DIMS(1)), RANDOM(DIMS(2, 3)), OF(SL_INT32, DIMS(2))),

	{"l2_loss", "known values", NULL, 2, {X6B, T6}, 0, false, SL_OK, {0.833333333, 2.20833333}, 2},
	{"l2_loss", "one number a sample", NULL, 2, {RANDOM(DIMS(5)), RANDOM(DIMS(5))}, 0, false, SL_OK, {0}, 0},
	{"l2_loss", "four axes", NULL, 2, {RANDOM(DIMS(2, 3, 1, 2)), RANDOM(DIMS(2, 3, 1, 2))}, 0, false, SL_OK, {0}, 0},
	{"l2_loss", "many samples", NULL, 2, {RANDOM(DIMS(70001, 1)), RANDOM(DIMS(70001, 1))}, 0, true, SL_OK, {0}, 0},
	{"l2_loss", "large samples", NULL, 2, {RANDOM(DIMS(3, 40001)), RANDOM(DIMS(3, 40001))}, 0, true, SL_OK, {0}, 0},
	{"l2_loss", "empty", NULL, 2, {RANDOM(DIMS(0, 2)), RANDOM(DIMS(0, 2))}, 0, false, SL_OK, {0}, 0},
	{"l2_loss", "mean of nothing", NULL, 2, {RANDOM(DIMS(2, 0)), RANDOM(DIMS(2, 0))}, 0, true, SL_OK, {NAN, NAN}, 2},
	BAD("l2_loss", "scalars", SL_ESHAPE, 2, RANDOM(NO_DIMS), RANDOM(NO_DIMS)),
	BAD("l2_loss", "shapes differ", SL_ESHAPE, 2, RANDOM(DIMS(3, 1)), RANDOM(DIMS(3))),
	BAD("l2_loss", "data types differ", SL_EDTYPE, 2, RANDOM(DIMS(3)), OF(SL_INT32, DIMS(3))),
	BAD("l2_loss", "integers", SL_EDTYPE, 2, OF(SL_INT32, DIMS(3)), OF(SL_INT32, DIMS(3))),
	{"l2_loss_grad", "known values", NULL, 3, {DLOSS, X6B, T6}, 0, true, SL_OK, {0.333333333, 0, 0.666666667, 0.333333333, 0.0833333333, -0.5}, 6},
	{"l2_loss_grad", "large samples", NULL, 3, {RANDOM(DIMS(3)), RANDOM(DIMS(3, 40001)), RANDOM(DIMS(3, 40001))}, 0, true, SL_OK, {0}, 0},
	{"l2_loss_grad", "many samples", NULL, 3, {RANDOM(DIMS(70001)), RANDOM(DIMS(70001)), RANDOM(DIMS(70001))}, 0, true, SL_OK, {0}, 0},
	{"l2_loss_grad", "empty", NULL, 3, {RANDOM(DIMS(0)), RANDOM(DIMS(0, 2)), RANDOM(DIMS(0, 2))}, 0, true, SL_OK, {0}, 0},
	BAD("l2_loss_grad", "too many losses", SL_ESHAPE, 3, RANDOM(DIMS(3)), RANDOM(DIMS(2, 3)), RANDOM(DIMS(2, 3))),

	{"sgd", "two parameters", SGD, 4, {RANDOM(DIMS(3)), RANDOM(DIMS(3)), RANDOM(DIMS(5, 7)), RANDOM(DIMS(5, 7))}, 0, true, SL_OK, {0}, 0},
	{"sgd", "shapes differ", SGD, 2, {RANDOM(DIMS(3)), RANDOM(DIMS(3, 1))}, 0, true, SL_ESHAPE, {0}, 0},
	{"sgd", "data types differ", SGD, 2, {RANDOM(DIMS(3)), OF(SL_INT32, DIMS(3))}, 0, true, SL_EDTYPE, {0}, 0},
	{"sgd", "no gradient", SGD, 3, {RANDOM(DIMS(3)), RANDOM(DIMS(3)), RANDOM(DIMS(3))}, 0, true, SL_EINVAL, {0}, 0},
	{"sgd_momentum", "two parameters", SGD, 6, {RANDOM(DIMS(3)), RANDOM(DIMS(3)), RANDOM(DIMS(3)), RANDOM(DIMS(5, 7)), RANDOM(DIMS(5, 7)), RANDOM(DIMS(5, 7))}, 0, true, SL_OK, {0}, 0},
	{"sgd_momentum", "shapes differ", SGD, 3, {RANDOM(DIMS(3)), RANDOM(DIMS(3)), RANDOM(DIMS(4))}, 0, true, SL_ESHAPE, {0}, 0},
	{"sgd_momentum", "integers", SGD, 3, {OF(SL_INT32, DIMS(3)), OF(SL_INT32, DIMS(3)), OF(SL_INT32, DIMS(3))}, 0, true, SL_EDTYPE, {0}, 0},
	{0},
};
