/* Cases of filling, ranges, copies and conversions.  The expected values are NumPy's where it does not leave them open:
 * what an integer cannot hold saturates here. */
#include <math.h>

#include "cases.h"
#include "op_inner.h"
#include "fill/fill.h"

/* clang-format off */
#define LIST(...) {__VA_ARGS__}
#define NUMBER(s) &(const struct slp_value){s}
/* clang-format on */

/* clang-format off */
#define FILL(label, type, value, status, first, ndim, ...)                                                             \
	{"fill", label, &(const struct slp_fill){{type, ndim, {__VA_ARGS__}}, value}, 0, .no_grad = true,              \
	 .reject = status,                                                                                             \
	 .expect = {first}, .nexpect = (status) == SL_OK && (first) != -1}
#define ARANGE(label, type, start, step, n, status, values, count)                                                     \
	{"arange", label, &(const struct slp_arange){{type, 1, {n}}, start, step}, 0, .no_grad = true,                 \
	 .reject = status,                                                                                             \
	 .expect = values, .nexpect = count}
#define INPUT(type, dims, low, high) {type, dims, low, high, {0}, 0}
#define GIVEN(type, n, ...) {type, DIMS(n), 0, 0, {__VA_ARGS__}, n}
#define CAST(label, to, n, from, values, ...)                                                                          \
	{"cast", label, &(const struct slp_cast){to}, 1, .in = {GIVEN(from, n, __VA_ARGS__)}, .no_grad = true,         \
	 .expect = values, .nexpect = n, .own_types = true}
#define CAST_LARGE(from, to, low, high)                                                                                \
	{"cast", "large", &(const struct slp_cast){to}, 1, .in = {INPUT(from, DIMS(70003), low, high)},                \
	 .no_grad = true,                                                                                              \
	 .own_types = true}
#define WRAP(label, to, from, values, ...)                                                                             \
	{"wrap", label, &(const struct slp_cast){to}, 1, .in = {GIVEN(from, 4, __VA_ARGS__)}, .no_grad = true,         \
	 .expect = values, .nexpect = 4, .own_types = true}
#define MODULAR(label, kind, values, status)                                                                           \
	{"modular", label, &(const int){kind}, 2, .in = {GIVEN(SL_INT64, 2, 0x1p62, 1), GIVEN(SL_INT64, 2, 0x1p62, 2)}, \
	 .no_grad = true, .expect = values, .nexpect = (status) == SL_OK ? 2 : 0, .reject = status, .own_types = true}
#define CAST_ALL(from, low, high)                                                                                      \
	CAST_LARGE(from, SL_FLOAT32, low, high), CAST_LARGE(from, SL_FLOAT64, low, high),                              \
	CAST_LARGE(from, SL_INT32, low, high), CAST_LARGE(from, SL_UINT8, low, high)
#define ONE(name, label, attrs, type, dims, values, count)                                                             \
	{name, label, attrs, 1, .in = {{type, dims, -3, 3, {0}, 0}}, .no_grad = (type) > SL_FLOAT64,                   \
	 .expect = values,                                                                                             \
	 .nexpect = count}
#define ASSIGN(label, type, to, from_type, from, status)                                                               \
	{"assign", label, NULL, 2, .in = {{type, to, -3, 3, {0}, 0}, {from_type, from, 1, 9, {0}, 0}}, .no_grad = true, \
	 .reject = status}
#define OVER(label, type, to, from_type, from, status)                                                                 \
	{"copy_over", label, NULL, 2, .in = {{type, to, -3, 3, {0}, 0}, {from_type, from, 1, 9, {0}, 0}},              \
	 .no_grad = (type) > SL_FLOAT64, .reject = status}

