/* The benchmark: cases, measurements, and functions that its files share. */
#ifndef BENCH_H
#define BENCH_H

#include <math.h>
#include <stdio.h>

#include <starling/arithmetic.h>
#include <starling/functions.h>
#include <starling/io.h>
#include <starling/nn.h>
#include <starling/primitives.h>

enum { BENCH_MAX_RUNS = 101, BENCH_MAX_INPUTS = 5, BENCH_MESSAGE = 512, BENCH_HOW = 24 };

/* The least time of a repetition: its floor is the longest of these times. */
struct bench_work {
	double flops;         /* at the measured sgemm peak of all cores */
	double read, written; /* bytes, at the measured bandwidth of an array of that size */
	double tasks;         /* at the measured price of a bare StarPU task */
};

/* A case's goal. */
enum bench_goal_kind {
	BENCH_NO_GOAL,
	BENCH_AT_MOST,  /* the value */
	BENCH_AT_LEAST, /* the value */
	BENCH_OF_FLOOR, /* this part of the floor's speed */
	BENCH_OF_PEER,  /* so many times as fast as the peer */
};

struct bench_goal {
	enum bench_goal_kind kind;
	double limit;
};

/* An input of an operation: random numbers, or with int32 class numbers below 10. */
struct bench_input {
	sl_shape shape;
	enum sl_dtype dtype;
	bool want_grad;
	bool used;
};

struct bench_op {
	sl_tensor *(*forward)(sl_tensor *const *in);
	bool backward; /* time the backward pass instead */
	struct bench_input in[BENCH_MAX_INPUTS];
};

/* A case.  What it leaves out is zero: no rate, no goal, no peer's share, an engine with default configuration. */
struct bench_case {
	const char *name, *doc;
	const char *unit;
	double scale;          /* value in unit = seconds a repetition * scale; 0: run returns the value itself */
	const char *rate_unit; /* an additional figure: rate_count / seconds a repetition */
	double rate_count;
	const double *rate_value; /* ... or, where that is 0, what run left here */
	struct sl_config config;
	bool no_engine; /* run starts and stops engines as it needs them */
	bool no_peer;
	int64_t times; /* repetitions a run; 0: as many as make a run long enough to be timed */
	int runs;      /* at most so many; 0: as many as asked for */
	bool cpu_only, gpu_only;
	bool half; /* a whole step under autocast to bfloat16, a layer over sequences in it */
	struct bench_work work;
	struct bench_goal goal;
	const struct bench_op *op; /* for the functions bench_op_*() */
	bool (*setup)(const struct bench_case *c);
	double (*run)(const struct bench_case *c, int64_t times); /* seconds of one repetition, or the value */
	void (*teardown)(void);
};

int bench_case_count(void);
const struct bench_case *bench_case(int i);
extern const struct bench_case bench_parts[]; /* the last of them */
extern const int bench_parts_count;

struct bench_options {
	int runs;
	double run_seconds; /* aimed at for one run */
	int threads;        /* cores that may be used */
	const char *peer_script;
	sl_device device; /* where operations run; a GPU has floors of its own */
	bool tf32;        /* float32 products may round their factors to TF32, the peer's too */
};

/* The values of each run; NAN where there is none. */
struct bench_result {
	int runs;
	double joules[BENCH_MAX_RUNS]; /* of the machine, for a repetition */
	double value[BENCH_MAX_RUNS], rate[BENCH_MAX_RUNS], floor[BENCH_MAX_RUNS], peer[BENCH_MAX_RUNS];
	char how[BENCH_HOW]; /* the peer does it, where it has several ways: the fastest */
	char error[BENCH_MESSAGE];
};

/* A row of the table. */
struct bench_summary {
	double value, low, high;
	double rate;
	double joules, per_joule;  /* energy of a repetition; what the rate counts, for a joule */
	double floor, floor_ratio; /* floor / value: 1 is the floor's speed */
	double peer, peer_ratio;   /* peer / value: above 1 we are faster */
	bool met;
};

/* ---- measure.c: time, statistics, runs --------------------------------------------------------------------------- */

double bench_now(void);                 /* seconds */
void bench_must(enum sl_status status); /* the first one that is not SL_OK makes the case fail */
double bench_median(const double *values, int n);
/* Calls fn in a child process, which starts without engine and threads, and brings result back; false if it fails. */
bool bench_in_child(void (*fn)(const void *arg, void *result), const void *arg, void *result, size_t size);
void bench_measure(const struct bench_case *c, const struct bench_options *options, struct bench_result *result);
struct bench_summary bench_summarize(const struct bench_case *c, const struct bench_result *result);

