/* Limits of time and operations for an untrusted file and its network (budget.h).  Operations are counted before they run,
 * so that a kernel which would take an hour is never submitted. */
#include "runtime/budget.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "op.h"
#include "runtime/engine.h"
#include "runtime/start.h"

/* ---- time and operations ----------------------------------------------------------------------------------------- */

static double clock_of(clockid_t id)
{
	struct timespec t = {0};
	clock_gettime(id, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* On a machine that others use, too, the processors' time decides. */
static bool is_late(const struct slp_budget *b)
{
	double most = slp_untrusted.seconds;
	return most > 0 && clock_of(CLOCK_MONOTONIC_COARSE) - b->since > most &&
	       clock_of(CLOCK_PROCESS_CPUTIME_ID) - b->processors > most;
}

/* Files may be read before sl_init. */
static pthread_once_t from_environment = PTHREAD_ONCE_INIT;

static void look_at_environment(void)
{
	struct sl_untrusted limits = {0};
	slp_untrusted_read(&limits);
	if (!sl_is_initialized()) slp_budget_start(&limits);
}

static bool is_limited(void)
{
	if (!sl_is_initialized()) pthread_once(&from_environment, look_at_environment);
	return slp_untrusted.bytes || slp_untrusted.seconds > 0 || slp_untrusted.operations > 0;
}

void slp_budget_begin(struct slp_budget *b, const char *file)
{
	*b = (struct slp_budget){.file = NULL};
	if (slp_budget_current || !is_limited()) return; /* or: of a file around this one */
	*b = (struct slp_budget){.file = file ? file : "(no path)",
	                         .since = clock_of(CLOCK_MONOTONIC_COARSE),
	                         .processors = clock_of(CLOCK_PROCESS_CPUTIME_ID)};
	slp_budget_current = b;
}

void slp_budget_end(struct slp_budget *b)
{
	if (slp_budget_current == b) slp_budget_current = NULL;
}

bool slp_budget_spend(double operations, char why[256])
{
	struct slp_budget *b = slp_budget_current;
	if (!b) return true;
	b->operations += operations;
	if (slp_untrusted.operations > 0 && b->operations > slp_untrusted.operations) {
		snprintf(why, 256, "needs %.3g operations or more; sl_config.untrusted allows %.3g", b->operations,
		         slp_untrusted.operations);
		return false;
	}
	if (!is_late(b)) return true;
	snprintf(why, 256, "takes longer than the %g s that sl_config.untrusted allows", slp_untrusted.seconds);
	return false;
}

bool slp_budget_allows(double operations)
{
	char why[256];
	if (slp_budget_spend(operations, why)) return true;
	const struct slp_call *c = &slp_current_call;
	slp_call_fail(c->at, c->at ? c->function : "starling", SL_ETIME, "%.200s: %s", slp_budget_current->file, why);
	return false;
}

/* ---- operations of a network ------------------------------------------------------------------------------------- */

static double elements(int n, const struct slp_type *types)
{
	double all = 0;
	for (int i = 0; i < n; i++) all += (double)sl_shape_size(types[i].shape);
	return all;
}

static double bytes_of(int n, const struct slp_type *types)
{
	double all = 0;
	for (int i = 0; i < n; i++)
		all += (double)sl_shape_size(types[i].shape) * (double)sl_dtype_size(types[i].dtype);
	return all;
}

/* Results that cannot fit are refused before any allocation: a trace allocates nothing. */
enum sl_status slp_budget_call(const struct slp_infer *c, char why[256])
{
	if (!slp_budget_current) return SL_OK;
	double bytes = c->op->view ? 0 : bytes_of(c->nout, c->out);
	if (slp_untrusted.bytes && bytes > (double)slp_untrusted.bytes) {
		snprintf(why, 256, "the result takes %.0f bytes; sl_config.untrusted allows %zu", bytes,
		         slp_untrusted.bytes);
		return SL_ENOMEM;
	}
	double work = c->op->view ? 0 : elements(c->nin, c->in) + elements(c->nout, c->out);
	if (c->op->flops) work += c->op->flops(c);
	slp_budget_current->ahead += work;
	return slp_budget_spend(work, why) ? SL_OK : SL_ETIME;
}

void slp_budget_pace(void)
{
	const double most_ahead = 2e7; /* takes a hundred times as long as the wait */
	struct slp_budget *b = slp_budget_current;
	if (!b || b->ahead < most_ahead || !(slp_untrusted.seconds > 0)) return;
	b->ahead = 0;
	slp_engine_idle();
}
