/* Measures the machine's limits right before each run of a case: products of matrices, memory, StarPU's tasks.  Each
 * thread works independently on its own core, as ideal parallel code would. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <starpu.h>
#ifdef HAVE_ONEDNN
#include <dnnl.h>
#endif
#ifdef HAVE_OPENBLAS
#include <cblas.h>
#endif

#include "bench.h"

enum { MAX_THREADS = 256, GEMM = 768 };

typedef void work_fn(void *own);

/* A measurement on all threads at once: `rounds` times, work() is called `repeat` times between two barriers. */
struct probe {
	work_fn *work;
	void *(*prepare)(size_t bytes);
	size_t bytes; /* of each thread */
	int rounds, repeat, threads;
	pthread_barrier_t barrier;
	double seconds; /* of one call in the best round */
};

struct member {
	struct probe *probe;
	int index;
	pthread_t thread;
};

static void bind_to_core(int index)
{
	cpu_set_t may, own;
	CPU_ZERO(&own);
	if (sched_getaffinity(0, sizeof may, &may)) return;
	for (int cpu = 0, n = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &may) && n++ == index) CPU_SET(cpu, &own);
	if (CPU_COUNT(&own)) sched_setaffinity(0, sizeof own, &own);
}

static void *member_main(void *arg)
{
	struct member *m = arg;
	struct probe *p = m->probe;
	bind_to_core(m->index);
	omp_set_num_threads(1); /* of the libraries in this thread */
	void *own = p->prepare(p->bytes);
	if (own) p->work(own);
	for (int i = 0; i < p->rounds; i++) {
		pthread_barrier_wait(&p->barrier);
		double start = bench_now();
		for (int k = 0; own && k < p->repeat; k++) p->work(own);
		pthread_barrier_wait(&p->barrier);
		double seconds = (bench_now() - start) / p->repeat;
		if (m->index == 0 && own && (isnan(p->seconds) || seconds < p->seconds)) p->seconds = seconds;
	}
	free(own);
	return NULL;
}

void bench_quiet(bool quiet)
{
	if (!sl_is_initialized()) return;
	if (quiet) starpu_pause();
	else starpu_resume();
}

static double probe_run(struct probe *p)
{
	struct member members[MAX_THREADS];
	p->seconds = NAN;
	bench_quiet(true);
	pthread_barrier_init(&p->barrier, NULL, (unsigned)p->threads);
	for (int i = 0; i < p->threads; i++) {
		members[i] = (struct member){.probe = p, .index = i};
		if (pthread_create(&members[i].thread, NULL, member_main, &members[i])) abort();
	}
	for (int i = 0; i < p->threads; i++) pthread_join(members[i].thread, NULL);
	pthread_barrier_destroy(&p->barrier);
	bench_quiet(false);
	return p->seconds;
}

static void *filled(size_t bytes)
{
	float *p = aligned_alloc(64, (bytes + 63) / 64 * 64);
	if (p)
		for (size_t i = 0; i < bytes / sizeof *p; i++) p[i] = (float)(i % 7) * 0.25f;
	return p;
}

/* ---- products of matrices ------------------------------------------------------------------------------------------
 */

/* Three matrices of GEMM × GEMM, one after the other. */
#ifdef HAVE_ONEDNN
static void work_onednn(void *own)
{
	float *a = own, *b = a + GEMM * GEMM, *c = b + GEMM * GEMM;
	dnnl_sgemm('N', 'N', GEMM, GEMM, GEMM, 1, a, GEMM, b, GEMM, 0, c, GEMM);
}
#endif
#ifdef HAVE_OPENBLAS
static void work_openblas(void *own)
{
	float *a = own, *b = a + GEMM * GEMM, *c = b + GEMM * GEMM;
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, GEMM, GEMM, GEMM, 1, a, GEMM, b, GEMM, 0, c, GEMM);
}
#endif

static double gemm_rate(work_fn *work, int threads, int rounds)
{
	struct probe p = {.work = work,
	                  .prepare = filled,
	                  .rounds = rounds,
	                  .repeat = 1,
	                  .threads = threads,
	                  .bytes = sizeof(float) * 3 * GEMM * GEMM};
	return 2.0 * GEMM * GEMM * GEMM * threads / probe_run(&p);
}

static work_fn *const gemms[] = {
#ifdef HAVE_ONEDNN
        work_onednn,
#endif
#ifdef HAVE_OPENBLAS
        work_openblas,
#endif
        NULL,
};

/* The fastest one of the libraries that we are built with. */
static work_fn *best_gemm(void)
{
	static work_fn *best;
	static bool known;
	double peak = 0;
	if (known) return best;
	known = true;
#ifdef HAVE_OPENBLAS
	openblas_set_num_threads(1); /* threads are ours */
#endif
	for (int i = 0; gemms[i]; i++) {
		double rate = gemm_rate(gemms[i], 1, 8);
		if (rate <= peak) continue;
		peak = rate;
		best = gemms[i];
	}
	return best;
}

