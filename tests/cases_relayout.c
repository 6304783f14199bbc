/* Cases of relayout.  The expected values follow from the definition: element (image, i) at (image / 16, i, image %
 * 16). */
#include "../codelets/common/image_layout.h"
#include <starling.h>
#include "../codelets/move/relayout.h"
#include "cases.h"

/* clang-format off */

#define TO_N16 &(const struct slp_relayout_attrs){SLP_LAYOUT_N16}
#define BACK &(const struct slp_relayout_attrs){SLP_LAYOUT_PLAIN}
#define CASE(what, how, shape_, ...) {.op = "relayout", .label = what, .attrs = how, .nin = 1, .in = {{SL_FLOAT32, shape_, -1, 1}}, __VA_ARGS__}
#define COUNTED(...) {.op = "relayout", .nin = 1, .in = {{SL_FLOAT32, {2, {16, 2}}, 0, 0, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, 16}}, __VA_ARGS__}
#define EXPECT(...) .expect = {__VA_ARGS__}, .nexpect = SL_COUNT_(double, __VA_ARGS__)

const struct slp_case slp_cases_relayout[] = {
	COUNTED(.label = "into n16", .attrs = TO_N16, EXPECT(0, 2, 4, 6, 8, 10, 12, 14, 0, 2, 4, 6, 8, 10, 12, 14)),
	COUNTED(.label = "out of n16", .attrs = BACK, EXPECT(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7)),
	CASE("images", TO_N16, DIMS(32, 3, 5, 7)),
	CASE("images back", BACK, DIMS(32, 3, 5, 7)),
	CASE("one axis", TO_N16, DIMS(48)),
	CASE("large", TO_N16, DIMS(64, 20, 13, 13), .no_grad = true),
	CASE("large, back", BACK, DIMS(64, 20, 13, 13), .no_grad = true),
	CASE("no images", TO_N16, DIMS(0, 3, 4)),
	CASE("no elements", BACK, DIMS(16, 0, 4)),
	CASE("not a multiple of 16", TO_N16, DIMS(24, 3), .reject = SL_ESHAPE, .no_grad = true),
	CASE("into nhwc", &(const struct slp_relayout_attrs){SLP_LAYOUT_NHWC}, DIMS(16, 2), .reject = SL_EINVAL, .no_grad = true),
	CASE("a scalar", TO_N16, {0}, .reject = SL_ESHAPE, .no_grad = true),
	{.op = "relayout", .label = "integers", .attrs = TO_N16, .nin = 1, .in = {{SL_INT32, DIMS(16, 2), -9, 9}}, .reject = SL_EDTYPE, .no_grad = true},
	{0},
};