/* ---- floors.c: what the machine can do ----------------------------------------------------------------------------
 */

void bench_quiet(bool quiet);        /* idle StarPU workers spin: they must not while others are measured */
double bench_gemm_peak(int threads); /* flops a second; NAN without a library for it */
double bench_bandwidth(double read, double written, int threads); /* bytes a second */
double bench_task_price(void);                                    /* seconds; the engine must run */
/* Seconds; NAN if nothing is known.  half: products may be in bfloat16. */
double bench_floor(const struct bench_work *work, bool half, const struct bench_options *options);

/* ---- floors_gpu.c: what a CUDA device can do; NAN where there is none -----------------------------------------------
 */

enum bench_factors { BENCH_FLOAT32, BENCH_TF32, BENCH_BF16, BENCH_FACTORS };
double bench_gpu_gemm_peak(int device, enum bench_factors factors);  /* flops a second */
double bench_gpu_bandwidth(int device, double read, double written); /* bytes a second, within its memory */
double bench_gpu_link(int device, bool to_device);                   /* bytes a second, from and to pinned memory */
void bench_gpu_name(int device, char *name, size_t size);

/* ---- machine.c -----------------------------------------------------------------------------------------------------
 */

int bench_cores(void);
void bench_machine(char *line, size_t size, const struct bench_options *options);

/* ---- peer.c: the same work in PyTorch ------------------------------------------------------------------------------
 */

bool bench_peer_start(const char *python, const struct bench_options *options);
const char *bench_peer_name(void);                      /* NULL: there is none */
double bench_peer_run(const char *name, int64_t times); /* seconds of one repetition; NAN if it has no such case */
const char *bench_peer_how(void);                       /* the last one was done; "" for the usual way */
void bench_peer_stop(void);

/* ---- report.c ------------------------------------------------------------------------------------------------------
 */

enum bench_format { BENCH_TEXT, BENCH_MARKDOWN };
void bench_print_head(FILE *file, enum bench_format format);
void bench_print_row(FILE *file, enum bench_format format, const struct bench_case *c, const struct bench_result *r);
void bench_print_list(FILE *file);
bool bench_write_json(FILE *file, const char *machine, const struct bench_case *c, const struct bench_result *r);

/* ---- series.c: the same case several times ------------------------------------------------------------------------- */

enum { BENCH_MAX_SERIES = 16, BENCH_MAX_LOOPS = 1024 };
enum bench_series_kind { BENCH_ALONE, BENCH_THREADS, BENCH_LOOPS };

/* With so many threads each time, or beside so many busy loops. */
struct bench_series {
	enum bench_series_kind kind;
	int n, count[BENCH_MAX_SERIES];
};

/* A point of it beside the first one. */
struct bench_point {
	int count;
	double change, efficiency; /* with threads times as fast, and a thread; beside loops times as long, and NAN */
	double peer_change;
};

/* "1,2,8", or NULL: 1, 2, 4, ... all; false for what cannot be, more threads than cores among it. */
bool bench_series_threads(struct bench_series *s, const char *list, int cores);
/* Measures and prints all points; returns how many failed. */
int bench_series_case(const struct bench_case *c, const struct bench_series *s, const struct bench_options *options,
                      enum bench_format format, FILE *json, const char *machine);
void bench_print_series(FILE *file, enum bench_format format, const struct bench_series *s);
void bench_print_point(FILE *file, enum bench_format format, const struct bench_case *c, const struct bench_result *r,
                       const struct bench_point *p);
bool bench_write_point(FILE *file, const char *machine, const struct bench_case *c, const struct bench_result *r,
                       const struct bench_series *s, const struct bench_point *p);

/* ---- cases_*.c: setup, run and teardown of the cases in cases.c ----------------------------------------------------
 */

bool bench_op_setup(const struct bench_case *c);
double bench_op_run(const struct bench_case *c, int64_t times);
void bench_op_teardown(void);

double bench_chain_run(const struct bench_case *c, int64_t times);
bool bench_dot_setup(const struct bench_case *c);
double bench_dot_run(const struct bench_case *c, int64_t times);
double bench_queue_run(const struct bench_case *c, int64_t times);
void bench_dot_teardown(void);
double bench_plus_one_async_run(const struct bench_case *c, int64_t times);
double bench_plus_one_sync_run(const struct bench_case *c, int64_t times);
double bench_plus_one_gain_run(const struct bench_case *c, int64_t times);

