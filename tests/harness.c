/* The main of the test programs: registers tables of tests with CUnit, runs them, sums up. */
#include "environment.h"
#include "harness.h"

#include <CUnit/Basic.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Arguments are parts of names: the end of one where a $ follows. */
static bool is_wanted(int argc, char **argv, const char *suite, const char *test)
{
	char name[512];
	snprintf(name, sizeof name, "%s/%s$", suite, test);
	for (int i = 1; i < argc; i++)
		if (strstr(name, argv[i])) return true;
	return argc < 2;
}

static int count_wanted(int argc, char **argv, const struct slp_suite *suite)
{
	int n = 0;
	for (const struct slp_test *t = suite->tests; t->name; t++) n += is_wanted(argc, argv, suite->name, t->name);
	return n;
}

static bool add_suite(int argc, char **argv, const struct slp_suite *suite)
{
	if (!count_wanted(argc, argv, suite)) return true;
	CU_pSuite s = CU_add_suite_with_setup_and_teardown(suite->name, suite->start, suite->stop, suite->before,
	                                                   suite->after);
	if (!s) return false;
	for (const struct slp_test *t = suite->tests; t->name; t++)
		if (is_wanted(argc, argv, suite->name, t->name) && !CU_add_test(s, t->name, t->run)) return false;
	return true;
}

/* The exit status: a suite that could not start is a failure too, and so is a run without a single test. */
static int run(void)
{
	setvbuf(stdout, NULL, _IONBF, 0); /* CUnit names a test before it runs, without a newline */
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	if (!CU_get_number_of_tests_run()) fprintf(stderr, "no test of that name\n");
	return CU_get_number_of_tests_run() && !CU_get_number_of_failure_records() && !CU_get_number_of_suites_failed()
	               ? 0
	               : 1;
}

/* As a program that follows its user's habits; tests/locale.sh says which. */
static bool choose_locale(void)
{
	const char *name = getenv("SLP_LOCALE");
	if (!name || setlocale(LC_ALL, name)) return true;
	fprintf(stderr, "there is no locale %s\n", name);
	return false;
}

int slp_test_main(int argc, char **argv, const struct slp_suite *suites)
{
	slp_enter_environment(argv);
	if (!choose_locale()) return 1;
	bool ok = CU_initialize_registry() == CUE_SUCCESS;
	for (const struct slp_suite *s = suites; ok && s->name; s++) ok = add_suite(argc, argv, s);
	if (!ok) fprintf(stderr, "CUnit: %s\n", CU_get_error_msg());
	int status = ok ? run() : 1;
	CU_cleanup_registry();
	return status;
}

bool slp_long(void)
{
	return getenv("SLP_LONG") != NULL;
}

bool slp_check(bool ok, const char *file, int line, const char *format, ...)
{
	char text[1024];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	CU_assertImplementation(ok, (unsigned)line, text, file, "", CU_FALSE);
	return ok;
}
