/* Traces: gives StarPU each task's name, call site and colour while it records one, and writes data that StarPU cannot
 * store to the file named by SL_TRACE_TASKS: the shapes of each call, and its block. */
#include <stdlib.h>
#include <string.h>

#include "ascii.h"
#include "number.h"
#include "op.h"
#include "runtime/compat.h"
#include "runtime/engine.h"
#include "runtime/observe/fxt.h"
#include "runtime/text.h"

atomic_bool slp_fxt_on, slp_fxt_naming;

/* ---- call sites ------------------------------------------------------------------------------------------------- */

static _Thread_local const char *block; /* "net0/conv1"; NULL: in none */

const char *slp_fxt_enter(const char *name)
{
	const char *outer = block;
	char text[256];
	if (!slp_fxt_naming) return outer;
	snprintf(text, sizeof text, "%s%s%s", outer ? outer : "", outer ? "/" : "", name);
	block = slp_text_keep(text, outer);
	return outer;
}

void slp_fxt_leave(const char *outer)
{
	block = outer;
}

/* Folders may have blanks in their names. */
const char *slp_fxt_block_path(const char *at)
{
	const char *in_block = strstr(at, " [");
	return in_block ? in_block + 2 : at + strlen(at);
}

/* Without the block behind it. */
static size_t call_site_length(const char *at)
{
	const char *path = slp_fxt_block_path(at);
	return (size_t)(path - at) - (*path ? 2 : 0);
}

/* A gradient's call has the site of the call that it belongs to, which may name a block already. */
const char *slp_fxt_call_site_in_block(const char *at)
{
	char text[512];
	if (!block || !at) return at;
	const char *inner = slp_fxt_block_path(at);
	snprintf(text, sizeof text, "%.*s [%s%s%s", (int)call_site_length(at), at, block, *inner ? "/" : "]", inner);
	return slp_text_keep(text, at);
}

/* ---- the calls of a task ---------------------------------------------------------------------------------------- */

/* One a kind of task: its number in the file, its name, its colour. */
struct kind {
	struct kind *next;
	uint32_t footprint;
	size_t sites; /* the call site of its calls */
	int nops, number;
	const char *name;
	const struct sl_op *heaviest; /* of its calls; the family is its */
	struct slp_layers *layers;    /* NULL: no memory */
};

static struct {
	struct kind *buckets[256];
	int count;
	FILE *file;
} kinds; /* with the engine locked */

static double flops_of(const struct slp_record *r)
{
	struct slp_infer c = slp_record_call(r);
	return c.op->flops ? c.op->flops(&c) : 0;
}

/* "conv2d", "linear+relu", "fill*3+sum+8": calls in order; in a long list, the number of the remaining ones.  Without
 * blanks, which trace formats do not accept. */
static const char *name_of(const struct slp_call_list *p)
{
	enum { LONG = 16 };
	char name[128] = "";
	size_t n = 0;
	const struct slp_record *r = slp_record_first(p);
	for (int i = 0; i < p->nops;) {
		int op = r->op, same = 0;
		if (n > LONG) {
			snprintf(name + n, sizeof name - n, "+%d", p->nops - i);
			break;
		}
		for (; i < p->nops && r->op == op; i++, same++) r = slp_record_next(r);
		n += (size_t)snprintf(name + n, sizeof name - n, "%s%.48s", n ? "+" : "", slp_ops[op]->name);
		if (same > 1) n += (size_t)snprintf(name + n, sizeof name - n, "*%d", same);
	}
	return slp_text_keep(name, "segment");
}

/* The call that computes most. */
static const struct sl_op *heaviest_of(const struct slp_call_list *p)
{
	const struct slp_record *r = slp_record_first(p), *heaviest = r;
	double most = -1;
	for (int i = 0; i < p->nops; i++, r = slp_record_next(r)) {
		double flops = flops_of(r);
		if (flops > most) heaviest = r;
		if (flops > most) most = flops;
	}
	return slp_ops[heaviest->op];
}

static void write_types(FILE *f, const struct slp_type *t, int n)
{
	enum { SHOWN = 8 };
	char text[128];
	for (int i = 0; i < n && i < SHOWN; i++)
		fprintf(f, "%s%s%s", i ? ", " : "", sl_dtype_name(t[i].dtype), sl_shape_string(t[i].shape, text));
	if (n > SHOWN) fprintf(f, ", ...");
}

/* On one line, whatever users put into names. */
static void write_text(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) fputc(slp_is_control(text[i]) ? ' ' : text[i], kinds.file);
}

/* The blocks of its calls, if there are several, and the approximate share of each. */
static void describe_layers(const struct kind *k)
{
	if (!k->layers || k->layers->count < 2) return;
	fprintf(kinds.file, "layers\t%d", k->number);
	for (int i = 0; i < k->layers->count; i++) {
		slp_fprintf(kinds.file, "\t%.0f\t", k->layers->weight[i]);
		write_text(k->layers->paths[i], strlen(k->layers->paths[i]));
	}
	fputc('\n', kinds.file);
}

