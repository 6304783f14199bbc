/* Cases of convert_all. */
#include <starling.h>
#include "../codelets/move/convert_all.h"
#include "cases.h"

/* clang-format off */

#define TO(type, to, from) &(const struct slp_convert_all_attrs){type, to, from}
#define OF(type, ...) {type, DIMS(__VA_ARGS__), -1, 1}
#define EXPECT(...) .expect = {__VA_ARGS__}, .nexpect = SL_COUNT_(double, __VA_ARGS__)
#define CASE(what, how, n, first, ...) {.op = "convert_all", .label = what, .attrs = how, .nin = n, .in = {first, __VA_ARGS__}, .no_grad = true}
#define REJECT(what, how, why, n, ...) {.op = "convert_all", .label = what, .attrs = how, .nin = n, .in = {__VA_ARGS__}, .reject = why, .no_grad = true}

const struct slp_case slp_cases_convert_all[] = {
	{.op = "convert_all", .label = "into nhwc", .attrs = TO(SL_FLOAT32, 1, 0), .nin = 1, .in = {{SL_FLOAT32, DIMS(1, 2, 1, 3), 0, 0, {0, 1, 2, 3, 4, 5}, 6}}, .no_grad = true, EXPECT(0, 3, 1, 4, 2, 5)},
	{.op = "convert_all", .label = "out of nhwc", .attrs = TO(SL_FLOAT32, 0, 1), .nin = 1, .in = {{SL_FLOAT32, DIMS(1, 2, 1, 3), 0, 0, {0, 1, 2, 3, 4, 5}, 6}}, .no_grad = true, EXPECT(0, 2, 4, 1, 3, 5)},
	CASE("to bfloat16", TO(SL_BFLOAT16, 1, 0), 4, OF(SL_FLOAT32, 8, 5, 3, 3), OF(SL_FLOAT32, 8), OF(SL_FLOAT32, 2, 300), OF(SL_FLOAT32, 1)),
	CASE("to float16", TO(SL_FLOAT16, 5, 0), 3, OF(SL_FLOAT32, 7, 33, 2, 4), OF(SL_FLOAT32, 70), OF(SL_FLOAT32, 40, 9, 1, 1)),
	CASE("from bfloat16", TO(SL_FLOAT32, 0, 2), 4, OF(SL_BFLOAT16, 300), OF(SL_BFLOAT16, 9, 6, 5, 5), OF(SL_BFLOAT16, 0, 4), OF(SL_BFLOAT16, 2, 3)),
	CASE("from float16", TO(SL_FLOAT32, 0, 1), 1, OF(SL_FLOAT16, 4, 16, 3, 3), ),
	CASE("moved", TO(SL_BFLOAT16, 1, 2), 2, OF(SL_BFLOAT16, 16, 8, 3, 3), OF(SL_BFLOAT16, 16, 8, 3, 3)),
	CASE("large", TO(SL_FLOAT32, 1, 2), 2, OF(SL_FLOAT32, 64, 48, 3, 3), OF(SL_FLOAT32, 33, 64, 3, 3)),
	CASE("many", TO(SL_BFLOAT16, 0x212, 0), 11, OF(SL_FLOAT32, 300), OF(SL_FLOAT32, 8, 5, 3, 3), OF(SL_FLOAT32, 2), OF(SL_FLOAT32, 1028), OF(SL_FLOAT32, 3, 7, 2, 2),
	     OF(SL_FLOAT32, 0), OF(SL_FLOAT32, 64), OF(SL_FLOAT32, 5, 7), OF(SL_FLOAT32, 515), OF(SL_FLOAT32, 4, 3, 2, 5), OF(SL_FLOAT32, 17)),
	CASE("nothing", TO(SL_BFLOAT16, 1, 0), 2, OF(SL_FLOAT32, 0, 4, 3, 3), OF(SL_FLOAT32, 0)),
	REJECT("three axes", TO(SL_BFLOAT16, 1, 0), SL_ESHAPE, 1, OF(SL_FLOAT32, 2, 3, 4)),
	REJECT("both ways", TO(SL_BFLOAT16, 1, 1), SL_EINVAL, 1, OF(SL_FLOAT32, 2, 3, 4, 5)),
	REJECT("a layout too many", TO(SL_BFLOAT16, 2, 0), SL_EINVAL, 1, OF(SL_FLOAT32, 2, 3, 4, 5)),
	REJECT("integers", TO(SL_FLOAT32, 0, 0), SL_EDTYPE, 1, {SL_INT32, DIMS(4), -9, 9}),
	REJECT("several types", TO(SL_FLOAT32, 0, 0), SL_EDTYPE, 2, OF(SL_FLOAT32, 2), OF(SL_BFLOAT16, 2)),
	REJECT("to integers", TO(SL_INT32, 0, 0), SL_EDTYPE, 1, OF(SL_FLOAT32, 2)),
	{0},
};
