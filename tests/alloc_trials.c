/* alloc_trials.h: one allocation after another fails. */
#include <starling.h>

#include "alloc_trials.h"

#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "alloc.h"
#include "check.h"

enum { SAMPLES = 16 };

bool slp_told(enum sl_status s, enum sl_status *status)
{
	if (*status == SL_OK) *status = s;
	return s == SL_OK;
}

bool slp_there(const void *p, enum sl_status *status)
{
	return p || slp_told(sl_error(), status);
}

/* ---- one that fails ---------------------------------------------------------------------------------------------- */

static const char *volatile running;
static volatile long failing;

/* A crash or a hang would not tell which allocation it is. */
static void tell_which(int number)
{
	char text[128];
	int n = snprintf(text, sizeof text, "%s, allocation %ld: signal %d\n", running, failing, number);
	if (n > 0 && write(2, text, (size_t)n) < 0) _exit(1);
	signal(SIGABRT, SIG_DFL);
	abort();
}

/* "file.c:12", or of a network from a file, "file, node name" */
static bool has_place(const char *message)
{
	const char *p = strstr(message, ".c:");
	return (p && p[3] >= '1' && p[3] <= '9') || strstr(message, ".json, node ") || strstr(message, ".onnx, node ");
}

static void check_error(const struct slp_program *p, long k, enum sl_status status, const char *text)
{
	CHECK_SAYING(status == SL_ENOMEM, "%s, allocation %ld: %s, \"%s\"", p->name, k, sl_status_name(status), text);
	CHECK_SAYING(has_place(text), "%s, allocation %ld: no place in \"%s\"", p->name, k, text);
}

/* A kernel that finds no room for what a library needs leaves the work to another one: the last bits may differ. */
static bool is_close(float a, float b)
{
	return fabsf(a - b) <= 1e-6f * fabsf(b);
}

static bool same(const struct slp_result *a, const struct slp_result *b)
{
	return is_close(a->loss, b->loss) && is_close(a->weight, b->weight);
}

/* What is left to tell once all work has ended. */
static void check_rest(const struct slp_program *p, long k, bool failed)
{
	enum sl_status s = sl_wait_all();
	if (s == SL_OK) return;
	CHECK_SAYING(failed, "%s, allocation %ld: went well, and then: %s", p->name, k, sl_error_message());
	check_error(p, k, s, sl_error_message());
}

static void check_works(const struct slp_program *p, long k, const struct slp_result *expected)
{
	struct slp_result r = {0, 0};
	enum sl_status status = SL_OK;
	bool ok = p->run(&r, &status);
	CHECK_SAYING(ok && sl_wait_all() == SL_OK, "%s, after allocation %ld: %s", p->name, k, sl_error_message());
	CHECK_SAYING(same(&r, expected), "%s, after allocation %ld: computes something else", p->name, k);
	sl_error_clear();
}

/* The k-th allocation fails; false if there are not as many. */
static bool fail_one(const struct slp_program *p, long k, const struct slp_result *expected)
{
	struct slp_result r = {0, 0};
	enum sl_status status = SL_OK;
	running = p->name;
	failing = k;
	alarm(2 * SLP_PATIENCE);
	atomic_store(&slp_fail_alloc, k);
	slp_begin((struct sl_config){.teams = p->teams ? p->teams : 1});
	bool ok = p->run(&r, &status);
	bool reached = atomic_exchange(&slp_fail_alloc, 0) <= 0;
	if (!ok) check_error(p, k, status, sl_error_message());
	else
		CHECK_SAYING(same(&r, expected), "%s, allocation %ld: reported nothing and computes something else",
		             p->name, k);
	check_rest(p, k, !ok);
	check_works(p, k, expected);
	slp_end_well();
	alarm(0);
	return reached;
}

static long count_allocations(const struct slp_program *p, struct slp_result *r)
{
	enum sl_status status = SL_OK;
	atomic_store(&slp_fail_alloc, LONG_MAX);
	slp_begin((struct sl_config){.teams = p->teams ? p->teams : 1});
	CHECK_SAYING(p->run(r, &status), "%s: %s", p->name, sl_error_message());
	long count = LONG_MAX - atomic_exchange(&slp_fail_alloc, 0);
	slp_end_well();
	return count;
}

/* The sample is spread evenly: steps that do not divide the number of allocations in a repeated part. */
void slp_fail_allocations(const struct slp_program *p, long first, long step)
{
	struct slp_result expected = {0, 0};
	signal(SIGALRM, tell_which);
	signal(SIGABRT, tell_which);
	signal(SIGSEGV, tell_which);
	long n = count_allocations(p, &expected), tried = 0;
	if (!step) step = n < SAMPLES ? 1 : n / SAMPLES | 1;
	for (long k = first; k <= n && fail_one(p, k, &expected); k += step) tried++;
	CHECK(tried > 0 || first > n);
	printf("  %s: %ld of %ld allocations have failed\n", p->name, tried, n);
}
