/* Cases of the operations that move elements, and of those that make batches.  The expected values were computed with
 * NumPy. */
#include <math.h>
#include <starling.h>

#include "../codelets/move/batch.h"
#include "../codelets/common/move_attrs.h"
#include "cases.h"

/* clang-format off */

#define SCALAR {0, {0}}
#define LIST(...) {__VA_ARGS__}
#define COUNT(...) SL_COUNT_(double, __VA_ARGS__)

/* An input: random, or with these values. */
#define ANY(dtype, dims) {dtype, dims, 0, 100, {0}, 0}
#define REAL(dims) {SL_FLOAT32, dims, -1, 1, {0}, 0}
#define INDEX(dims, high) {SL_INT32, dims, 0, high, {0}, 0}
#define PIXELS(dims) {SL_UINT8, dims, 0, 256, {0}, 0}
#define VALUES(dtype, dims, ...) {dtype, dims, 0, 0, {__VA_ARGS__}, COUNT(__VA_ARGS__)}
#define COUNTING VALUES(SL_FLOAT32, DIMS(2, 2, 3), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)

#define CASE(name, what, n) .op = name, .label = what, .nin = n
#define EXPECT(...) .expect = {__VA_ARGS__}, .nexpect = COUNT(__VA_ARGS__)
#define REJECT(status) .reject = status, .no_grad = true

#define ORDER(...) &(const struct slp_transpose_attrs){SL_COUNT_(int, __VA_ARGS__), {__VA_ARGS__}}
#define REVERSE &(const struct slp_transpose_attrs){0, {0}}
#define TRANSPOSE(what, a, x, ...) {CASE("transpose", what, 1), .attrs = a, .in = {x}, __VA_ARGS__}

#define RESHAPE(what, shape, x, ...) {CASE("reshape", what, 1), .attrs = &SL_SHAPE shape, .in = {x}, __VA_ARGS__}

#define SLICE_OF(...) &(const struct slp_slice_attrs){__VA_ARGS__}
#define SLICE(what, a, x, ...) {CASE("slice", what, 1), .attrs = a, .in = {x}, __VA_ARGS__}
#define SLICE_GRAD_OF(axis, begin, end, step, size) \
	&(const struct slp_slice_grad_attrs){{axis, begin, end, step}, size}
#define SLICE_GRAD(what, a, x, ...) {CASE("slice_grad", what, 1), .attrs = a, .in = {x}, __VA_ARGS__}

#define ALONG(axis) &(const struct slp_concat_attrs){axis}
#define CONCAT(what, axis, n, inputs, ...) \
	{CASE("concat", what, n), .attrs = ALONG(axis), .in = LIST inputs, __VA_ARGS__}

#define GATHER(what, x, indices, ...) {CASE("gather", what, 2), .in = {x, indices}, __VA_ARGS__}
#define ROWS(n) &(const struct slp_gather_grad_attrs){n}
#define GATHER_GRAD(what, n, dy, indices, ...) \
	{CASE("gather_grad", what, 2), .attrs = ROWS(n), .in = {dy, indices}, __VA_ARGS__}

#define DEPTH(n, dtype) &(const struct slp_one_hot_attrs){n, dtype}
#define ONE_HOT(what, a, x, ...) {CASE("one_hot", what, 1), .attrs = a, .in = {x}, .no_grad = true, __VA_ARGS__}

#define PART(begin, count) &(const struct slp_batch_attrs){begin, count, 1 / 255.0}
#define BATCH(name, what, a, x, order, ...) \
	{CASE(name, what, 2), .attrs = a, .in = {x, order}, .no_grad = true, __VA_ARGS__}

/* clang-format on */

