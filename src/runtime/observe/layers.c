/* Time by layer: of the calls in a task, by the block they belong to, for traces; of all calls, for
 * sl_profile_print. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"
#include "op.h"
#include "runtime/device/gpu.h"
#include "runtime/forked.h"
#include "runtime/observe/fxt.h"
#include "runtime/observe/layers.h"

/* ---- which block a call belongs to ------------------------------------------------------------------------------- */

/* The block in "file:line [block]"; its length. */
static const char *path_of(const char *at, size_t *length)
{
	const char *path = at ? slp_fxt_block_path(at) : "";
	*length = strcspn(path, "]");
	return path;
}

static int find_layer(struct slp_layers *l, const char *path, size_t length)
{
	for (int i = l->count - 1; i >= 0; i--)
		if (!strncmp(l->paths[i], path, length) && !l->paths[i][length]) return i;
	l->paths[l->count] = slp_try_malloc(length + 1);
	if (!l->paths[l->count]) return -1;
	snprintf(l->paths[l->count], length + 1, "%s", path);
	return l->count++;
}

static double bytes_of(const struct slp_type *t)
{
	return (double)sl_shape_size(t->shape) * (double)sl_dtype_size(t->dtype);
}

/* The operations of a call, and the bytes that it reads and writes. */
struct work {
	double flops, bytes;
};

static struct work work_of(const struct slp_infer *c)
{
	struct work w = {.flops = c->op->flops ? c->op->flops(c) : 0};
	for (int i = 0; i < c->nin; i++) w.bytes += bytes_of(&c->in[i]);
	for (int i = 0; i < c->nout; i++) w.bytes += bytes_of(&c->out[i]);
	return w;
}

/* In units of a byte moved: about the ratio of a processor's, and of a GPU's, speed of computing and of memory. */
static double weight_of(const struct slp_record *r)
{
	enum { FLOPS_PER_BYTE = 20 };
	struct slp_infer c = slp_record_call(r);
	struct work w = work_of(&c);
	return w.flops / FLOPS_PER_BYTE > w.bytes ? w.flops / FLOPS_PER_BYTE : w.bytes;
}

struct slp_layers *slp_layers_of(const struct slp_call_list *p)
{
	size_t n = (size_t)p->nops;
	struct slp_layers *l = slp_try_calloc(1, sizeof *l);
	if (!l) return NULL;
	l->paths = slp_try_calloc(n, sizeof *l->paths);
	l->weight = slp_try_calloc(n, sizeof *l->weight);
	l->of_call = slp_try_calloc(n, sizeof *l->of_call);
	const struct slp_record *r = slp_record_first(p);
	for (int i = 0; i < p->nops; i++, r = slp_record_next(r)) {
		size_t length;
		const char *path = path_of(r->at, &length);
		int layer = l->paths && l->weight && l->of_call ? find_layer(l, path, length) : -1;
		if (layer < 0) {
			slp_layers_free(l);
			return NULL;
		}
		l->of_call[i] = layer;
		l->weight[layer] += weight_of(r);
	}
	return l;
}

void slp_layers_free(struct slp_layers *l)
{
	if (!l) return;
	for (int i = 0; i < l->count; i++) free(l->paths[i]);
	free(l->paths);
	free(l->weight);
	free(l->of_call);
	free(l);
}

/* ---- the profile ------------------------------------------------------------------------------------------------- */

atomic_bool slp_profile_on;

struct entry {
	struct entry *next;
	const char *op;
	char *at;
	uint64_t calls;
	double seconds, flops, bytes, floor; /* floor: seconds at the machine's rates */
};

static struct {
	pthread_mutex_t lock;
	struct entry *buckets[256];
	int count;
	double flops, bytes; /* a second, see sl_profile_rates */
} profile = {.lock = PTHREAD_MUTEX_INITIALIZER};
SLP_FORK_MUTEX(profile.lock);

static struct entry *entry_of(const char *op, const char *at)
{
	uint32_t hash = 2166136261u;
	for (const char *p = at; *p; p++) hash = (hash ^ (unsigned char)*p) * 16777619u;
	struct entry **bucket = &profile.buckets[hash % (sizeof profile.buckets / sizeof *profile.buckets)];
	for (struct entry *e = *bucket; e; e = e->next)
		if (e->op == op && !strcmp(e->at, at)) return e;
	struct entry *e = slp_try_calloc(1, sizeof *e);
	if (!e || !(e->at = slp_try_malloc(strlen(at) + 1))) {
		free(e);
		return NULL;
	}
	strcpy(e->at, at);
	e->op = op;
	e->next = *bucket;
	*bucket = e;
	profile.count++;
	return e;
}

static void profile_add(const struct slp_record *r, double seconds)
{
	struct slp_infer c = slp_record_call(r);
	pthread_mutex_lock(&profile.lock);
	struct entry *e = entry_of(c.op->name, r->at ? r->at : "?");
	if (e) {
		struct work w = work_of(&c);
		e->calls++;
		e->seconds += seconds;
		e->flops += w.flops;
		e->bytes += w.bytes;
		if (profile.flops > 0) e->floor += fmax(w.flops / profile.flops, w.bytes / profile.bytes);
	}
	pthread_mutex_unlock(&profile.lock);
}

