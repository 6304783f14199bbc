/* Cases of attention.  The expected values are PyTorch's, in float64. */
#include <math.h>

#include "attention/attention.h"
#include "cases.h"

/* clang-format off */
#define RANDOM(...) {SL_FLOAT32, DIMS(__VA_ARGS__), -1, 1, {0}, 0}
#define GIVEN(n, dims, ...) {SL_FLOAT32, DIMS dims, 0, 0, {__VA_ARGS__}, n}
#define UNPACK(...) __VA_ARGS__
#define WITH(by, hides) &(const struct slp_attention_attrs){.scale = by, .causal = hides}
#define FROM(by, hides, tensors) &(const struct slp_attention_attrs){.scale = by, .causal = hides, .sources = tensors}
#define HEADS(what, attrs, n, inputs, ...)                                                                             \
	{"attention_heads", what, attrs, n, .in = {UNPACK inputs}, .no_grad = true, __VA_ARGS__}
#define HEADS_GRAD(what, attrs, n, inputs, ...)                                                                        \
	{"attention_heads_grad", what, attrs, n, .in = {UNPACK inputs}, .no_grad = true, .tolerance = 1e-4, __VA_ARGS__}
#define CASE(what, attrs, n, inputs, ...) {"attention", what, attrs, n, .in = {UNPACK inputs}, __VA_ARGS__}
#define GRAD(what, attrs, n, inputs, ...)                                                                              \
	{"attention_grad", what, attrs, n, .in = {UNPACK inputs}, .no_grad = true, .tolerance = 1e-4, __VA_ARGS__}
#define CACHED(what, scale, n, inputs, ...)                                                                           \
	{"cached_attention", what, WITH(scale, false), n, .in = {UNPACK inputs}, .no_grad = true, __VA_ARGS__}
/* clang-format on */

/* clang-format off */
#define PLACE(n) {SL_INT32, DIMS(1), 0, 0, {n}, 1}
#define STEPS_OF_TWO GIVEN(4, (1, 2, 2), 0.5, -1, 1.5, 2), GIVEN(4, (1, 2, 2), 2, -1, 0.25, 0.5), GIVEN(4, (1, 2, 2), 3, -1, 0.5, -2), \
	GIVEN(8, (1, 4, 2), 1, -0.5, 9, 9, 9, 9, 9, 9), GIVEN(8, (1, 4, 2), 1, 2, 9, 9, 9, 9, 9, 9)
#define KNOWN GIVEN(4, (1, 2, 2), 0.5, -1, 1.5, 2), GIVEN(6, (1, 3, 2), 1, -0.5, 0.25, 2, -1, 0.5), GIVEN(6, (1, 3, 2), 1, 2, 3, -1, 0.5, -2)
#define EXPECT(...) .expect = {__VA_ARGS__}, .nexpect = 4
/* dy, q, k, v, y, logs */
#define BACK(h, t, s, d, e) RANDOM(h, t, e), RANDOM(h, t, d), RANDOM(h, s, d), RANDOM(h, s, e), RANDOM(h, t, e), RANDOM(h, t)
#define QKV(h, t, s, d, e) RANDOM(h, t, d), RANDOM(h, s, d), RANDOM(h, s, e)