const struct slp_case slp_cases_layout[] = {
        RESHAPE("one dim computed", (3, -1), COUNTING, EXPECT(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)),
        RESHAPE("one dim kept, the others made one", (SLP_DIM_KEEP, -1), REAL(DIMS(4, 3, 5))),
        RESHAPE("kept beyond the axes of x", (4, 3, SLP_DIM_KEEP), REAL(DIMS(4, 3)), REJECT(SL_ESHAPE)),
        RESHAPE("two dims to compute", (-1, -1), REAL(DIMS(4, 3)), REJECT(SL_ESHAPE)),
        RESHAPE("another size", (5, 2), REAL(DIMS(4, 3)), REJECT(SL_ESHAPE)),
        RESHAPE("nothing", (0, 7), REAL(DIMS(3, 0))),
        RESHAPE("numbers of 32 bits", (2, 6), ANY(SL_INT32, DIMS(4, 3)), .no_grad = true),
        {CASE("reshape", "to a scalar", 1), .attrs = &SL_SCALAR, .in = {REAL(DIMS(1, 1))}},
        TRANSPOSE("matrix", REVERSE, VALUES(SL_FLOAT32, DIMS(2, 3), 0, 1, 2, 3, 4, 5), EXPECT(0, 3, 1, 4, 2, 5)),
        TRANSPOSE("reverse three axes", REVERSE, COUNTING, EXPECT(0, 6, 3, 9, 1, 7, 4, 10, 2, 8, 5, 11)),
        TRANSPOSE("last two axes", ORDER(0, 2, 1), COUNTING, EXPECT(0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11)),
        TRANSPOSE("negative axes", ORDER(-2, 0, -1), COUNTING, EXPECT(0, 1, 2, 6, 7, 8, 3, 4, 5, 9, 10, 11)),
        TRANSPOSE("rotate", ORDER(1, 2, 0), COUNTING, EXPECT(0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11)),
        TRANSPOSE("identity", ORDER(0, 1, 2), COUNTING, EXPECT(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)),
        TRANSPOSE("numbers that are none", REVERSE, VALUES(SL_FLOAT32, DIMS(2, 2), NAN, INFINITY, -INFINITY, -0.0),
                  .no_grad = true, EXPECT(NAN, -INFINITY, INFINITY, -0.0)),
        TRANSPOSE("scalar", REVERSE, REAL(SCALAR)),
        TRANSPOSE("vector", ORDER(0), REAL(DIMS(5))),
        TRANSPOSE("empty", REVERSE, REAL(DIMS(3, 0, 2))),
        TRANSPOSE("axes of size 1", ORDER(3, 0, 2, 1), REAL(DIMS(1, 4, 1, 3))),
        TRANSPOSE("six axes", ORDER(5, 3, 1, 0, 2, 4), REAL(DIMS(2, 3, 2, 1, 3, 2))),
        TRANSPOSE("images to channels last", ORDER(0, 2, 3, 1), REAL(DIMS(2, 3, 4, 5))),
        TRANSPOSE("images to channels last, large", ORDER(0, 2, 3, 1), REAL(DIMS(5, 3, 61, 67)), .no_grad = true),
        TRANSPOSE("images to channels first, large", ORDER(0, 3, 1, 2), REAL(DIMS(3, 37, 41, 33)), .no_grad = true),
        TRANSPOSE("heads", ORDER(0, 2, 1, 3), REAL(DIMS(4, 33, 12, 64)), .no_grad = true),
        TRANSPOSE("large matrix with tails", REVERSE, REAL(DIMS(263, 389)), .no_grad = true),
        TRANSPOSE("large matrix of whole tiles", REVERSE, REAL(DIMS(256, 256)), .no_grad = true),
        TRANSPOSE("tall matrix", REVERSE, REAL(DIMS(40001, 3)), .no_grad = true),
        TRANSPOSE("wide matrix", REVERSE, REAL(DIMS(3, 40001)), .no_grad = true),
        TRANSPOSE("bytes", REVERSE, ANY(SL_UINT8, DIMS(211, 397)), .no_grad = true),
        TRANSPOSE("integers", ORDER(1, 0, 2), ANY(SL_INT32, DIMS(7, 11, 5)), .no_grad = true),
        TRANSPOSE("narrow matrices", ORDER(0, 2, 1), REAL(DIMS(3, 70, 9)), .no_grad = true),
        TRANSPOSE("flat matrices", ORDER(0, 2, 1), REAL(DIMS(3, 2, 600)), .no_grad = true),
        TRANSPOSE("heads", ORDER(0, 2, 1, 3), REAL(DIMS(2, 5, 3, 8)), .no_grad = true),
        TRANSPOSE("doubles", REVERSE, ANY(SL_FLOAT64, DIMS(211, 397)), .no_grad = true),
        TRANSPOSE("too few axes", ORDER(1, 0), REAL(DIMS(2, 3, 4)), REJECT(SL_EINVAL)),
        TRANSPOSE("axis twice", ORDER(0, 1, 1), REAL(DIMS(2, 3, 4)), REJECT(SL_EINVAL)),
        TRANSPOSE("the same axis counted from both ends", ORDER(0, -3, 1), REAL(DIMS(2, 3, 4)), REJECT(SL_EINVAL)),
        TRANSPOSE("axis that is not there", ORDER(0, 3, 1), REAL(DIMS(2, 3, 4)), REJECT(SL_EINVAL)),

        SLICE("part of the rows", SLICE_OF(0, 1, 3, 1), VALUES(SL_FLOAT32, DIMS(4, 2), 0, 1, 2, 3, 4, 5, 6, 7),
              EXPECT(2, 3, 4, 5)),
        SLICE("part of the columns", SLICE_OF(1, 1, 3, 1), VALUES(SL_FLOAT32, DIMS(2, 4), 0, 1, 2, 3, 4, 5, 6, 7),
              EXPECT(1, 2, 5, 6)),
        SLICE("ends from the end", SLICE_OF(-1, -3, -1, 1), VALUES(SL_FLOAT32, DIMS(2, 4), 0, 1, 2, 3, 4, 5, 6, 7),
              EXPECT(1, 2, 5, 6)),
        SLICE("steps", SLICE_OF(0, 1, 100, 3), VALUES(SL_FLOAT32, DIMS(8), 0, 1, 2, 3, 4, 5, 6, 7), EXPECT(1, 4, 7)),
        SLICE("backwards", SLICE_OF(0, -1, INT64_MIN, -1), VALUES(SL_FLOAT32, DIMS(5), 0, 1, 2, 3, 4),
              EXPECT(4, 3, 2, 1, 0)),
        SLICE("backwards in steps", SLICE_OF(1, 100, 0, -2), COUNTING, EXPECT(3, 4, 5, 9, 10, 11)),
        SLICE("step longer than the axis", SLICE_OF(0, 2, 5, INT64_MAX), VALUES(SL_FLOAT32, DIMS(5), 0, 1, 2, 3, 4),
              EXPECT(2)),
        SLICE("step back longer than the axis", SLICE_OF(0, 2, -100, INT64_MIN),
              VALUES(SL_FLOAT32, DIMS(5), 0, 1, 2, 3, 4), EXPECT(2)),
        SLICE("all", SLICE_OF(0, INT64_MIN, INT64_MAX, 1), VALUES(SL_FLOAT32, DIMS(3), 7, 8, 9), EXPECT(7, 8, 9)),
        SLICE("nothing", SLICE_OF(0, 3, 2, 1), REAL(DIMS(5, 2))),
        SLICE("nothing, backwards", SLICE_OF(0, 2, 3, -1), REAL(DIMS(5, 2))),
        SLICE("outside", SLICE_OF(1, 9, 12, 1), REAL(DIMS(5, 2))),
        SLICE("of nothing", SLICE_OF(0, 0, 2, 1), REAL(DIMS(0, 3))),
        SLICE("middle axis", SLICE_OF(1, 1, -1, 2), REAL(DIMS(3, 7, 4))),
        SLICE("large rows", SLICE_OF(0, 10, 900, 1), REAL(DIMS(1000, 111)), .no_grad = true),
        SLICE("large columns", SLICE_OF(1, 10, 900, 1), REAL(DIMS(111, 1000)), .no_grad = true),
        SLICE("large, every other", SLICE_OF(2, 0, 1000, 2), REAL(DIMS(31, 7, 999)), .no_grad = true),
        SLICE("large, backwards", SLICE_OF(1, -1, INT64_MIN, -3), ANY(SL_FLOAT64, DIMS(31, 499, 7)), .no_grad = true),
        SLICE("bytes", SLICE_OF(1, 3, 50, 1), ANY(SL_UINT8, DIMS(9, 60, 3)), .no_grad = true),
        SLICE("integers", SLICE_OF(0, 3, 50, 7), ANY(SL_INT32, DIMS(60, 3)), .no_grad = true),
        SLICE("step 0", SLICE_OF(0, 0, 2, 0), REAL(DIMS(4)), REJECT(SL_EINVAL)),
        SLICE("axis that is not there", SLICE_OF(2, 0, 2, 1), REAL(DIMS(4, 4)), REJECT(SL_EINVAL)),
        SLICE("axis too far from the end", SLICE_OF(-3, 0, 2, 1), REAL(DIMS(4, 4)), REJECT(SL_EINVAL)),
        SLICE("scalar", SLICE_OF(0, 0, 1, 1), REAL(SCALAR), REJECT(SL_EINVAL)),

        SLICE_GRAD("rows", SLICE_GRAD_OF(0, 1, 3, 1, 4), VALUES(SL_FLOAT32, DIMS(2, 2), 1, 2, 3, 4),
                   EXPECT(0, 0, 1, 2, 3, 4, 0, 0)),
        SLICE_GRAD("steps along columns", SLICE_GRAD_OF(-1, 1, 5, 2, 5), VALUES(SL_FLOAT32, DIMS(2, 2), 1, 2, 3, 4),
                   EXPECT(0, 1, 0, 2, 0, 0, 3, 0, 4, 0)),
        SLICE_GRAD("backwards", SLICE_GRAD_OF(0, -1, INT64_MIN, -2, 4), VALUES(SL_FLOAT32, DIMS(2), 1, 2),
                   EXPECT(0, 2, 0, 1)),
        SLICE_GRAD("of nothing", SLICE_GRAD_OF(1, 3, 3, 1, 5), REAL(DIMS(2, 0)), EXPECT(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)),
        SLICE_GRAD("to nothing", SLICE_GRAD_OF(0, 0, 3, 1, 0), REAL(DIMS(0, 2))),
        SLICE_GRAD("large rows", SLICE_GRAD_OF(0, 10, 900, 1, 1000), REAL(DIMS(890, 111)), .no_grad = true),
        SLICE_GRAD("large row, in steps", SLICE_GRAD_OF(0, 5, 99990, 7, 99999), REAL(DIMS(14284)), .no_grad = true),
        SLICE_GRAD("large row, backwards", SLICE_GRAD_OF(0, -1, 12, -7, 99999), REAL(DIMS(14284)), .no_grad = true),
        SLICE_GRAD("large, middle axis", SLICE_GRAD_OF(1, 1, 400, 3, 499), ANY(SL_FLOAT64, DIMS(31, 133, 7)),
                   .no_grad = true),
        SLICE_GRAD("bytes", SLICE_GRAD_OF(1, 3, 50, 1, 60), ANY(SL_UINT8, DIMS(9, 47, 3)), .no_grad = true),
        SLICE_GRAD("size that does not fit", SLICE_GRAD_OF(0, 1, 3, 1, 2), REAL(DIMS(2, 2)), REJECT(SL_ESHAPE)),
        SLICE_GRAD("negative size", SLICE_GRAD_OF(0, 1, 3, 1, -2), REAL(DIMS(2, 2)), REJECT(SL_ESHAPE)),
        SLICE_GRAD("step 0", SLICE_GRAD_OF(0, 1, 3, 0, 4), REAL(DIMS(2, 2)), REJECT(SL_EINVAL)),
        SLICE_GRAD("axis that is not there", SLICE_GRAD_OF(2, 1, 3, 1, 4), REAL(DIMS(2, 2)), REJECT(SL_EINVAL)),

        CONCAT("rows", 0, 2, (VALUES(SL_FLOAT32, DIMS(1, 2), 1, 2), VALUES(SL_FLOAT32, DIMS(2, 2), 3, 4, 5, 6)),
               EXPECT(1, 2, 3, 4, 5, 6)),
        CONCAT("columns", -1, 3,
               (VALUES(SL_FLOAT32, DIMS(2, 1), 1, 2), VALUES(SL_FLOAT32, DIMS(2, 2), 3, 4, 5, 6),
                VALUES(SL_FLOAT32, DIMS(2, 1), 7, 8)),
               EXPECT(1, 3, 4, 7, 2, 5, 6, 8)),
        CONCAT("one tensor", 1, 1, (REAL(DIMS(3, 4, 2)))),
        CONCAT("with nothing", 1, 3, (REAL(DIMS(2, 0)), REAL(DIMS(2, 3)), REAL(DIMS(2, 0)))),
        CONCAT("nothing with nothing", 0, 2, (REAL(DIMS(0, 3)), REAL(DIMS(0, 3)))),
        CONCAT("middle axis", 1, 4,
               (REAL(DIMS(2, 3, 4)), REAL(DIMS(2, 1, 4)), REAL(DIMS(2, 5, 4)), REAL(DIMS(2, 2, 4)))),
        CONCAT("twelve tensors", 0, 12,
               (REAL(DIMS(1)), REAL(DIMS(2)), REAL(DIMS(0)), REAL(DIMS(3)), REAL(DIMS(1)), REAL(DIMS(1)), REAL(DIMS(4)),
                REAL(DIMS(2)), REAL(DIMS(1)), REAL(DIMS(5)), REAL(DIMS(1)), REAL(DIMS(2)))),
        CONCAT("large, rows", 0, 2, (REAL(DIMS(701, 53)), REAL(DIMS(1303, 53))), .no_grad = true),
        CONCAT("large, channels", 1, 3, (REAL(DIMS(9, 16, 23, 29)), REAL(DIMS(9, 3, 23, 29)), REAL(DIMS(9, 5, 23, 29))),
               .no_grad = true),
        CONCAT("large, last axis", 2, 2, (ANY(SL_FLOAT64, DIMS(97, 201, 2)), ANY(SL_FLOAT64, DIMS(97, 201, 3))),
               .no_grad = true),
        CONCAT("bytes", 1, 2, (ANY(SL_UINT8, DIMS(7, 13)), ANY(SL_UINT8, DIMS(7, 5))), .no_grad = true),
        CONCAT("integers", 0, 2, (ANY(SL_INT32, DIMS(7, 13)), ANY(SL_INT32, DIMS(2, 13))), .no_grad = true),
        CONCAT("data types differ", 0, 2, (REAL(DIMS(2)), ANY(SL_INT32, DIMS(2))), REJECT(SL_EDTYPE)),
        CONCAT("another axis differs", 0, 2, (REAL(DIMS(2, 3)), REAL(DIMS(2, 4))), REJECT(SL_ESHAPE)),
        CONCAT("numbers of axes differ", 0, 2, (REAL(DIMS(2, 3)), REAL(DIMS(2))), REJECT(SL_ESHAPE)),
        CONCAT("axis that is not there", 2, 2, (REAL(DIMS(2, 3)), REAL(DIMS(2, 3))), REJECT(SL_EINVAL)),
        CONCAT("scalars", 0, 2, (REAL(SCALAR), REAL(SCALAR)), REJECT(SL_EINVAL)),

        GATHER("rows", VALUES(SL_FLOAT32, DIMS(3, 2), 1, 2, 3, 4, 5, 6), VALUES(SL_INT32, DIMS(4), 2, 0, 2, 1),
               EXPECT(5, 6, 1, 2, 5, 6, 3, 4)),
        GATHER("elements", VALUES(SL_FLOAT32, DIMS(4), 1, 2, 3, 4), VALUES(SL_INT32, DIMS(2, 2), 3, 3, 0, 1),
               EXPECT(4, 4, 1, 2)),
        GATHER("one row", REAL(DIMS(4, 3)), VALUES(SL_INT32, SCALAR, 2)),
        GATHER("no indices", REAL(DIMS(4, 3)), INDEX(DIMS(0), 4)),
        GATHER("no indices, no rows", REAL(DIMS(0, 3)), INDEX(DIMS(2, 0), 1)),
        GATHER("empty rows", REAL(DIMS(4, 0)), INDEX(DIMS(5), 4)),
        GATHER("many axes", REAL(DIMS(5, 2, 3)), INDEX(DIMS(2, 1, 3), 5)),
        GATHER("large", REAL(DIMS(1001, 64)), INDEX(DIMS(31, 40), 1001), .no_grad = true),
        GATHER("large, elements", REAL(DIMS(5003)), INDEX(DIMS(99999), 5003), .no_grad = true),
        GATHER("bytes", ANY(SL_UINT8, DIMS(100, 7)), INDEX(DIMS(55), 100), .no_grad = true),
        GATHER("integers", ANY(SL_INT32, DIMS(100)), INDEX(DIMS(55), 100), .no_grad = true),
        GATHER("doubles", ANY(SL_FLOAT64, DIMS(100, 3)), INDEX(DIMS(55), 100), .no_grad = true),
        GATHER("indices of another type", REAL(DIMS(4, 3)), ANY(SL_UINT8, DIMS(2)), REJECT(SL_EDTYPE)),
        GATHER("scalar", REAL(SCALAR), INDEX(DIMS(2), 1), REJECT(SL_ESHAPE)),
        GATHER("too many axes", REAL(DIMS(2, 2, 2, 2, 2)), INDEX(DIMS(2, 2, 2, 2, 2), 2), REJECT(SL_ESHAPE)),

        GATHER_GRAD("rows", 4, VALUES(SL_FLOAT32, DIMS(3, 2), 1, 2, 3, 4, 5, 6), VALUES(SL_INT32, DIMS(3), 2, 0, 2),
                    EXPECT(3, 4, 0, 0, 6, 8, 0, 0)),
        GATHER_GRAD("elements", 3, VALUES(SL_FLOAT32, DIMS(2, 2), 1, 2, 4, 8), VALUES(SL_INT32, DIMS(2, 2), 1, 1, 0, 1),
                    EXPECT(4, 11, 0)),
        GATHER_GRAD("no indices", 2, REAL(DIMS(0, 3)), INDEX(DIMS(0), 1), EXPECT(0, 0, 0, 0, 0, 0)),
        GATHER_GRAD("one row", 3, REAL(DIMS(2)), VALUES(SL_INT32, SCALAR, 1)),
        GATHER_GRAD("no rows", 0, REAL(DIMS(0, 3)), INDEX(DIMS(0), 1)),
        GATHER_GRAD("several pieces of a row", 5, REAL(DIMS(100, 3)), INDEX(DIMS(100), 5), .no_grad = true),
        GATHER_GRAD("several runs", 40, REAL(DIMS(200, 2)), INDEX(DIMS(200), 40), .no_grad = true),
        GATHER_GRAD("large", 1001, REAL(DIMS(1240, 64)), INDEX(DIMS(1240), 1001), .no_grad = true),
        GATHER_GRAD("large, few rows", 3, REAL(DIMS(1500, 50)), INDEX(DIMS(1500), 3), .no_grad = true,
                    .tolerance = 1e-4),
        GATHER_GRAD("not a float", 3, ANY(SL_INT32, DIMS(2)), INDEX(DIMS(2), 3), REJECT(SL_EDTYPE)),
        GATHER_GRAD("indices of another type", 3, REAL(DIMS(2)), REAL(DIMS(2)), REJECT(SL_EDTYPE)),
        GATHER_GRAD("shapes that do not fit", 3, REAL(DIMS(2, 4)), INDEX(DIMS(3), 3), REJECT(SL_ESHAPE)),
        GATHER_GRAD("too few axes", 3, REAL(DIMS(2)), INDEX(DIMS(2, 1), 3), REJECT(SL_ESHAPE)),

        ONE_HOT("labels", DEPTH(3, SL_FLOAT32), VALUES(SL_INT32, DIMS(3), 2, 0, 1), EXPECT(0, 0, 1, 1, 0, 0, 0, 1, 0)),
        ONE_HOT("outside", DEPTH(2, SL_FLOAT32), VALUES(SL_INT32, DIMS(4), -1, 1, 2, INT32_MIN),
                EXPECT(0, 0, 0, 1, 0, 0, 0, 0)),
        ONE_HOT("scalar", DEPTH(3, SL_FLOAT64), VALUES(SL_INT32, SCALAR, 1), EXPECT(0, 1, 0)),
        ONE_HOT("bytes", DEPTH(3, SL_UINT8), VALUES(SL_INT32, DIMS(1, 2), 1, 2), EXPECT(0, 1, 0, 0, 0, 1)),
        ONE_HOT("integers", DEPTH(2, SL_INT32), VALUES(SL_INT32, DIMS(2, 1), 1, 0), EXPECT(0, 1, 1, 0)),
        ONE_HOT("depth 0", DEPTH(0, SL_FLOAT32), INDEX(DIMS(3), 3)),
        ONE_HOT("no labels", DEPTH(4, SL_FLOAT32), INDEX(DIMS(0), 3)),
        ONE_HOT("large", DEPTH(1000, SL_FLOAT32), INDEX(DIMS(101), 1003)),
        ONE_HOT("negative depth", DEPTH(-1, SL_FLOAT32), INDEX(DIMS(3), 3), .reject = SL_EINVAL),
        ONE_HOT("no data type", DEPTH(3, SL_DTYPE_COUNT), INDEX(DIMS(3), 3), .reject = SL_EDTYPE),
        ONE_HOT("indices of another type", DEPTH(3, SL_FLOAT32), ANY(SL_UINT8, DIMS(3)), .reject = SL_EDTYPE),
        ONE_HOT("too many axes", DEPTH(3, SL_FLOAT32), INDEX(DIMS(1, 1, 1, 1, 1, 1, 1, 1), 3), .reject = SL_ESHAPE),

        BATCH("batch_images", "some", PART(1, 2), VALUES(SL_UINT8, DIMS(3, 1, 1, 2), 0, 255, 51, 102, 153, 204),
              VALUES(SL_INT32, DIMS(3), 0, 2, 1), EXPECT(0.6, 0.8, 0.2, 0.4)),
        BATCH("batch_images", "none", PART(3, 0), ANY(SL_UINT8, DIMS(3, 1, 2, 2)), INDEX(DIMS(3), 3)),
        BATCH("batch_images", "large", PART(100, 256), PIXELS(DIMS(600, 1, 28, 28)), INDEX(DIMS(600), 600)),
        BATCH("batch_images", "beyond the order", PART(2, 2), ANY(SL_UINT8, DIMS(3, 1, 2, 2)), INDEX(DIMS(3), 3),
              .reject = SL_EINVAL),
        BATCH("batch_images", "negative", PART(-1, 2), ANY(SL_UINT8, DIMS(3, 1, 2, 2)), INDEX(DIMS(3), 3),
              .reject = SL_EINVAL),
        BATCH("batch_images", "not bytes", PART(0, 2), REAL(DIMS(3, 1, 2, 2)), INDEX(DIMS(3), 3), .reject = SL_EDTYPE),
        BATCH("batch_images", "order of another type", PART(0, 2), ANY(SL_UINT8, DIMS(3, 2)), ANY(SL_UINT8, DIMS(3)),
              .reject = SL_EDTYPE),
        BATCH("batch_images", "order with two axes", PART(0, 2), ANY(SL_UINT8, DIMS(3, 2)), INDEX(DIMS(3, 1), 3),
              .reject = SL_ESHAPE),
        BATCH("batch_labels", "some", PART(1, 2), VALUES(SL_UINT8, DIMS(3), 7, 8, 9),
              VALUES(SL_INT32, DIMS(3), 0, 2, 1), EXPECT(9, 8)),
        BATCH("batch_labels", "large", PART(5, 40000), ANY(SL_UINT8, DIMS(50000)), INDEX(DIMS(50000), 50000)),
        BATCH("batch_labels", "beyond the order", PART(0, 4), ANY(SL_UINT8, DIMS(3)), INDEX(DIMS(3), 3),
              .reject = SL_EINVAL),
        {0},
};