static void profile_clear(void)
{
	for (size_t i = 0; i < sizeof profile.buckets / sizeof *profile.buckets; i++)
		for (struct entry *e; (e = profile.buckets[i]); free(e)) {
			profile.buckets[i] = e->next;
			free(e->at);
		}
	profile.count = 0;
}

/* Starts to measure the time of each call, and forgets earlier times; sl_profile_print prints the times.  Blocks are
 * named only in networks that are compiled afterwards.  On a GPU the engine waits after each call, to measure it alone,
 * so programs are slower meanwhile. */
void sl_profile_start(void)
{
	pthread_mutex_lock(&profile.lock);
	profile_clear();
	pthread_mutex_unlock(&profile.lock);
	slp_fxt_naming = true;
	atomic_store(&slp_profile_on, true);
}

/* Sets the machine's peak rates: flops and bytes per second, both above 0; other values remove them.  Times measured
 * afterwards are compared with the floor that follows from the rates: for each call, the longer of flops / rate and
 * bytes / rate, its inputs and results counted once (S. Williams, A. Waterman, D. Patterson, "Roofline", 2009).
 * sl_profile_print then has a column "of floor": floor / time.  It may be above 1 if data stay in caches. */
void sl_profile_rates(double flops, double bytes)
{
	bool known = isfinite(flops) && isfinite(bytes) && flops > 0 && bytes > 0;
	pthread_mutex_lock(&profile.lock);
	profile.flops = known ? flops : 0;
	profile.bytes = known ? bytes : 0;
	pthread_mutex_unlock(&profile.lock);
}

/* Stops measuring; the times so far can still be printed. */
void sl_profile_stop(void)
{
	atomic_store(&slp_profile_on, false);
	slp_fxt_naming = slp_fxt_on;
}

static int by_seconds(const void *a, const void *b)
{
	double x = (*(struct entry *const *)a)->seconds, y = (*(struct entry *const *)b)->seconds;
	return (x < y) - (x > y);
}

static void print_entry(FILE *file, const struct entry *e, double all)
{
	double seconds = e->seconds > 0 ? e->seconds : INFINITY;
	slp_fprintf(file, "%-24s %8llu %9.3f ms %5.1f %% %10.1f %8.1f", e->op, (unsigned long long)e->calls,
	            1e3 * e->seconds, all > 0 ? 100 * e->seconds / all : 0, 1e-9 * e->flops / seconds,
	            1e-9 * e->bytes / seconds);
	if (profile.flops > 0) slp_fprintf(file, " %8.2f", e->floor / seconds);
	fprintf(file, "  %s\n", e->at);
}

static void print_entries(FILE *file, struct entry **list, int count)
{
	double all = 0, floor = 0;
	for (int i = 0; i < count; i++) {
		all += list[i]->seconds;
		floor += list[i]->floor;
	}
	fprintf(file, "%-24s %8s %12s %7s %10s %8s%s  %s\n", "operation", "calls", "time", "share", "GFlop/s", "GB/s",
	        profile.flops > 0 ? " of floor" : "", "where");
	for (int i = 0; i < count; i++) print_entry(file, list[i], all);
	slp_fprintf(file, "%-24s %8s %9.3f ms", "all", "", 1e3 * all);
	if (profile.flops > 0 && all > 0) slp_fprintf(file, " %36.2f", floor / all);
	fputc('\n', file);
}

/* Prints the times of the calls since sl_profile_start, by operation, place and block, the longest first.  Does not
 * wait: calls still in flight are missing. */
void sl_profile_print(FILE *file)
{
	int count = 0;
	if (!file) return;
	pthread_mutex_lock(&profile.lock);
	struct entry **list = slp_try_calloc((size_t)profile.count + 1, sizeof *list);
	for (size_t i = 0; list && i < sizeof profile.buckets / sizeof *profile.buckets; i++)
		for (struct entry *e = profile.buckets[i]; e; e = e->next) list[count++] = e;
	if (list && count) qsort(list, (size_t)count, sizeof(struct entry *), by_seconds);
	if (list) print_entries(file, list, count);
	pthread_mutex_unlock(&profile.lock);
	free(list);
}

/* ---- one run of a task ------------------------------------------------------------------------------------------- */

void slp_laps_begin(struct slp_laps *laps, const struct slp_segment *segment, bool cuda)
{
	const struct slp_layers *l = cuda ? NULL : segment->layers;
	*laps = (struct slp_laps){segment, l ? slp_try_calloc((size_t)l->count, sizeof(double)) : NULL, sl_time(),
	                          cuda};
}

void slp_laps_call(struct slp_laps *laps, int number, const struct slp_record *r)
{
	bool profiled = atomic_load_explicit(&slp_profile_on, memory_order_relaxed);
	if (profiled && laps->cuda) slp_gpu_wait();
	double now = sl_time();
	if (laps->seconds) laps->seconds[laps->segment->layers->of_call[number]] += now - laps->since;
	if (profiled) profile_add(r, now - laps->since);
	laps->since = profiled ? sl_time() : now;
}

void slp_laps_end(struct slp_laps *laps)
{
	if (laps->seconds) slp_fxt_spent(laps->segment->layers, laps->seconds);
	free(laps->seconds);
}