const struct slp_case slp_cases_attention[] = {
	CASE("known values", WITH(0, false), 3, (KNOWN), EXPECT(1.10213736, 1.00636634, 2.8096262, -0.852365447)),
	CASE("known values, causal", WITH(0, true), 3, (KNOWN), EXPECT(1, 2, 2.87869661, -0.818044918)),
	CASE("known values, masked", WITH(0, false), 4, (KNOWN, GIVEN(6, (2, 3), 0, -1, 0.5, 0.25, 0, -INFINITY)), .no_grad = true,
	     EXPECT(0.928180074, 0.793759598, 2.84688109, -0.770321632)),
	CASE("known values, a scale", WITH(0.3, false), 3, (KNOWN), EXPECT(1.28910661, 0.243679057, 2.22003417, -0.542558736)),
	CASE("a query that sees nothing", WITH(0, false), 4, (KNOWN, GIVEN(6, (2, 3), -INFINITY, -INFINITY, -INFINITY, 0.25, 0, -INFINITY)),
	     .no_grad = true, EXPECT(0, 0, 2.84688109, -0.770321632)),
	CASE("NaN", WITH(0, false), 3, (GIVEN(4, (1, 2, 2), NAN, -1, 1.5, 2), GIVEN(6, (1, 3, 2), 1, -0.5, 0.25, 2, -1, 0.5), GIVEN(6, (1, 3, 2), 1, 2, 3, -1, 0.5, -2)), .no_grad = true,
	     EXPECT(NAN, NAN, 2.8096262, -0.852365447)),
	CASE("large scores", WITH(100, false), 3, (KNOWN), .no_grad = true, EXPECT(1, 2, 3, -1)),
	CASE("heads", WITH(0, false), 3, (RANDOM(2, 2, 4, 3), RANDOM(2, 2, 5, 3), RANDOM(2, 2, 5, 2))),
	CASE("heads, causal", WITH(0, true), 3, (RANDOM(2, 2, 4, 3), RANDOM(2, 2, 5, 3), RANDOM(2, 2, 5, 2))),
	CASE("causal, fewer keys", WITH(0, true), 3, (QKV(1, 5, 3, 2, 2))),
	CASE("no heads' axis", WITH(0, false), 3, (RANDOM(3, 4), RANDOM(2, 4), RANDOM(2, 4))),
	CASE("several blocks", WITH(0, false), 3, (QKV(2, 130, 300, 8, 5)), .no_grad = true),
	CASE("several blocks, causal", WITH(0, true), 3, (QKV(1, 300, 300, 5, 8)), .no_grad = true),
	CASE("wide vectors", WITH(0, true), 3, (QKV(2, 37, 41, 40, 64)), .no_grad = true),
	CASE("very wide vectors", WITH(0, false), 3, (QKV(1, 20, 41, 100, 65)), .no_grad = true),
	CASE("widest vectors", WITH(0, true), 3, (QKV(1, 5, 7, 130, 140)), .no_grad = true),
	CASE("mask of samples", WITH(0, false), 4, (RANDOM(2, 3, 7, 4), RANDOM(2, 3, 9, 4), RANDOM(2, 3, 9, 4), RANDOM(2, 1, 1, 9)), .no_grad = true),
	CASE("mask of heads, causal", WITH(0, true), 4, (RANDOM(2, 3, 7, 4), RANDOM(2, 3, 9, 4), RANDOM(2, 3, 9, 4), RANDOM(3, 7, 9)), .no_grad = true),
	CASE("no queries", WITH(0, false), 3, (QKV(2, 0, 3, 4, 4)), .no_grad = true),
	CASE("no keys", WITH(0, false), 3, (QKV(2, 2, 0, 4, 3)), .no_grad = true, EXPECT(0, 0, 0, 0)),
	CASE("widths differ", WITH(0, false), 3, (RANDOM(1, 2, 3), RANDOM(1, 2, 4), RANDOM(1, 2, 4)), .reject = SL_ESHAPE),
	CASE("heads differ", WITH(0, false), 3, (RANDOM(2, 2, 3), RANDOM(1, 2, 3), RANDOM(1, 2, 3)), .reject = SL_ESHAPE),
	CASE("a mask that does not fit", WITH(0, false), 4, (QKV(2, 2, 3, 4, 4), RANDOM(2, 2)), .reject = SL_ESHAPE),
	CASE("integers", WITH(0, false), 3, ({SL_INT32, DIMS(2, 2), 0, 3, {0}, 0}, RANDOM(2, 2), RANDOM(2, 2)), .reject = SL_EDTYPE),

	GRAD("small", WITH(0, false), 6, (BACK(3, 4, 5, 3, 2))),
	GRAD("causal", WITH(0.5, true), 6, (BACK(3, 4, 5, 3, 2))),
	GRAD("masked", WITH(0, false), 7, (BACK(3, 4, 5, 3, 2), RANDOM(3, 1, 5))),
	GRAD("several blocks", WITH(0, false), 6, (BACK(2, 130, 300, 8, 5))),
	GRAD("several blocks, causal", WITH(0, true), 6, (BACK(1, 300, 300, 5, 8))),
	GRAD("wide vectors", WITH(0, true), 6, (BACK(2, 37, 41, 40, 64))),
	GRAD("very wide vectors", WITH(0, false), 6, (BACK(1, 20, 41, 100, 65))),
	GRAD("widest vectors", WITH(0, true), 6, (BACK(1, 5, 7, 130, 140))),
	GRAD("masked, causal", WITH(0, true), 7, (BACK(3, 40, 45, 8, 16), RANDOM(3, 40, 45))),
	GRAD("no queries", WITH(0, false), 6, (BACK(2, 0, 3, 4, 4))),
	GRAD("logs of another shape", WITH(0, false), 6, (RANDOM(1, 2, 3), QKV(1, 2, 2, 3, 3), RANDOM(1, 2, 3), RANDOM(1, 3)), .reject = SL_ESHAPE),

	HEADS("one source", FROM(0, false, 1), 1, (RANDOM(2, 4, 3, 2, 5))),
	HEADS("one source, causal", FROM(0.5, true, 1), 1, (RANDOM(3, 9, 3, 2, 8))),
	HEADS("one source, a mask", FROM(0, false, 1), 2, (RANDOM(2, 5, 3, 2, 4), RANDOM(2, 1, 1, 5))),
	HEADS("two sources", FROM(0, false, 2), 2, (RANDOM(2, 4, 1, 3, 5), RANDOM(2, 7, 2, 3, 5))),
	HEADS("three sources", FROM(0, true, 3), 3, (RANDOM(2, 4, 1, 3, 5), RANDOM(2, 7, 1, 3, 5), RANDOM(2, 7, 1, 3, 6))),
	HEADS("several blocks", FROM(0, true, 1), 1, (RANDOM(1, 150, 3, 2, 40))),
	HEADS("widest vectors", FROM(0, true, 1), 1, (RANDOM(2, 6, 3, 2, 136))),
	HEADS("no batches", FROM(0, true, 1), 1, (RANDOM(0, 6, 3, 2, 8))),
	HEADS("no sources", FROM(0, true, 0), 1, (RANDOM(2, 6, 3, 2, 8)), .reject = SL_EINVAL),
	HEADS("too few parts", FROM(0, true, 1), 1, (RANDOM(2, 6, 2, 2, 8)), .reject = SL_ESHAPE),
	HEADS("four axes", FROM(0, true, 1), 1, (RANDOM(6, 3, 2, 8)), .reject = SL_ESHAPE),
	HEADS("heads differ", FROM(0, true, 2), 2, (RANDOM(2, 4, 1, 3, 5), RANDOM(2, 7, 2, 2, 5)), .reject = SL_ESHAPE),

	HEADS_GRAD("one source", FROM(0, false, 1), 4, (RANDOM(2, 4, 2, 5), RANDOM(2, 4, 3, 2, 5), RANDOM(2, 4, 2, 5), RANDOM(2, 2, 4))),
	HEADS_GRAD("one source, causal", FROM(0, true, 1), 4, (RANDOM(3, 9, 2, 8), RANDOM(3, 9, 3, 2, 8), RANDOM(3, 9, 2, 8), RANDOM(3, 2, 9))),
	HEADS_GRAD("one source, a mask", FROM(0, true, 1), 5, (RANDOM(2, 5, 2, 8), RANDOM(2, 5, 3, 2, 8), RANDOM(2, 5, 2, 8), RANDOM(2, 2, 5), RANDOM(2, 1, 1, 5))),
	HEADS_GRAD("two sources", FROM(0, false, 2), 5, (RANDOM(2, 4, 3, 5), RANDOM(2, 4, 1, 3, 5), RANDOM(2, 7, 2, 3, 5), RANDOM(2, 4, 3, 5), RANDOM(2, 3, 4))),
	HEADS_GRAD("three sources", FROM(0, false, 3), 6, (RANDOM(2, 4, 3, 6), RANDOM(2, 4, 1, 3, 5), RANDOM(2, 7, 1, 3, 5), RANDOM(2, 7, 1, 3, 6), RANDOM(2, 4, 3, 6), RANDOM(2, 3, 4))),
	HEADS_GRAD("several blocks", FROM(0, true, 1), 4, (RANDOM(1, 150, 2, 40), RANDOM(1, 150, 3, 2, 40), RANDOM(1, 150, 2, 40), RANDOM(1, 2, 150))),
	HEADS_GRAD("widest vectors", FROM(0, true, 1), 4, (RANDOM(2, 6, 2, 136), RANDOM(2, 6, 3, 2, 136), RANDOM(2, 6, 2, 136), RANDOM(2, 2, 6))),
	HEADS_GRAD("logs of another shape", FROM(0, false, 1), 4, (RANDOM(2, 4, 2, 5), RANDOM(2, 4, 3, 2, 5), RANDOM(2, 4, 2, 5), RANDOM(2, 4, 2)), .reject = SL_ESHAPE),

	CACHED("known values", 0, 6, (STEPS_OF_TWO, PLACE(1)), EXPECT(2.3395231, -0.00928464798, 1.44852, -0.732879719)),
	CACHED("known values, a scale", 0.3, 6, (STEPS_OF_TWO, PLACE(1)), EXPECT(2.14888503, 0.27667245, 1.48341279, -0.509006854)),
	CACHED("known values, the first", 0, 6, (STEPS_OF_TWO, PLACE(0)), EXPECT(3, -1, 1.58523613, -1.56590555)),
	CACHED("the last place", 0, 6, (STEPS_OF_TWO, PLACE(2)), .nexpect = 0),
	CACHED("one step of heads", 0, 6, (RANDOM(2, 3, 1, 5), RANDOM(2, 3, 1, 5), RANDOM(2, 3, 1, 4), RANDOM(2, 3, 9, 5), RANDOM(2, 3, 9, 4), PLACE(6))),
	CACHED("several blocks", 0, 6, (QKV(2, 70, 70, 8, 5), RANDOM(2, 700, 8), RANDOM(2, 700, 5), PLACE(530))),
	CACHED("one step, many keys", 0, 6, (QKV(3, 1, 1, 40, 33), RANDOM(3, 500, 40), RANDOM(3, 500, 33), PLACE(430))),
	CACHED("no steps", 0, 6, (QKV(2, 0, 0, 4, 4), RANDOM(2, 3, 4), RANDOM(2, 3, 4), PLACE(3))),
	CACHED("another cache", 0, 6, (QKV(2, 1, 1, 4, 4), RANDOM(1, 3, 4), RANDOM(2, 3, 4), PLACE(0)), .reject = SL_ESHAPE),
	CACHED("caches of two lengths", 0, 6, (QKV(2, 1, 1, 4, 4), RANDOM(2, 3, 4), RANDOM(2, 5, 4), PLACE(0)), .reject = SL_ESHAPE),
	CACHED("a float place", 0, 6, (QKV(2, 1, 1, 4, 4), RANDOM(2, 3, 4), RANDOM(2, 3, 4), GIVEN(1, (1), 0)), .reject = SL_EDTYPE),
	CACHED("a scale that is not finite", INFINITY, 6, (QKV(2, 1, 1, 4, 4), RANDOM(2, 3, 4), RANDOM(2, 3, 4), PLACE(0)), .reject = SL_EINVAL),
	{0},
};
