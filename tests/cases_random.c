/* Cases of random operations: that all kernels draw the same numbers.  Whether these are random enough is a matter for
 * test_random.c. */
#include <math.h>

#include "cases.h"
#include "fill/random.h"
#include "fill/shift_flip.h"

/* clang-format off */
#define KEY {UINT64_C(0x123456789ABCDEF0), 77}
/* clang-format on */

/* clang-format off */
#define DRAW(name, label, type, a, b, status, ndim, ...)                                                               \
	{name, label, &(const struct slp_draw){{type, ndim, {__VA_ARGS__}}, a, b, KEY}, 0, .no_grad = true,            \
	 .reject = status}
#define SHAPES(name, a, b)                                                                                             \
	DRAW(name, "one element", SL_FLOAT32, a, b, SL_OK, 2, 1, 1),                                                   \
	DRAW(name, "scalar", SL_FLOAT32, a, b, SL_OK, 0, 0),                                                           \
	DRAW(name, "empty", SL_FLOAT32, a, b, SL_OK, 2, 3, 0),                                                         \
	DRAW(name, "odd", SL_FLOAT32, a, b, SL_OK, 2, 3, 7),                                                           \
	DRAW(name, "large", SL_FLOAT32, a, b, SL_OK, 1, 99999),                                                        \
	DRAW(name, "float64", SL_FLOAT64, a, b, SL_OK, 1, 1023),                                                       \
	DRAW(name, "integers", SL_INT32, a, b, SL_EDTYPE, 1, 5),                                                       \
	DRAW(name, "negative size", SL_FLOAT32, a, b, SL_ESHAPE, 1, -5)

#define DROPOUT(label, p, type, shape, grad, status)                                                                   \
	{"dropout", label, &(const struct slp_dropout){p, KEY}, 1, .in = {{type, shape, 1, 2, {0}, 0}},                \
	 .no_grad = !(grad),                                                                                           \
	 .reject = status}

#define BERNOULLI(label, type, shape, status)                                                                          \
	{"bernoulli", label, &(const struct slp_bernoulli){KEY}, 1, .in = {{type, shape, 0, 1, {0}, 0}},               \
	 .no_grad = true, .own_types = true,                                                                                           \
	 .reject = status}

#define SHIFT(label, pad, flip, back, type, shape, grad, status)                                                       \
	{"shift_flip", label, &(const struct slp_shift_flip){flip, pad, back, KEY}, 1,                                 \
	 .in = {{type, shape, 1, 2, {0}, 0}}, .no_grad = !(grad), .reject = status}

const struct slp_case slp_cases_random[] = {
	SHIFT("some", 2, 0.5, 0, SL_FLOAT32, DIMS(7, 2, 5, 6), true, SL_OK),
	SHIFT("gradient", 2, 0.5, 1, SL_FLOAT32, DIMS(7, 2, 5, 6), true, SL_OK),
	SHIFT("only mirrored", 0, 1, 0, SL_FLOAT32, DIMS(3, 1, 4, 5), true, SL_OK),
	SHIFT("only moved", 3, 0, 0, SL_FLOAT32, DIMS(5, 1, 4, 4), true, SL_OK),
	SHIFT("beyond the image", 9, 0.5, 0, SL_FLOAT32, DIMS(9, 1, 4, 4), false, SL_OK),
	SHIFT("large", 4, 0.5, 0, SL_FLOAT32, DIMS(65, 3, 32, 32), false, SL_OK),
	SHIFT("bytes", 4, 0.5, 0, SL_UINT8, DIMS(11, 1, 28, 28), false, SL_OK),
	SHIFT("int64", 1, 0.5, 0, SL_INT64, DIMS(4, 1, 3, 3), false, SL_OK),
	SHIFT("empty", 4, 0.5, 0, SL_FLOAT32, DIMS(0, 1, 4, 4), false, SL_OK),
	SHIFT("no pixels", 4, 0.5, 0, SL_FLOAT32, DIMS(3, 1, 0, 4), false, SL_OK),
	SHIFT("three axes", 4, 0.5, 0, SL_FLOAT32, DIMS(1, 4, 4), false, SL_ESHAPE),
	SHIFT("negative", -1, 0.5, 0, SL_FLOAT32, DIMS(1, 1, 4, 4), false, SL_EINVAL),
	SHIFT("too likely", 1, 1.5, 0, SL_FLOAT32, DIMS(1, 1, 4, 4), false, SL_EINVAL),
	SHIFT("no number", 1, NAN, 0, SL_FLOAT32, DIMS(1, 1, 4, 4), false, SL_EINVAL),
	SHAPES("uniform", -2, 5),
	DRAW("uniform", "no width", SL_FLOAT32, 3, 3, SL_OK, 1, 5),
	DRAW("uniform", "upside down", SL_FLOAT32, 3, 2, SL_EINVAL, 1, 5),
	DRAW("uniform", "no number", SL_FLOAT32, NAN, 2, SL_EINVAL, 1, 5),
	SHAPES("normal", 0, 1),
	DRAW("normal", "elsewhere", SL_FLOAT32, 10, 0.01, SL_OK, 1, 4001),
	DRAW("normal", "no width", SL_FLOAT32, 3, 0, SL_OK, 1, 5),
	DRAW("normal", "negative width", SL_FLOAT32, 3, -1, SL_EINVAL, 1, 5),
	DRAW("normal", "infinite width", SL_FLOAT32, 3, INFINITY, SL_EINVAL, 1, 5),
	BERNOULLI("odd", SL_FLOAT32, DIMS(3, 7), SL_OK),
	BERNOULLI("large", SL_FLOAT32, DIMS(99999), SL_OK),
	BERNOULLI("scalar", SL_FLOAT32, {0}, SL_OK),
	BERNOULLI("empty", SL_FLOAT32, DIMS(3, 0), SL_OK),
	BERNOULLI("float64", SL_FLOAT64, DIMS(1023), SL_OK),
	BERNOULLI("integers", SL_INT32, DIMS(5), SL_EDTYPE),
	DROPOUT("half", 0.5, SL_FLOAT32, DIMS(5, 7), true, SL_OK),
	DROPOUT("few", 0.1, SL_FLOAT32, DIMS(3, 33333), false, SL_OK),
	DROPOUT("none", 0, SL_FLOAT32, DIMS(4, 5), true, SL_OK),
	DROPOUT("nearly all", 0.99, SL_FLOAT32, DIMS(1000), false, SL_OK),
	DROPOUT("scalar", 0.5, SL_FLOAT32, {0}, true, SL_OK),
	DROPOUT("empty", 0.5, SL_FLOAT32, DIMS(0), false, SL_OK),
	DROPOUT("all", 1, SL_FLOAT32, DIMS(5), false, SL_EINVAL),
	DROPOUT("negative", -0.1, SL_FLOAT32, DIMS(5), false, SL_EINVAL),
	DROPOUT("no number", NAN, SL_FLOAT32, DIMS(5), false, SL_EINVAL),
	DROPOUT("integers", 0.5, SL_INT32, DIMS(5), false, SL_EDTYPE),
	{0},
};
