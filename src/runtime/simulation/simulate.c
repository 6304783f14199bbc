/* Simulated machines: the time of each call, from its flops and bytes and the machine's description, or from StarPU's
 * records of that machine.  doc/simulation.md explains what a description contains. */
#include <time.h>

#include "config.h"
#include "number.h"
#include "runtime/engine.h"
#include "runtime/simulation/simulate.h"
#include "runtime/task/buffer.h"
#include "runtime/task/code.h"

#ifndef SLP_SIMULATION

/* Whether the engine simulates a machine: then kernels do not run, all values are zero, and only times are meaningful.
 * */
bool sl_is_simulated(void)
{
	return false;
}

/* The time in seconds since some fixed moment, from a clock that is never set; in simulation, the simulated time. Use
 * it to measure durations.
 *
 *     double start = sl_time();
 *     sl_wait(sl_dot(a, b));
 *     printf("%g s\n", sl_time() - start); */
double sl_time(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#else
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool sl_is_simulated(void)
{
	return true;
}

double sl_time(void)
{
	return 1e-6 * starpu_timing_now();
}

/* ---- the machine ------------------------------------------------------------------------------------------------- */

enum { CPU, GPU, KINDS, MAX_LINES = 512, MAX_KEY = 64 };

/* A description: lines KEY VALUE.  tools/sl-simulate names the file and has checked that the required keys exist. */
static struct {
	struct line {
		char key[MAX_KEY];
		double value;
	} line[MAX_LINES];
	int lines;
	bool loaded;
} description;

static struct {
	double flops[KINDS][SLP_MAX_OPS], bytes[KINDS][SLP_MAX_OPS]; /* a second, by operation: of a core, of a GPU */
	double call[KINDS];                                          /* seconds of each call on top */
	double task[KINDS];                                          /* seconds of each task on top */
	double host_call, host_task;                                 /* seconds of the thread that submits */
	int sockets;
	double core_bytes, socket_bytes; /* a second: of a core at most; between sockets.  INFINITY: no limit */
	double join;                     /* seconds of each call for each further core of a team */
} machine;

static void load(void)
{
	const char *path = getenv("SL_MACHINE");
	FILE *file = path ? fopen(path, "r") : NULL;
	char text[256];
	description.loaded = true;
	while (file && description.lines < MAX_LINES && fgets(text, sizeof text, file)) {
		struct line *l = &description.line[description.lines];
		int n = 0;
		char *end = text;
		if (sscanf(text, " %63[^ \t#\n]%n", l->key, &n) == 1) l->value = slp_number_read(text + n, &end);
		if (end > text + n) description.lines++;
	}
	if (file) fclose(file);
}

static const double *find(const char *key)
{
	if (!description.loaded) load();
	for (int i = 0; i < description.lines; i++)
		if (!strcmp(description.line[i].key, key)) return &description.line[i].value;
	return NULL;
}

static double value(const char *kind, const char *what)
{
	char key[MAX_KEY];
	snprintf(key, sizeof key, "%s.%s", kind, what);
	const double *v = find(key);
	return v ? *v : 0;
}

/* The rate of an operation: that of the longest given prefix of its name, else the rate of all. */
static double rate(const char *kind, const char *what, const char *op)
{
	char key[MAX_KEY];
	for (size_t n = strlen(op); n; n--) {
		snprintf(key, sizeof key, "%s.%s.%.*s", kind, what, (int)n, op);
		const double *v = find(key);
		if (v) return 1e9 * *v;
	}
	return 1e9 * value(kind, what);
}

int slp_simulated_cores(void)
{
	int cores = (int)value("cpu", "cores");
	return cores > 0 ? cores : 1;
}

int slp_simulated_gpus(void)
{
	int n = (int)value("gpu", "count");
	return n < SLP_MAX_GPUS ? n : SLP_MAX_GPUS;
}

/* Memory's bandwidth is that of all cores together. */
void slp_simulate_op(int op)
{
	static const char *const kinds[KINDS] = {[CPU] = "cpu", [GPU] = "gpu"};
	for (int k = 0; k < KINDS; k++) {
		machine.flops[k][op] = rate(kinds[k], "gflops", slp_ops[op]->name);
		machine.bytes[k][op] = rate(kinds[k], "gbytes", slp_ops[op]->name);
	}
	machine.bytes[CPU][op] /= slp_simulated_cores();
}

bool slp_simulated_nodes(struct slp_simulated_network *n)
{
	const char *how = getenv("SL_SIMULATED_NETWORK"), *nodes = getenv("SL_SIMULATED_NODES");
	const char *sums = getenv("SL_SIMULATED_SUMS");
	*n = (struct slp_simulated_network){.nodes = (int)(nodes ? atoi(nodes) : value("node", "count"))};
	n->bandwidth = 1e9 * value("node", "gbytes");
	n->latency = 1e-6 * value("node", "latency_us");
	n->memory = 1e9 * value("cpu", "gbytes") / slp_simulated_cores();
	n->gpu = 1e9 * value("gpu", "gbytes");
	n->call = machine.call[GPU];
	n->on_gpus = n->gpu > 0 && sums && !strcmp(sums, "gpu");
	n->free = how && !strcmp(how, "free");
	n->none = how && !strcmp(how, "none");
	return n->nodes > 1 && n->bandwidth > 0;
}

static void set_costs(int kind, const char *name)
{
	machine.call[kind] = 1e-6 * value(name, "call_us");
	machine.task[kind] = 1e-6 * value(name, "task_us");
}

/* Bytes a second. */
static double limit_of(const char *what)
{
	double most = value("cpu", what);
	return most > 0 ? 1e9 * most : INFINITY;
}

bool slp_simulate_start(const char *at)
{
	set_costs(CPU, "cpu");
	set_costs(GPU, "gpu");
	for (int i = 0; i < slp_op_count(); i++) slp_simulate_op(i);
	machine.join = 1e-6 * value("cpu", "join_us");
	machine.sockets = value("cpu", "sockets") > 1 ? (int)value("cpu", "sockets") : 1;
	machine.core_bytes = limit_of("core_gbytes");
	machine.socket_bytes = limit_of("socket_gbytes");
	machine.host_call = 1e-6 * value("host", "call_us");
	machine.host_task = 1e-6 * value("host", "task_us");
	if (machine.flops[CPU][0] > 0 && machine.bytes[CPU][0] > 0) return true;
	slp_call_fail(
	        at, "sl_init", SL_EINVAL,
	        "this engine simulates a machine, and SL_MACHINE=%s describes none: run the program with sl-simulate",
	        getenv("SL_MACHINE") ? getenv("SL_MACHINE") : "");
	return false;
}

/* StarPU pins main memory for GPUs in pieces of 32 MiB, each of which takes 20.8 ms in simulation.  Where the first is
 * asked for while tasks run, these seem to take as long: so it is allocated before the first task, and kept by
 * StarPU. */
void slp_simulate_memory(void)
{
	const size_t little = 4096;
	if (slp_engine.ngpus == 0) return;
	uintptr_t memory = starpu_malloc_on_node(STARPU_MAIN_RAM, little);
	if (memory) starpu_free_on_node(STARPU_MAIN_RAM, memory, little);
}

/* ---- times that were recorded on the machine --------------------------------------------------------------------- */

static struct starpu_perfmodel recorded[SLP_MAX_OPS + 1];

/* The times of a codelet, from the folder that SL_MACHINE_MODELS names, where StarPU's files are by its name. */
static void load_recorded(int op, const char *name)
{
	struct starpu_perfmodel *m = &recorded[op + 1];
	const char *folder = getenv("SL_MACHINE_MODELS");
	char path[4096];
	*m = (struct starpu_perfmodel){.type = STARPU_HISTORY_BASED};
	if (!folder || !*folder) return;
	snprintf(path, sizeof path, "%s/%s", folder, name);
	if (access(path, R_OK)) return;
	if (starpu_perfmodel_load_file(path, m)) {
		fprintf(stderr, "starling: %s cannot be read; times of %s are estimated\n", path, name);
		m->is_loaded = STARPU_PERFMODEL_INVALID;
	}
}

/* Seconds on average; 0 if too few were recorded.  Looked up here: StarPU's own way complains of each that is
 * missing. */
static double recorded_seconds(const struct slp_call_list *p, unsigned worker)
{
	enum { FEW = 3 };
	struct starpu_perfmodel *m = &recorded[p->nops == 1 ? p->op + 1 : 0];
	if (!m->is_loaded) return 0;
	struct starpu_perfmodel_arch *arch = starpu_worker_get_perf_archtype((int)worker, 0);
	const struct starpu_perfmodel_per_arch *times = starpu_perfmodel_get_model_per_arch(m, arch, 0);
	for (const struct starpu_perfmodel_history_list *l = times ? times->list : NULL; l; l = l->next)
		if (l->entry->footprint == p->footprint) return l->entry->nsample < FEW ? 0 : 1e-6 * l->entry->mean;
	return 0;
}

/* ---- times ------------------------------------------------------------------------------------------------------- */

static double per(double amount, double rate_of_it)
{
	return amount > 0 ? amount / rate_of_it : 0;
}

/* Bytes a second of a team: its share of all, not more than its cores can take.  Of a team that spans sockets, all but
 * one socket's part of the bytes comes from elsewhere, as values are in the memory of whoever wrote them. */
static double team_bytes(int op, int cores)
{
	double rate = fmin(machine.bytes[CPU][op], machine.core_bytes) * cores;
	double share = (double)slp_simulated_cores() / machine.sockets, parts = ceil(cores / share);
	return parts > 1 ? fmin(rate, machine.socket_bytes * parts / (parts - 1)) : rate;
}

static double call_seconds(const struct slp_infer *c, int op, int kind, int cores)
{
	double flops = c->op->flops ? c->op->flops(c) : 0;
	double bytes = kind == CPU ? team_bytes(op, cores) : machine.bytes[GPU][op];
	return machine.call[kind] + machine.join * (kind == CPU ? cores - 1 : 0) +
	       fmax(per(flops, machine.flops[kind][op] * cores), per(slp_call_bytes(c), bytes));
}

double slp_simulated_call_seconds(const struct slp_infer *c)
{
	return call_seconds(c, slp_op_number(c->op), GPU, 1);
}

/* A GPU's worker has a separate core; the others are distributed over the teams. */
static int team_cores(void)
{
	int n = (slp_simulated_cores() - slp_engine.ngpus) / (slp_engine.nteams > 0 ? slp_engine.nteams : 1);
	return n > 0 ? n : 1;
}

double slp_simulated_seconds(const struct slp_segment *seg, unsigned worker)
{
	const struct slp_call_list *p = seg->calls;
	double known = recorded_seconds(p, worker);
	if (known > 0) return known;
	int kind = starpu_worker_get_type((int)worker) == STARPU_CUDA_WORKER ? GPU : CPU;
	int cores = kind == GPU ? 1 : team_cores();
	double sum = machine.task[kind];
	const struct slp_record *r = slp_record_first(p);
	for (int i = 0; i < p->nops; i++, r = slp_record_next(r)) {
		struct slp_infer c = slp_record_call(r);
		sum += call_seconds(&c, r->op, kind, cores);
	}
	return sum > 1e-9 ? sum : 1e-9; /* StarPU takes 0 for not known */
}

/* Microseconds, as StarPU wants them.  Of an architecture: dmdasd, pheft and some modular policies ask for no worker, and
 * end the program if a model knows workers only. */
static double cost(struct starpu_task *task, struct starpu_perfmodel_arch *arch, unsigned implementation)
{
	(void)implementation;
	const struct starpu_perfmodel_device *d = &arch->devices[0];
	bool gpu = d->type == STARPU_CUDA_WORKER && d->devid >= 0 && d->devid < slp_engine.ngpus;
	int worker = gpu ? slp_engine.gpu_worker[d->devid] : slp_engine.team_worker[0];
	return 1e6 * slp_simulated_seconds(task->cl_arg, (unsigned)worker);
}

void slp_simulate_model(struct starpu_perfmodel *model, int op)
{
	model->type = STARPU_PER_ARCH;
	model->arch_cost_function = cost;
	load_recorded(op, model->symbol);
}

/* Stands for every CUDA kernel: it shows which operations have one, and never runs. */
enum sl_status slp_simulated_kernel(const struct slp_kernel *k)
{
	return slp_kernel_fail(k, SL_EINTERNAL, "a kernel was run in simulation");
}

/* ---- the thread that submits ------------------------------------------------------------------------------------- */

void slp_simulate_submission(const struct slp_segment *seg, const struct starpu_task *task)
{
	double seconds = machine.host_task + machine.host_call * seg->calls->nops;
	if (seconds > 0) starpu_sleep((float)seconds);
	slp_bound_task(seg, task, seconds);
}

void slp_simulate_access(struct slp_buffer *b, void *memory, bool write)
{
	if (memory && !b->adopted) memset(memory, 0, b->bytes);
	slp_bound_access(b, write);
}
#endif
