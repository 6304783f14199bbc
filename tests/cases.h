/* Test cases of the operations: what to call with what.  One table a family (tests/cases_*.c); tests/test_ops.c runs
 * them all on every device and compares with the reference in double precision, with finite differences, and with
 * the literal values given here. */
#ifndef SLP_TESTS_CASES_H
#define SLP_TESTS_CASES_H

#include <starling.h>

#include "op.h"

#define SLP_CASE_INPUTS 12
#define SLP_CASE_LITERALS 16

/* Shapes in tables. */
/* clang-format off */
#define DIMS(...) {SL_COUNT_(int64_t, __VA_ARGS__), {__VA_ARGS__}}
#define NO_DIMS {0, {0}}
/* clang-format on */

/* How an input is filled: reals uniform in [low, high), integers likewise (rounded down); `values`, if given, are taken
 * in turn from the start, and over again where no range is given for the rest.  A float32 case is run in float64 too,
 * by turning its float32 inputs into float64. */
struct slp_case_input {
	enum sl_dtype dtype;
	sl_shape shape;
	double low, high;
	double values[SLP_CASE_LITERALS];
	int nvalues;
};

struct slp_case {
	const char *op;
	const char *label; /* what is special about it */
	const void *attrs; /* the operation's attribute structure, or NULL */
	int nin;
	struct slp_case_input in[SLP_CASE_INPUTS];
	double tolerance;      /* of float32 against double, relative to the results' root mean square; 0: 1e-5 */
	bool no_grad;          /* do not check the gradient by finite differences (kinks, integers) */
	enum sl_status reject; /* the call must fail with this status */
	double expect[SLP_CASE_LITERALS]; /* first elements of output 0, computed independently */
	int nexpect;
	bool own_types; /* compare with the reference on these types, not in float64 */
	double scale;   /* results are compared by this at least: the size of terms that cancel out */
};

/* Tables end with an entry whose op is NULL. */
extern const struct slp_case *const slp_case_tables[];

#endif
