/* The text of sl_explain. */
#include <math.h>
#include <string.h>

#include "number.h"
#include "op.h"
#include "runtime/device/auto.h"
#include "runtime/device/device.h"
#include "runtime/engine.h"
#include "runtime/observe/explain.h"
#include "runtime/task/priority.h"

static const char *worker_name(int worker, char name[SL_DEVICE_NAME_MAX])
{
	for (int i = 0; i < slp_engine.nteams; i++)
		if (slp_engine.team_worker[i] == worker) return sl_device_name(sl_cpu(i), name);
	for (int i = 0; i < slp_engine.ngpus; i++)
		if (slp_engine.gpu_worker[i] == worker) return sl_device_name(sl_gpu(i), name);
	return "?";
}

static const char *milliseconds(double seconds, char text[24])
{
	if (isnan(seconds)) return "?";
	slp_snprintf(text, 24, "%.3f ms", 1e3 * seconds);
	return text;
}

/* ---- the task ---------------------------------------------------------------------------------------------------- */

static void print_call(FILE *f, const struct slp_explained_call *c)
{
	slp_fprintf(f, "%s", slp_ops[c->op]->name);
	if (c->what) slp_fprintf(f, " (%s)", c->what);
}

/* The calls that ran in the same task, one after the other. */
static void print_calls(FILE *f, const struct slp_explanation *e, int call)
{
	enum { SHOWN = 12 };
	if (e->ncalls == 1) return;
	slp_fprintf(f, "  call %d of %d in one task, whose times these are:", call + 1, e->ncalls);
	for (int i = 0; i < e->ncalls && i < SHOWN; i++) {
		fputs(i ? ", " : " ", f);
		print_call(f, &e->calls[i]);
	}
	fputs(e->ncalls > SHOWN ? ", ...\n" : "\n", f);
}

static void print_devices(FILE *f, const struct slp_explanation *e)
{
	char name[SL_DEVICE_NAME_MAX], predicted[24], transfers[24], took[24];
	slp_fprintf(f, "  %-8s %14s %14s %14s\n", "device", "predicted", "transfers", "took");
	for (int i = 0; i < e->nprospects; i++) {
		const struct slp_prospect *p = &e->prospects[i];
		if (!p->able) {
			slp_fprintf(f, "  %-8s %14s\n", worker_name(p->worker, name), "no kernel");
			continue;
		}
		slp_fprintf(f, "  %-8s %14s %14s %14s\n", worker_name(p->worker, name),
		            milliseconds(p->seconds, predicted), milliseconds(p->transfers, transfers),
		            p->worker == e->worker ? milliseconds(e->ran, took) : "-");
	}
}

/* The inputs that were not on the task's node when it became ready, with the node that they may have come from. */
static void print_travels(FILE *f, const struct slp_explanation *e)
{
	unsigned node = starpu_worker_get_memory_node((unsigned)e->worker);
	for (int i = 0; i < e->nreads; i++) {
		char name[SL_DEVICE_NAME_MAX];
		const struct slp_travel *r = &e->reads[i];
		if (!r->valid || r->valid & 1u << node) continue;
		slp_fprintf(f, "  %.3f MiB transferred from %s\n", (double)r->bytes / 1048576,
		            slp_node_name((unsigned)__builtin_ctz(r->valid), name));
	}
}

static void print_waits(FILE *f, const struct slp_explanation *e)
{
	char a[24], b[24], c[24];
	slp_fprintf(f, "  waited %s for its inputs to be computed, %s in the queue, %s for transfers\n",
	            milliseconds(e->blocked, a), milliseconds(e->queued, b), milliseconds(e->fetched, c));
	if (slp_priority_is_used())
		slp_fprintf(f, "  priority %d, by which %s sorts ready tasks\n", e->priority, slp_engine.config.sched);
}

/* ---- why there --------------------------------------------------------------------------------------------------- */

/* Whether the policy chooses by predicted times. */
static bool predicts(const char *sched)
{
	return strncmp(sched, "dm", 2) == 0 || strncmp(sched, "heft", 4) == 0 ||
	       strncmp(sched, "modular-heft", 12) == 0;
}

static const char *prediction(const struct slp_explanation *e)
{
	double least = INFINITY, here = NAN;
	for (int i = 0; i < e->nprospects; i++) {
		const struct slp_prospect *p = &e->prospects[i];
		if (!p->allowed) continue;
		double sum = p->seconds + (isnan(p->transfers) ? 0 : p->transfers);
		if (isnan(sum))
			return "it has not measured these shapes often enough on every device, and does so first";
		if (sum < least) least = sum;
		if (p->worker == e->worker) here = sum;
	}
	return here <= least ? "the least time was predicted there, with transfers"
	                     : "others were predicted to be faster, but were busy for longer";
}

static int count_allowed(const struct slp_explanation *e)
{
	int n = 0;
	for (int i = 0; i < e->nprospects; i++) n += e->prospects[i].allowed;
	return n;
}

static void print_why(FILE *f, const struct slp_explanation *e)
{
	char name[SL_DEVICE_NAME_MAX];
	const char *sched = slp_engine.config.sched;
	slp_fprintf(f, "  ran on %s: ", worker_name(e->worker, name));
	if (slp_auto_gpus() && e->device.kind == SL_DEVICE_AUTO && !e->no_cuda) {
		fputs("no policy is named, so that what has a CUDA kernel is placed when it is submitted: on the GPU ",
		      f);
		fputs(slp_auto_gpus() > 1 ? "where it is expected to end first\n" : "alone\n", f);
		return;
	}
	if (e->device.kind >= SL_DEVICE_CPU) slp_fprintf(f, "its tensors are on %s", sl_device_name(e->device, name));
	else if (e->no_cuda && slp_engine.ngpus) slp_fprintf(f, "%s has no CUDA kernel for these types", e->no_cuda);
	if (e->device.kind >= SL_DEVICE_CPU || (e->no_cuda && slp_engine.ngpus)) {
		if (count_allowed(e) <= 1) {
			fputc('\n', f);
			return;
		}
		fputs("; among those ", f);
	}
	if (count_allowed(e) <= 1) fputs("there is no other device\n", f);
	else if (predicts(sched)) slp_fprintf(f, "%s chose it: %s\n", sched, prediction(e));
	else slp_fprintf(f, "%s chose it, without considering times or transfers\n", sched);
}

void slp_explain_print(FILE *f, const struct slp_explanation *e, int call, const char *type)
{
	const struct slp_explained_call *c = &e->calls[call];
	print_call(f, c);
	slp_fprintf(f, " at %s, %s\n", c->at, type);
	if (c->program) slp_fprintf(f, "  in %s\n", c->program);
	print_calls(f, e, call);
	if (e->worker < 0) {
		fputs("  could not be submitted\n", f);
		return;
	}
	print_devices(f, e);
	print_waits(f, e);
	print_travels(f, e);
	print_why(f, e);
}