/* A line that describes the computations of such tasks. */
static void describe(const struct kind *k, const struct slp_call_list *p)
{
	const struct slp_record *r = slp_record_first(p);
	slp_fprintf(kinds.file, "kind\t%d\t%s\t%d\t%.0f\t%06x\t%s\t", k->number, k->name, p->nops, p->flops,
	            slp_op_colour(k->heaviest), slp_op_family(k->heaviest));
	for (int i = 0; i < p->nops; i++, r = slp_record_next(r)) {
		fprintf(kinds.file, "%s%s(", i ? "; " : "", slp_ops[r->op]->name);
		write_types(kinds.file, slp_record_types(r), r->nin);
		fprintf(kinds.file, ") -> ");
		write_types(kinds.file, slp_record_types(r) + r->nin, r->nout);
	}
	fputc('\n', kinds.file);
	describe_layers(k);
}

/* Call sites are kept once each: their addresses say which they are. */
static size_t sites_of(const struct slp_call_list *p)
{
	size_t hash = 0;
	const struct slp_record *r = slp_record_first(p);
	for (int i = 0; i < p->nops; i++, r = slp_record_next(r)) hash = hash * 31 + (size_t)r->at;
	return hash;
}

static struct kind *kind_of(const struct slp_call_list *p)
{
	struct kind **bucket = &kinds.buckets[p->footprint % (sizeof kinds.buckets / sizeof *kinds.buckets)];
	size_t sites = sites_of(p);
	for (struct kind *k = *bucket; k; k = k->next)
		if (k->footprint == p->footprint && k->nops == p->nops && k->sites == sites) return k;
	struct kind *k = slp_try_malloc(sizeof *k);
	if (!k) return NULL;
	*k = (struct kind){.next = *bucket,
	                   .footprint = p->footprint,
	                   .sites = sites,
	                   .nops = p->nops,
	                   .number = kinds.count++,
	                   .name = name_of(p),
	                   .heaviest = heaviest_of(p),
	                   .layers = slp_layers_of(p)};
	*bucket = k;
	if (kinds.file) describe(k, p);
	return k;
}

/* ---- tasks ------------------------------------------------------------------------------------------------------- */

/* StarPU wants the file and the line apart. */
static void set_call_site(struct starpu_task *task, const char *at)
{
	char file[256];
	size_t n = at ? call_site_length(at) : 0;
	while (n && at[n - 1] != ':') n--;
	if (n < 2 || !slp_is_digit(at[n])) return;
	snprintf(file, sizeof file, "%.*s", (int)(n - 1), at);
	slp_task_set_call_site(task, slp_text_keep(file, ""), atoi(at + n));
}

/* The length of a block's path that another call's site shares: "net0/dense0" and "net0/dense1" are both in "net0". */
static size_t shared(const char *path, size_t length, const char *at)
{
	const char *other = at ? slp_fxt_block_path(at) : "";
	size_t n = 0, whole = 0;
	for (; n < length && other[n] == path[n]; n++)
		if (path[n] == '/') whole = n;
	bool ends = (n == length || path[n] == '/') && strchr("/]", other[n]);
	return ends ? n : whole;
}

/* A number for each thread of the program, from 0. */
static int thread_number(void)
{
	static atomic_int count;
	static _Thread_local int number = -1;
	if (number < 0) number = atomic_fetch_add(&count, 1);
	return number;
}

/* When and by which thread it was submitted, the site of the first call, and the block that all calls are in. */
static void write_task(const struct slp_call_list *p, unsigned long job, int kind)
{
	const struct slp_record *r = slp_record_first(p);
	const char *at = r->at ? r->at : "?", *path = slp_fxt_block_path(at);
	size_t length = strcspn(path, "]");
	flockfile(kinds.file); /* workers write lines, too */
	slp_fprintf(kinds.file, "task\t%lu\t%d\t%.9f\t%d\t", job, kind, sl_time(), thread_number());
	write_text(at, call_site_length(at));
	for (int i = 0; length && i < p->nops; i++, r = slp_record_next(r)) length = shared(path, length, r->at);
	if (length) fputs(" [", kinds.file);
	write_text(path, length);
	fputs(length ? "]\n" : "\n", kinds.file);
	funlockfile(kinds.file);
}

void slp_fxt_spent(const struct slp_layers *layers, const double *seconds)
{
	if (!kinds.file) return;
	flockfile(kinds.file);
	fprintf(kinds.file, "spent\t%lu", starpu_task_get_job_id(starpu_task_get_current()));
	for (int i = 0; i < layers->count; i++) slp_fprintf(kinds.file, "\t%.1f", 1e6 * seconds[i]);
	fputc('\n', kinds.file);
	funlockfile(kinds.file);
}

