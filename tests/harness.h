/* What all test programs share: a main for CUnit, and checks with messages. */
#ifndef SLP_TESTS_HARNESS_H
#define SLP_TESTS_HARNESS_H

#include <stdbool.h>

/* Tests and suites are listed in tables that end with a NULL name. */
struct slp_test {
	const char *name;
	void (*run)(void);
};

struct slp_suite {
	const char *name;
	const struct slp_test *tests;
	int (*start)(void), (*stop)(void);    /* once for the suite; not 0: failed */
	void (*before)(void), (*after)(void); /* around each of its tests */
};

/* Runs all tests, or only those named by an argument: a part of "suite/test".  Returns the program's exit status. */
int slp_test_main(int argc, char **argv, const struct slp_suite *suites);

/* Counts a check; a failed one is shown with its message, and the test goes on.  Returns ok.  From the main thread. */
bool slp_check(bool ok, const char *file, int line, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Whether cases that take long are run, too: with SLP_LONG set, in make check-long. */
bool slp_long(void);

#define CHECK(condition) slp_check((condition), __FILE__, __LINE__, "%s", #condition)
#define CHECK_SAYING(condition, ...) slp_check((condition), __FILE__, __LINE__, __VA_ARGS__)

#endif