bool bench_lenet_setup(const struct bench_case *c);
bool bench_mlp_setup(const struct bench_case *c);
double bench_step_run(const struct bench_case *c, int64_t times);      /* training, waits at the end */
double bench_step_sync_run(const struct bench_case *c, int64_t times); /* training, waits after each step */
double bench_latency_run(const struct bench_case *c, int64_t times);   /* one row forward, result read */
double bench_update_run(const struct bench_case *c, int64_t times);    /* the optimiser alone */
void bench_net_teardown(void);

extern double bench_tasks; /* of a repetition of what ran last in cases_hybrid.c */
bool bench_row_setup(const struct bench_case *c);
double bench_row_eager_run(const struct bench_case *c, int64_t times);
double bench_row_hybrid_run(const struct bench_case *c, int64_t times);
double bench_row_gain_run(const struct bench_case *c, int64_t times); /* eager's time / hybrid's */
double bench_row_latency_run(const struct bench_case *c, int64_t times);
void bench_row_teardown(void);
bool bench_mlp5_setup(const struct bench_case *c);
bool bench_lenet_hybrid_setup(const struct bench_case *c);
enum sl_dtype bench_autocast(const struct bench_case *c);
double bench_whole_step_run(const struct bench_case *c, int64_t times);
void bench_whole_step_teardown(void);
bool bench_lenet_both_setup(const struct bench_case *c);
double bench_lenet_gain_run(const struct bench_case *c, int64_t times); /* eager's time / the whole step's */
extern double bench_eager_megabytes;
double bench_lenet_memory_run(const struct bench_case *c, int64_t times); /* planned / eager's peak */
void bench_lenet_both_teardown(void);
extern double bench_compiled_calls;
bool bench_resnet_setup(const struct bench_case *c);
bool bench_vgg_setup(const struct bench_case *c);
double bench_resnet_compile_run(const struct bench_case *c, int64_t times);

/* float32's time / bfloat16's */
bool bench_gemm_both_setup(const struct bench_case *c);
double bench_gemm_half_gain_run(const struct bench_case *c, int64_t times);
void bench_gemm_both_teardown(void);
double bench_half_gain_run(const struct bench_case *c, int64_t times);
double bench_gpt_half_gain_run(const struct bench_case *c, int64_t times);
double bench_eager_half_gain_run(const struct bench_case *c, int64_t times);
extern double bench_half_megabytes;
double bench_half_memory_run(const struct bench_case *c, int64_t times); /* planned / float32's */

bool bench_lstm_setup(const struct bench_case *c);
bool bench_attention_setup(const struct bench_case *c);
bool bench_causal_attention_setup(const struct bench_case *c);
double bench_sequence_run(const struct bench_case *c, int64_t times); /* forward and back */
void bench_sequence_teardown(void);

bool bench_wait_tiny_setup(const struct bench_case *c);
bool bench_wait_dot256_setup(const struct bench_case *c);
bool bench_wait_dot1024_setup(const struct bench_case *c);
double bench_wait_median_run(const struct bench_case *c, int64_t times); /* x + 1 and a wait */
double bench_wait_p99_run(const struct bench_case *c, int64_t times);
double bench_wait_dot_run(const struct bench_case *c, int64_t times);
void bench_wait_teardown(void);
double bench_idle_run(const struct bench_case *c, int64_t times); /* percent of a core */

bool bench_nanogpt_setup(const struct bench_case *c);
bool bench_gpt2_setup(const struct bench_case *c);
bool bench_gpt2_long_setup(const struct bench_case *c);
double bench_gpt_run(const struct bench_case *c, int64_t times); /* a training step */
void bench_gpt_teardown(void);
#define BENCH_ADAM_SIZE (16 << 20)
bool bench_adam_setup(const struct bench_case *c);
double bench_adam_run(const struct bench_case *c, int64_t times);
void bench_adam_teardown(void);
extern double bench_spill_megabytes;
double bench_spill_run(const struct bench_case *c, int64_t times);
bool bench_generate_setup(const struct bench_case *c);
double bench_generate_run(const struct bench_case *c, int64_t times); /* words one after the other */
void bench_generate_teardown(void);
bool bench_lengths_setup(const struct bench_case *c);
bool bench_lengths_step_setup(const struct bench_case *c);
double bench_lengths_run(const struct bench_case *c, int64_t times); /* the time without buckets / with them */
double bench_lengths_step_run(const struct bench_case *c, int64_t times);
void bench_lengths_teardown(void);

extern double bench_ahead_megabytes; /* of the training without waiting */
double bench_ahead_memory_run(const struct bench_case *c, int64_t times);
double bench_ahead_buffers_run(const struct bench_case *c, int64_t times);
double bench_ahead_time_run(const struct bench_case *c, int64_t times);

#endif
