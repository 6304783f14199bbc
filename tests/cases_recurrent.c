/* Cases of recurrent layers.  The expected values are PyTorch's, in float64. */
#include <starling.h>

#include "cases.h"
#include "recurrent/recurrent.h"

/* clang-format off */
#define RANDOM(...) {SL_FLOAT32, DIMS(__VA_ARGS__), -1, 1, {0}, 0}
#define GIVEN(n, dims, ...) {SL_FLOAT32, DIMS dims, 0, 0, {__VA_ARGS__}, n}
#define UNPACK(...) __VA_ARGS__
#define WITH(...) &(const struct slp_recurrent_attrs){__VA_ARGS__}
#define CASE(what, attrs, n, inputs, ...) {"recurrent", what, attrs, n, .in = {UNPACK inputs}, __VA_ARGS__}
#define GRAD(what, attrs, n, inputs, ...)                                                                              \
	{"recurrent_grad", what, attrs, n, .in = {UNPACK inputs}, .no_grad = true, .tolerance = 1e-4, __VA_ARGS__}
/* clang-format on */
#define EXPECT(...) .expect = {__VA_ARGS__}, .nexpect = 4

/* clang-format off */
#define STATE GIVEN(2, (1, 2), 1.119, 0.212)
#define PLAIN GIVEN(4, (2, 1, 2), 0.443, 1.262, 1.487, 1.013), GIVEN(4, (2, 2), 1.445, 1.364, 0.641, -0.383), STATE
#define LSTM GIVEN(16, (2, 1, 8), 0.443, 1.262, 1.487, 1.013, 0.062, -0.918, -1.466, -1.325, -0.561, 0.467, 1.276, 1.484, 0.994, 0.037, -0.938, -1.471), \
	GIVEN(16, (8, 2), 1.445, 1.364, 0.641, -0.383, -1.227, -1.494, -1.058, -0.125, 0.868, 1.452, 1.353, 0.618, -0.408, -1.242, -1.492, -1.04), \
	STATE, GIVEN(2, (1, 2), -0.237, -1.135)
#define GRU GIVEN(12, (2, 1, 6), 0.443, 1.262, 1.487, 1.013, 0.062, -0.918, -1.466, -1.325, -0.561, 0.467, 1.276, 1.484), \
	GIVEN(12, (6, 2), 1.445, 1.364, 0.641, -0.383, -1.227, -1.494, -1.058, -0.125, 0.868, 1.452, 1.353, 0.618), STATE
#define BIAS GIVEN(6, (6), -1.374, -1.438, -0.826, 0.175, 1.093, 1.498)
/* steps, rows, units; gates and numbers kept of a unit */
#define IN(t, b, h, g) RANDOM(t, b, (g) * (h)), RANDOM((g) * (h), h), RANDOM(b, h)
#define BACK(t, b, h, g, kept, cells) RANDOM(t, b, h), RANDOM(cells, h), RANDOM((g) * (h), h), RANDOM(b, h), RANDOM(t, b, h), RANDOM(t, b, (kept) * (h))

