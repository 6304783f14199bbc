/* One test case of an operation: its operands in memory, the reference's results, comparing. */
#ifndef SLP_TESTS_OP_CASE_H
#define SLP_TESTS_OP_CASE_H

#include "cases.h"
#include "harness.h"

/* What a call reads and what it leaves, each in memory of exactly its size.  After a run, in[] holds what the call
 * made of its inputs. */
struct slp_operands {
	const struct sl_op *op;
	int nin, nout, threads;
	struct slp_view in[SLP_CASE_INPUTS], out[SLP_MAX_OUTPUTS];
	union {
		char bytes[SLP_MAX_ATTRS];
		max_align_t align;
	} attrs; /* as infer left them */
};

/* Where a comparison stands, for its message. */
struct slp_place_of_test {
	const struct slp_case *c;
	const char *device, *how;
};

/* A number in [0, 1) for element i of stream `stream` of a case. */
double slp_case_random(const struct slp_case *c, unsigned stream, int64_t i);

/* Fills in inputs as the case says, and infers the outputs, which are zeroed.  Where the case says float32, elements
 * are stored as `stored` and have numbers that `like` can hold, so that two types get the same. */
enum sl_status slp_operands_make(struct slp_operands *o, const struct slp_case *c, enum sl_dtype stored,
                                 enum sl_dtype like);
void slp_operands_free(struct slp_operands *o);
/* A copy with the inputs of o and other outputs. */
struct slp_operands slp_operands_copy(const struct slp_operands *o);
/* Calls a kernel of the operation on the operands, on this thread. */
enum sl_status slp_operands_run(struct slp_operands *o, slp_kernel_fn *kernel);
/* Calls the kernel that a CPU team would, as it would: promoted where the types have none. */
enum sl_status slp_operands_compute(struct slp_operands *o);

/* What rows look at, of the operands. */
struct slp_types slp_operands_types(const struct slp_operands *o);

/* Number of the call: flops or elements. */
double slp_operands_cost(const struct slp_operands *o);

/* The case's, of float32. */
double slp_case_tolerance(const struct slp_case *c);

/* Compares one tensor, called `what` n in the message, with what it should be: the tolerance is that of float32
 * (slp_tolerance), relative to the expected array's root mean square; 0: the same bits. */
bool slp_compare_view(struct slp_place_of_test at, const char *what, int n, const struct slp_view *got,
                      const struct slp_view *expected, double tolerance);
/* Compares all outputs, and the inputs that the operation writes, with those of the reference. */
bool slp_compare_values(struct slp_place_of_test at, const struct slp_operands *got,
                        const struct slp_operands *expected, double tolerance);
/* The same for equal bits. */
bool slp_compare_bits(struct slp_place_of_test at, const struct slp_operands *got, const struct slp_operands *expected);
/* Compares output 0 with the numbers that the case gives. */
bool slp_compare_literals(struct slp_place_of_test at, const struct slp_operands *got);

/* Whether the operation also writes input i. */
bool slp_writes_input(const struct sl_op *op, int i);

/* Counts a failed check of this case. */
void slp_case_fail(struct slp_place_of_test at, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