double bench_gemm_peak(int threads)
{
	work_fn *work = best_gemm();
	return work ? gemm_rate(work, threads < MAX_THREADS ? threads : MAX_THREADS, 4) : NAN;
}

/* ---- memory --------------------------------------------------------------------------------------------------------
 */

struct area {
	size_t read, written; /* bytes */
	float *from, *to;
};

static _Thread_local struct area area; /* of this member */
static size_t area_read, area_written;
static volatile float sink;

static void *area_new(size_t bytes)
{
	char *p = filled(bytes);
	area = (struct area){.read = area_read,
	                     .written = area_written,
	                     .from = (float *)p,
	                     .to = (float *)(p ? p + area_read : NULL)};
	return p;
}

#ifdef SLP_TARGETS
__attribute__((target_clones(SLP_TARGETS)))
#endif
static float
total(const float *p, size_t n)
{
	enum { LANES = 128 };
	float sums[LANES] = {0}, sum = 0;
	for (size_t i = 0; i + LANES <= n; i += LANES)
		for (int k = 0; k < LANES; k++) sums[k] += p[i + (size_t)k];
	for (int k = 0; k < LANES; k++) sum += sums[k];
	return sum;
}

/* Reads all and writes all: copies as far as both go. */
static void work_memory(void *own)
{
	(void)own;
	const struct area *a = &area;
	size_t both = a->read < a->written ? a->read : a->written;
	memcpy(a->to, a->from, both);
	if (a->read > both) sink = total(a->from + both / sizeof(float), (a->read - both) / sizeof(float));
	if (a->written > both) memset((char *)a->to + both, 0, a->written - both);
}

double bench_bandwidth(double read, double written, int threads)
{
	if (threads > MAX_THREADS) threads = MAX_THREADS;
	double least = 16e6; /* bytes between two barriers, so that these do not count */
	area_read = (size_t)(read / threads) / 64 * 64;
	area_written = (size_t)(written / threads) / 64 * 64;
	struct probe p = {.work = work_memory,
	                  .prepare = area_new,
	                  .rounds = 5,
	                  .repeat = 1 + (int)(least / (read + written)),
	                  .threads = threads,
	                  .bytes = area_read + area_written + 64};
	return (double)(area_read + area_written) * threads / probe_run(&p);
}

/* ---- tasks ---------------------------------------------------------------------------------------------------------
 */

static void nothing(void *buffers[], void *arg)
{
	(void)buffers;
	(void)arg;
}

static struct starpu_codelet nothing_codelet = {
        .cpu_funcs = {nothing},
        .nbuffers = 2,
        .modes = {STARPU_R, STARPU_W},
        .name = "nothing",
};

static bool submit_nothing(starpu_data_handle_t from, starpu_data_handle_t to)
{
	struct starpu_task *task = starpu_task_create();
	task->cl = &nothing_codelet;
	task->handles[0] = from;
	task->handles[1] = to;
	return starpu_task_submit(task) == 0;
}

/* Of one task in a chain, each reading what the one before wrote, in a ring of handles that exist already. */
double bench_task_price(void)
{
	enum { RING = 8, TASKS = 4000 };
	starpu_data_handle_t ring[RING];
	float values[RING] = {0};
	for (int i = 0; i < RING; i++)
		starpu_variable_data_register(&ring[i], STARPU_MAIN_RAM, (uintptr_t)&values[i], sizeof *values);
	bool ok = true;
	double start = bench_now();
	for (int i = 0; ok && i < TASKS; i++) ok = submit_nothing(ring[i % RING], ring[(i + 1) % RING]);
	starpu_task_wait_for_all();
	double seconds = bench_now() - start;
	for (int i = 0; i < RING; i++) starpu_data_unregister(ring[i]);
	return ok ? seconds / TASKS : NAN;
}

/* ---- together ------------------------------------------------------------------------------------------------------
 */

/* Flops a second.  On CPUs bfloat16's peak is not measured. */
static double peak(bool half, const struct bench_options *o)
{
	if (o->device.kind != SL_DEVICE_GPU) return bench_gemm_peak(o->threads);
	return bench_gpu_gemm_peak(o->device.index, half ? BENCH_BF16 : o->tf32 ? BENCH_TF32 : BENCH_FLOAT32);
}

double bench_floor(const struct bench_work *work, bool half, const struct bench_options *o)
{
	double floor = NAN, bytes = work->read + work->written;
	bool gpu = o->device.kind == SL_DEVICE_GPU;
	if (work->flops > 0) floor = work->flops / peak(half, o);
	if (bytes > 0)
		floor = fmax(floor, bytes / (gpu ? bench_gpu_bandwidth(o->device.index, work->read, work->written)
		                                 : bench_bandwidth(work->read, work->written, o->threads)));
	if (work->tasks > 0) floor = fmax(floor, work->tasks * bench_task_price());
	return floor;
}