void slp_fxt_waited(const char *what, double since)
{
	const struct slp_call *call = &slp_current_call;
	const char *at = call->at ? call->at : "?";
	if (!slp_fxt_on || !kinds.file) return;
	flockfile(kinds.file);
	slp_fprintf(kinds.file, "wait\t%.9f\t%.9f\t%d\t%s\t%s\t", since, sl_time(), thread_number(), what,
	            call->at ? call->function : "the program");
	write_text(at, call_site_length(at));
	fputc('\n', kinds.file);
	funlockfile(kinds.file);
}

void slp_fxt_energy(double cpu, double gpu)
{
	if (!slp_fxt_on || !kinds.file) return;
	flockfile(kinds.file);
	slp_fprintf(kinds.file, "energy\t%.9f\t%.6f\t%.6f\n", sl_time(), cpu, gpu);
	funlockfile(kinds.file);
}

void slp_fxt_task(struct slp_segment *seg, struct starpu_task *task)
{
	const struct kind *k = kind_of(seg->calls);
	if (!k) return;
	seg->layers = k->layers && k->layers->count > 1 ? k->layers : NULL;
	task->name = k->name;
	task->color = slp_op_colour(k->heaviest);
	set_call_site(task, slp_record_first(seg->calls)->at);
	if (kinds.file) write_task(seg->calls, starpu_task_get_job_id(task), k->number);
}

/* ---- iterations -------------------------------------------------------------------------------------------------- */

static struct {
	unsigned long numbers[2]; /* StarPU shows two levels */
	int depth;
	unsigned long steps;
} iterations;

/* StarPU's pop leaves the number unchanged (1.4.10): so its stack is emptied, and refilled. */
static void show_iterations(void)
{
	static int shown;
	for (; shown > 0; shown--) starpu_iteration_pop();
	if (iterations.depth == 0) {
		starpu_iteration_push((unsigned long)-1);
		starpu_iteration_pop();
	}
	for (; shown < iterations.depth && shown < 2; shown++) starpu_iteration_push(iterations.numbers[shown]);
}

/* Begins an iteration, such as a step of training: traces number the operations until sl_iteration_pop with it.
 * Iterations may be nested; traces show two levels.  No effect without a trace.  If a program does not number its
 * iterations, traces have the numbers of the trainer's steps.
 *
 *     for (int step = 0; step < steps; step++) {
 *             sl_iteration_push(step);
 *             ...
 *             sl_iteration_pop();
 *     } */
void sl_iteration_push(int64_t number)
{
	SLP_CALL("sl_iteration_push", NULL);
	if (!slp_fxt_on) return;
	slp_lock();
	if (iterations.depth < 2) iterations.numbers[iterations.depth] = (unsigned long)number;
	iterations.depth++;
	show_iterations();
	slp_unlock();
}

/* Ends the iteration of the last sl_iteration_push. */
void sl_iteration_pop(void)
{
	SLP_CALL("sl_iteration_pop", NULL);
	if (!slp_fxt_on) return;
	slp_lock();
	if (iterations.depth > 0) {
		iterations.depth--;
		show_iterations();
	}
	slp_unlock();
}

void slp_fxt_step_done(void)
{
	if (!slp_fxt_on) return;
	slp_lock();
	iterations.steps++;
	if (iterations.depth == 0) {
		starpu_iteration_push(iterations.steps);
		starpu_iteration_pop(); /* the number stays */
	}
	slp_unlock();
}

/* ---- start and stop ---------------------------------------------------------------------------------------------- */

void slp_fxt_start(void)
{
	static bool before;
	slp_fxt_on = slp_fxt_recorded();
	slp_fxt_naming = slp_fxt_on || atomic_load(&slp_profile_on);
	const char *path = slp_fxt_on ? getenv("SL_TRACE_TASKS") : NULL;
	if (!path || !*path || kinds.file) return;
	if (before) fprintf(stderr, "starling: started again: the trace will only contain what follows\n");
	before = true;
	kinds.file = fopen(path, "w");
	if (!kinds.file) fprintf(stderr, "starling: SL_TRACE_TASKS: %s cannot be written: %m\n", path);
}

void slp_fxt_stop(void)
{
	for (size_t i = 0; i < sizeof kinds.buckets / sizeof *kinds.buckets; i++)
		for (struct kind *k; (k = kinds.buckets[i]); free(k)) {
			kinds.buckets[i] = k->next;
			slp_layers_free(k->layers);
		}
	kinds.count = 0;
	if (kinds.file && fclose(kinds.file))
		fprintf(stderr, "starling: SL_TRACE_TASKS: could not be written completely: %m\n");
	kinds.file = NULL;
	iterations.depth = 0;
	iterations.steps = 0;
	slp_fxt_on = false;
	slp_fxt_naming = atomic_load(&slp_profile_on);
}