const struct slp_case slp_cases_recurrent[] = {
	CASE("known values, tanh", WITH(SL_CELL_TANH, false), 3, (PLAIN), EXPECT(0.981942042, 0.956073043, 0.999559259, 0.855482273)),
	CASE("known values, tanh, reverse", WITH(SL_CELL_TANH, true), 3, (PLAIN), EXPECT(0.996345304, 0.913098115, 0.997744148, 0.92873168)),
	CASE("known values, relu", WITH(SL_CELL_RELU, false), 3, (PLAIN), EXPECT(2.349123, 1.898083, 7.47046795, 1.79182205)),
	CASE("known values, LSTM", WITH(SL_CELL_LSTM, false), 4, (LSTM), EXPECT(0.060376114, 0.00110411347, 0.187843367, 0.016784175)),
	CASE("known values, LSTM, reverse", WITH(SL_CELL_LSTM, true), 4, (LSTM), EXPECT(0.102157963, -0.0833985007, 0.0949166823, 0.00187508815)),
	CASE("known values, GRU", WITH(SL_CELL_GRU, false), 3, (GRU), EXPECT(0.966772631, 0.354787018, 0.969665394, 0.745484403)),
	CASE("known values, GRU, bias", WITH(SL_CELL_GRU, false), 4, (GRU, BIAS), EXPECT(0.990948547, 0.491726762, 0.973268576, 0.769324888)),
	CASE("known values, GRU, bias, reverse", WITH(SL_CELL_GRU, true), 4, (GRU, BIAS), EXPECT(0.980879003, 0.684714923, 0.966959926, 0.682314295)),
	CASE("tanh", WITH(SL_CELL_TANH, false), 3, (IN(4, 3, 5, 1))),
	CASE("LSTM", WITH(SL_CELL_LSTM, false), 4, (IN(4, 3, 2, 4), RANDOM(3, 2))),
	CASE("LSTM, reverse", WITH(SL_CELL_LSTM, true), 4, (IN(3, 2, 3, 4), RANDOM(2, 3))),
	CASE("GRU", WITH(SL_CELL_GRU, false), 4, (IN(4, 3, 2, 3), RANDOM(6))),
	CASE("GRU, no bias, reverse", WITH(SL_CELL_GRU, true), 3, (IN(3, 2, 3, 3))),
	CASE("many units", WITH(SL_CELL_LSTM, false), 4, (IN(3, 13, 270, 4), RANDOM(13, 270)), .no_grad = true, .tolerance = 1e-4),
	CASE("many units, GRU", WITH(SL_CELL_GRU, false), 4, (IN(2, 9, 70, 3), RANDOM(210)), .no_grad = true, .tolerance = 1e-4),
	CASE("one step", WITH(SL_CELL_LSTM, false), 4, (IN(1, 1, 3, 4), RANDOM(1, 3))),
	CASE("no steps", WITH(SL_CELL_LSTM, false), 4, (IN(0, 2, 3, 4), RANDOM(2, 3)), .no_grad = true),
	CASE("no rows", WITH(SL_CELL_GRU, false), 4, (IN(2, 0, 3, 3), RANDOM(9)), .no_grad = true),
	CASE("no such cell", WITH(4, false), 3, (PLAIN), .reject = SL_EINVAL),
	CASE("gates that do not fit", WITH(SL_CELL_GRU, false), 3, (PLAIN), .reject = SL_ESHAPE),
	CASE("no cell", WITH(SL_CELL_LSTM, false), 3, (IN(2, 2, 3, 4)), .reject = SL_ESHAPE),
	CASE("a state of other rows", WITH(SL_CELL_TANH, false), 3, (RANDOM(2, 2, 3), RANDOM(3, 3), RANDOM(1, 3)), .reject = SL_ESHAPE),
	CASE("integers", WITH(SL_CELL_TANH, false), 3, ({SL_INT32, DIMS(2, 2, 3), 0, 3, {0}, 0}, RANDOM(3, 3), RANDOM(2, 3)), .reject = SL_EDTYPE),

	GRAD("relu", WITH(SL_CELL_RELU, false), 6, (BACK(3, 2, 3, 1, 0, 0))),
	GRAD("LSTM", WITH(SL_CELL_LSTM, false), 7, (BACK(3, 2, 3, 4, 5, 2), RANDOM(2, 3))),
	GRAD("many units, LSTM, reverse", WITH(SL_CELL_LSTM, true), 7, (BACK(2, 9, 70, 4, 5, 9), RANDOM(9, 70))),
	GRAD("GRU", WITH(SL_CELL_GRU, true), 7, (BACK(3, 2, 3, 3, 4, 0), RANDOM(9))),
	GRAD("many units, GRU, no bias", WITH(SL_CELL_GRU, false), 6, (BACK(2, 9, 70, 3, 4, 0))),
	GRAD("no steps", WITH(SL_CELL_LSTM, false), 7, (BACK(0, 2, 3, 4, 5, 2), RANDOM(2, 3))),
	GRAD("kept of another shape", WITH(SL_CELL_LSTM, false), 7, (BACK(3, 2, 3, 4, 4, 2), RANDOM(2, 3)), .reject = SL_ESHAPE),
	{0},
};
