/* Programs in tests: from text, as text. */
#ifndef SLP_TESTS_PROGRAM_H
#define SLP_TESTS_PROGRAM_H

#include "check.h"
#include "graph/graph.h"

/* What sl_graph_print writes; free it. */
char *slp_program_text(const sl_graph *g);
/* The program prints as expected. */
bool slp_check_program(const char *file, int line, const sl_graph *g, const char *expected);
#define CHECK_PROGRAM(g, text) slp_check_program(__FILE__, __LINE__, g, text)
/* Parsed, with all types inferred. */
sl_graph *slp_program(const char *text);

/* A call fails with this status and these texts in its message; the error is gone then. */
#define CHECK_FAILS(call, ...)                                                                                         \
	do {                                                                                                           \
		CHECK_STATUS(call, __VA_ARGS__);                                                                       \
		sl_error_clear();                                                                                      \
	} while (0)

#endif
