/* Running a segment as a CUDA graph: which may be one, and the keys by which cuda_graph.c finds it again. */
#include <stdlib.h>
#include <string.h>

#include "runtime/device/cuda_graph.h"
#include "runtime/observe/layers.h"
#include "runtime/observe/watch.h"
#include "runtime/task/code.h"
#include "runtime/task/execute.h"
#include "runtime/task/run.h"

/* The calls of a run and where their keys are. */
struct keyed {
	struct slp_run *run;
	char *keys;
	struct slp_graph_call *calls;
	const struct slp_record **records;
};

/* Prepared code none of whose calls is to fail, to be skipped or to be timed. */
static bool may_be_graph(const struct slp_run *run)
{
	const struct slp_segment *seg = run->seg;
	if (!run->cuda || !slp_may_be_graph(seg->calls)) return false;
	if (seg->lost || slp_laps_wanted(seg, true)) return false;
	if (atomic_load_explicit(&slp_fail_kernel, memory_order_relaxed) > 0) return false;
	for (int i = 0; i < seg->nslots; i++)
		if (run->fault[i]) return false;
	return true;
}

/* Bytes for the keys, after those of the addresses. */
static size_t lay_out(struct slp_graph_call *calls, const struct slp_record **records, const struct slp_call_list *p,
                      size_t *addresses)
{
	const struct slp_record *r = slp_record_first(p);
	size_t at = 0;
	for (int i = 0; i < p->nops; i++, r = slp_record_next(r)) {
		records[i] = r;
		calls[i].addresses = at;
		calls[i].addresses_end = at += (size_t)(r->nin + r->nout + 1) * sizeof(void *);
	}
	*addresses = at = slp_align(at, 16);
	for (int i = 0; i < p->nops; i++) {
		calls[i].attrs = at;
		calls[i].attrs_end = at += slp_align(slp_ops[records[i]->op]->attrs_size, 16);
	}
	return at;
}

static void write_keys(struct keyed *k)
{
	struct slp_run *run = k->run;
	for (run->call = 0; run->call < run->seg->calls->nops; run->call++) {
		const struct slp_record *r = k->records[run->call];
		const struct slp_graph_call *c = &k->calls[run->call];
		void **to = (void **)(void *)(k->keys + c->addresses);
		slp_run_set_views(run, r);
		for (int i = 0; i < r->nin + r->nout; i++) *to++ = run->views[i].ptr;
		*to = slp_run_scratch(run);
		char patched[SLP_MAX_ATTRS];
		memcpy(k->keys + c->attrs, slp_run_patch_attrs(run, r, patched), slp_ops[r->op]->attrs_size);
	}
	run->patch = 0;
}

static bool record_call(void *arg, int call, void *stream)
{
	struct keyed *k = arg;
	k->run->call = call;
	k->run->recorder = stream;
	enum sl_status s = slp_run_call(k->run, k->records[call], k->keys + k->calls[call].attrs);
	k->run->recorder = NULL;
	return s == SL_OK;
}

/* With memory for the keys: whether it was launched. */
static bool launch_keyed(struct keyed *k, const struct slp_graph_run *laid_out)
{
	struct slp_graph_run g = *laid_out;
	write_keys(k);
	bool done = slp_graph_launch(&g);
	if (g.made) k->run->spoilt = true; /* its time says nothing of other runs */
	return done;
}

static struct slp_graph_place place_of(const struct slp_run *run)
{
	const struct slp_segment *seg = run->seg;
	return (struct slp_graph_place){.bases = run->base,
	                                .bases_bytes = (size_t)seg->nslots * sizeof *run->base,
	                                .patches = seg->patches,
	                                .patches_bytes = (size_t)seg->npatches * sizeof *seg->patches,
	                                .scratch = slp_run_scratch(run)};
}

/* The same; the keys of all calls are written, compared, and kept if there is no such graph. */
static bool run_as_other_graph(struct slp_run *run, const struct slp_graph_place *place)
{
	const struct slp_call_list *p = run->seg->calls;
	size_t n = (size_t)p->nops;
	struct slp_graph_call *calls = slp_try_malloc(n * (sizeof *calls + sizeof(struct slp_record *)));
	if (!calls) return false;
	struct keyed k = {.run = run, .calls = calls, .records = (const struct slp_record **)(void *)(calls + n)};
	struct slp_graph_run g = {
	        .code = p->code, .ncalls = p->nops, .calls = calls, .place = *place, .launch = record_call, .arg = &k};
	g.bytes = lay_out(calls, k.records, p, &g.addresses);
	g.keys = k.keys = slp_try_calloc(g.bytes, 1);
	bool done = k.keys && launch_keyed(&k, &g);
	free(k.keys);
	free(calls);
	return done;
}

bool slp_run_as_graph(struct slp_run *run)
{
	const struct slp_call_list *p = run->seg->calls;
	if (!may_be_graph(run) || !slp_graph_is_due(p->code)) return false;
	if (slp_watch_deadline > 0) slp_watch_runs(run->seg, slp_record_first(p));
	struct slp_graph_place place = place_of(run);
	return slp_graph_again(p->code, &place) || run_as_other_graph(run, &place);
}