const struct slp_case slp_cases_fill[] = {
	FILL("float32", SL_FLOAT32, 0.5, SL_OK, 0.5, 2, 2, 3),
	FILL("float64", SL_FLOAT64, 0.1, SL_OK, 0.1, 1, 70001),
	FILL("int32, truncated", SL_INT32, -2.7, SL_OK, -2, 1, 5),
	FILL("int32, too large", SL_INT32, 1e30, SL_EDTYPE, 0, 1, 5),
	FILL("uint8, too small", SL_UINT8, -3, SL_EDTYPE, 0, 3, 1, 7, 1),
	FILL("uint8, no number", SL_UINT8, NAN, SL_EDTYPE, 0, 1, 3),
	FILL("no number", SL_FLOAT32, NAN, SL_OK, NAN, 1, 3),
	FILL("scalar", SL_FLOAT32, 7, SL_OK, 7, 0, 0),
	FILL("empty", SL_FLOAT32, 7, SL_OK, -1, 2, 3, 0),
	FILL("large, uint8", SL_UINT8, 200, SL_OK, 200, 1, 70001),
	FILL("large, int32", SL_INT32, 200, SL_OK, 200, 2, 300, 301),
	FILL("large", SL_FLOAT32, 200, SL_OK, 200, 2, 300, 301),
	FILL("negative size", SL_FLOAT32, 0, SL_ESHAPE, 0, 2, 3, -1),
	FILL("too many axes", SL_FLOAT32, 0, SL_ESHAPE, 0, 9, 1, 1, 1, 1, 1, 1),
	FILL("negative number of axes", SL_FLOAT32, 0, SL_ESHAPE, 0, -1, 1),
	FILL("too large", SL_FLOAT32, 0, SL_ESHAPE, 0, 2, INT64_C(1) << 40, INT64_C(1) << 40),
	FILL("too large for its bytes", SL_UINT8, 0, SL_ESHAPE, 0, 1, INT64_MAX / 8),
	FILL("no data type", SL_DTYPE_COUNT, 0, SL_EDTYPE, 0, 1, 3),
	FILL("no data type", -1, 0, SL_EDTYPE, 0, 1, 3),

	ONE("full_like", "float32", NUMBER(2.5), SL_FLOAT32, DIMS(2, 3), LIST(2.5, 2.5, 2.5, 2.5, 2.5, 2.5), 6),
	ONE("full_like", "large", NUMBER(2.5), SL_FLOAT32, DIMS(70001), LIST(2.5), 1),
	ONE("full_like", "int32", NUMBER(-2.5), SL_INT32, DIMS(2), LIST(-2, -2), 2),
	ONE("full_like", "uint8", NUMBER(200.5), SL_UINT8, DIMS(2), LIST(200, 200), 2),
	ONE("full_like", "empty", NUMBER(1), SL_FLOAT32, DIMS(0, 2), {0}, 0),
	ONE("full_like", "scalar", NUMBER(1), SL_FLOAT32, NO_DIMS, LIST(1), 1),

	ARANGE("float32", SL_FLOAT32, -1, 0.25, 6, SL_OK, LIST(-1, -0.75, -0.5, -0.25, 0, 0.25), 6),
	ARANGE("float64", SL_FLOAT64, 3, -1, 4, SL_OK, LIST(3, 2, 1, 0), 4),
	ARANGE("int32", SL_INT32, 5, 3, 4, SL_OK, LIST(5, 8, 11, 14), 4),
	ARANGE("int32, truncated", SL_INT32, 0, 0.5, 5, SL_OK, LIST(0, 0, 1, 1, 2), 5),
	ARANGE("uint8", SL_UINT8, 251, 1, 5, SL_OK, LIST(251, 252, 253, 254, 255), 5),
	ARANGE("uint8, too large", SL_UINT8, 252, 1, 5, SL_EDTYPE, LIST(0), 0),
	ARANGE("large", SL_FLOAT32, 0, 0.1, 70001, SL_OK, LIST(0, 0.1, 0.2, 0.3), 4),
	ARANGE("large, int32", SL_INT32, -7, 1, 70001, SL_OK, LIST(-7, -6, -5), 3),
	ARANGE("empty", SL_FLOAT32, 0, 1, 0, SL_OK, {0}, 0),
	ARANGE("negative size", SL_FLOAT32, 0, 1, -1, SL_ESHAPE, {0}, 0),
	ARANGE("no data type", 99, 0, 1, 1, SL_EDTYPE, {0}, 0),

	ONE("copy", "float32", NULL, SL_FLOAT32, DIMS(2, 3), {0}, 0),
	ONE("copy", "int32", NULL, SL_INT32, DIMS(2, 3), {0}, 0),
	ONE("copy", "large, uint8", NULL, SL_UINT8, DIMS(70001), {0}, 0),
	ONE("copy", "empty", NULL, SL_FLOAT32, DIMS(2, 0), {0}, 0),
	ONE("copy", "scalar", NULL, SL_FLOAT32, NO_DIMS, {0}, 0),
	{"copy", "large", NULL, 1, .in = {INPUT(SL_FLOAT32, DIMS(3, 33333), -3, 3)}, .no_grad = true},
	{"copy", "known values", NULL, 1, .in = {GIVEN(SL_FLOAT32, 3, 1.5, NAN, -INFINITY)}, .no_grad = true,
	 .expect = {1.5, NAN, -INFINITY}, .nexpect = 3},

	OVER("float32", SL_FLOAT32, DIMS(2, 3), SL_FLOAT32, DIMS(2, 3), SL_OK),
	OVER("uint8", SL_UINT8, DIMS(2, 3), SL_UINT8, DIMS(2, 3), SL_OK),
	OVER("empty", SL_FLOAT32, DIMS(0), SL_FLOAT32, DIMS(0), SL_OK),
	OVER("scalar", SL_FLOAT32, NO_DIMS, SL_FLOAT32, NO_DIMS, SL_OK),
	OVER("shapes differ", SL_FLOAT32, DIMS(2, 3), SL_FLOAT32, DIMS(3), SL_ESHAPE),
	OVER("data types differ", SL_FLOAT32, DIMS(3), SL_INT32, DIMS(3), SL_EDTYPE),
	ASSIGN("float32", SL_FLOAT32, DIMS(2, 3), SL_FLOAT32, DIMS(2, 3), SL_OK),
	ASSIGN("large, float64", SL_FLOAT64, DIMS(70001), SL_FLOAT64, DIMS(70001), SL_OK),
	ASSIGN("uint8", SL_UINT8, DIMS(2, 3), SL_UINT8, DIMS(2, 3), SL_OK),
	ASSIGN("empty", SL_FLOAT32, DIMS(0), SL_FLOAT32, DIMS(0), SL_OK),
	ASSIGN("scalar", SL_FLOAT32, NO_DIMS, SL_FLOAT32, NO_DIMS, SL_OK),
	ASSIGN("shapes differ", SL_FLOAT32, DIMS(2, 3), SL_FLOAT32, DIMS(3), SL_ESHAPE),
	ASSIGN("data types differ", SL_FLOAT32, DIMS(3), SL_INT32, DIMS(3), SL_EDTYPE),
	{"copy_over", "known values", NULL, 2, .in = {GIVEN(SL_FLOAT32, 2, 1, 2), GIVEN(SL_FLOAT32, 2, 3, 4)},
	 .expect = {3, 4}, .nexpect = 2},

	CAST("float32 to int32", SL_INT32, 8, SL_FLOAT32, LIST(1, -1, 2, 0, 2147483647, -2147483648.0, 0, 2147483647),
	     1.9, -1.9, 2.5, -0.3, 1e20, -INFINITY, NAN, 2147483648.0),
	CAST("float64 to int32", SL_INT32, 8, SL_FLOAT64, LIST(1, -1, 2, 0, 2147483647, -2147483648.0, 0, 2147483646),
	     1.9, -1.9, 2.5, -0.3, 1e20, -INFINITY, NAN, 2147483646.9),
	CAST("float32 to uint8", SL_UINT8, 8, SL_FLOAT32, LIST(1, 0, 2, 0, 255, 0, 0, 254),
	     1.9, -1.9, 2.5, -0.3, 1e20, -INFINITY, NAN, 254.9),
	CAST("int32 to uint8", SL_UINT8, 4, SL_INT32, LIST(7, 0, 255, 255), 7, -7, 255, 256),
	CAST("int32 to float32", SL_FLOAT32, 4, SL_INT32, LIST(7, -7, 2147483648.0, 16777216),
	     7, -7, 2147483647, 16777217),
	CAST("uint8 to float32", SL_FLOAT32, 3, SL_UINT8, LIST(0, 128, 255), 0, 128, 255),
	CAST("float64 to float32", SL_FLOAT32, 4, SL_FLOAT64, LIST(0.5, INFINITY, NAN, 0), 0.5, 1e300, NAN, 1e-300),
	CAST_ALL(SL_FLOAT32, -300, 300), CAST_ALL(SL_FLOAT64, -300, 300), CAST_ALL(SL_INT32, -300, 300),
	CAST_ALL(SL_UINT8, 0, 256),
	CAST("float32 to int8", SL_INT8, 5, SL_FLOAT32, LIST(1, -1, 127, -128, 0), 1.9, -1.9, 300, -300, NAN),
	CAST("float32 to uint64", SL_UINT64, 3, SL_FLOAT32, LIST(1, 0, 0x1p63), 1.9, -1.9, 0x1p63),
	CAST("int32 to uint16", SL_UINT16, 3, SL_INT32, LIST(7, 0, 65535), 7, -7, 65536),
	CAST_LARGE(SL_INT16, SL_FLOAT32, -300, 300), CAST_LARGE(SL_UINT32, SL_INT32, 0, 300),
	CAST_LARGE(SL_FLOAT32, SL_INT16, -300, 300),
	WRAP("int64 to int8", SL_INT8, SL_INT64, LIST(127, -128, 127, 0), 127, 128, -129, 256),
	WRAP("int32 to uint8", SL_UINT8, SL_INT32, LIST(255, 0, 44, 1), -1, 256, 300, 1),
	WRAP("int8 to uint64", SL_UINT64, SL_INT8, LIST(0x1p64, 5, 0, 127), -1, 5, 0, 127),
	WRAP("uint32 to int32", SL_INT32, SL_UINT32, LIST(-1, -2147483648.0, 3, 0), 4294967295.0, 2147483648.0, 3, 0),
	{"wrap", "floats", &(const struct slp_cast){SL_INT8}, 1, .in = {INPUT(SL_FLOAT32, DIMS(2), 0, 1)},
	 .reject = SL_EDTYPE},
	{"wrap", "into floats", &(const struct slp_cast){SL_FLOAT32}, 1, .in = {INPUT(SL_INT32, DIMS(2), 0, 1)},
	 .reject = SL_EDTYPE},
	MODULAR("sum", SLP_MODULAR_ADD, LIST(-0x1p63, 3), SL_OK), MODULAR("difference", SLP_MODULAR_SUB, LIST(0, -1), SL_OK),
	MODULAR("product", SLP_MODULAR_MUL, LIST(0, 2), SL_OK), MODULAR("no kind", SLP_MODULAR_KINDS, LIST(0), SL_EINVAL),
	MODULAR("and", SLP_MODULAR_AND, LIST(0x1p62, 0), SL_OK), MODULAR("or", SLP_MODULAR_OR, LIST(0x1p62, 3), SL_OK),
	MODULAR("xor", SLP_MODULAR_XOR, LIST(0, 3), SL_OK), MODULAR("left", SLP_MODULAR_LEFT, LIST(0, 4), SL_OK),
	MODULAR("right", SLP_MODULAR_RIGHT, LIST(0, 0), SL_OK),
	{"modular", "shapes differ", &(const int){0}, 2, .in = {GIVEN(SL_INT64, 2, 1, 2), GIVEN(SL_INT64, 1, 1)}, .no_grad = true,
	 .reject = SL_ESHAPE},
	{"modular", "types differ", &(const int){0}, 2, .in = {GIVEN(SL_INT64, 1, 1), GIVEN(SL_INT32, 1, 1)}, .no_grad = true,
	 .reject = SL_EDTYPE},
	{"cast", "float32 to float64", &(const struct slp_cast){SL_FLOAT64}, 1,
	 .in = {INPUT(SL_FLOAT32, DIMS(2, 3), -3, 3)}},
	{"cast", "scalar", &(const struct slp_cast){SL_FLOAT32}, 1, .in = {INPUT(SL_FLOAT32, NO_DIMS, -3, 3)}},
	{"cast", "empty", &(const struct slp_cast){SL_INT32}, 1, .in = {INPUT(SL_FLOAT32, DIMS(0), -3, 3)},
	 .no_grad = true},
	{"cast", "no data type", &(const struct slp_cast){SL_DTYPE_COUNT}, 1, .in = {INPUT(SL_FLOAT32, DIMS(2), 0, 1)},
	 .reject = SL_EDTYPE},
	{0},
};
