/* Programs in tests: from text, as text. */
#ifndef SLP_TESTS_PROGRAM_H
#define SLP_TESTS_PROGRAM_H

#include <starling.h>

#include "check.h"
#include "graph/graph.h"

/* What sl_graph_print writes; free it. */
char *slp_program_text(const sl_graph *g);
/* The program prints as expected. */
bool slp_check_program(const char *file, int line, const sl_graph *g, const char *expected);
#define CHECK_PROGRAM(g, text) slp_check_program(__FILE__, __LINE__, g, text)
/* Parsed, with all types inferred. */
sl_graph *slp_program(const char *text);

/* A program, after a pass, is this one; it verifies, and computes the same within the tolerance.  Parameters that
 * nobody needs are left out of the second. */
void slp_check_pass(int line, enum sl_pass pass, const char *before, const char *after, double tolerance);
#define PASS(pass, before, after) slp_check_pass(__LINE__, SL_PASS_##pass, before, after, 1e-6)
/* The same bits. */
#define EXACT(pass, before, after) slp_check_pass(__LINE__, SL_PASS_##pass, before, after, 0)
#define SAME(pass, program) EXACT(pass, program, program)

/* Programs begin with these. */
#define X "input x: float32 (2, 3)\n"
#define XY X "input y: float32 (2, 3)\n"

/* A call fails with this status and these texts in its message; the error is gone then. */
#define CHECK_FAILS(call, ...)                                                                                         \
	do {                                                                                                           \
		CHECK_STATUS(call, __VA_ARGS__);                                                                       \
		sl_error_clear();                                                                                      \
	} while (0)

#endif
