/* Status codes, start and stop, devices, errors, statistics.
 *
 * A function that fails, in this header or another one, returns a status other than SL_OK, or NULL; or 0, false or NaN
 * if its documentation says so.  The first error of each thread and its message are kept (sl_error, sl_error_message)
 * until a function that waits for values reports it: sl_wait, sl_wait_all, sl_read, sl_write, sl_print, sl_explain.
 * NULL for a tensor, a block or another object counts as the result of an earlier mistake: the call returns NULL or the
 * status of that mistake, without a new message; if there was no mistake, it is SL_EINVAL.
 *
 * Besides the errors that its documentation names, any function may return SL_ENOMEM, and the first that needs the
 * engine those of sl_init.  A function whose documentation names neither an error nor NULL after one cannot fail.
 *
 * Times are in seconds, sizes in bytes, work in floating-point operations (flops), by default. */
#ifndef STARLING_BASE_H
#define STARLING_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <starling/version.h>

#pragma GCC system_header /* in all headers: compilers would warn about the options that a call leaves out */
#ifdef __cplusplus
#include <initializer_list>
extern "C" {
#endif

#if defined(__GNUC__)
#define SL_API __attribute__((visibility("default")))
#else
#define SL_API
#endif

/* An argument that may be NULL, for none or for a default: sl_tensor *SL_OPTIONAL bias.  The Python package reads it. */
#ifndef SL_OPTIONAL
#define SL_OPTIONAL
#endif

#ifdef __clang__ /* which warns about macros of system headers, too */
#pragma clang diagnostic ignored "-Wgnu-zero-variadic-macro-arguments" /* -Wpedantic: calls without options */
#pragma clang diagnostic ignored "-Wgnu-empty-initializer"
#pragma clang diagnostic ignored "-Wc99-extensions" /* in C++: compound literals */
#define SL_PARTLY_(...)                                                                                                \
	_Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wmissing-field-initializers\"")          \
	        __VA_ARGS__ _Pragma("clang diagnostic pop")
#else
#define SL_PARTLY_(...) __VA_ARGS__
#endif

/* ---- options ----------------------------------------------------------------------------------------------------- */

/* Options that a call omits have the defaults that SL_DEFAULTS_… lists for the structure; an option that it sets has
 * that value, including 0, or is refused.  A structure that a program fills itself, without a macro, has .as_written
 * false: a 0 in a listed field then means the default.  SL_OPTIONS(sl_adam_opts, .lr = 0.1, .beta1 = 0) makes one by
 * the rule of calls. */
#define SL_UNSET __builtin_nan("0x51e7") /* a double whose default depends on other values: see its comment */
#define SL_UNSET_INT (-2147483647 - 1)   /* the same for an integer */
#define SL_SET_(field, ...) .field = __VA_ARGS__,
#ifdef __cplusplus
#define SL_IS_(...) = __VA_ARGS__ /* in C++ the fields themselves have the defaults of the list */
#define SL_FILLED_(type) type()
#define SL_OPTIONS(type, ...) ((struct type){__VA_ARGS__})
#else
#define SL_IS_(...)
#define SL_FILLED_(type)                                                                                               \
	{                                                                                                              \
		SL_DEFAULTS_##type(SL_SET_).as_written = true                                                          \
	}
#define SL_OPTIONS(type, ...) ((struct type){SL_DEFAULTS_##type(SL_SET_).as_written = true, __VA_ARGS__})
/* The options of a call override defaults on purpose. */
#ifdef __clang__
#pragma clang diagnostic ignored "-Winitializer-overrides"
#else
#pragma GCC diagnostic ignored "-Woverride-init"
#endif
#endif

/* Every call that can fail takes the place of the call, so that a later error can name it.  Programs write
 * sl_add(a, b); the macro of that name passes SL_HERE to the function sl_add_at. */
#define SL_STRINGIFY_(x) #x
#define SL_STRINGIFY(x) SL_STRINGIFY_(x)
#define SL_HERE (__FILE__ ":" SL_STRINGIFY(__LINE__))

/* The first argument, an object, of a function that takes a path second: a call with these two swapped does not
 * compile, at any level of warnings. */
#ifdef __cplusplus
#define SL_NO_PATH_(object) object
#else
#define SL_NO_PATH_(object)                                                                                            \
	_Generic((object), char *: (void)"the path comes second", const char *: (void)"the path comes second",         \
	         default: (object))
#endif

/* An array written in place: sl_from(SL_ARRAY(float, 2, -3.4f), SL_SHAPE(2, 1)).  In C it lasts as long as the block
 * around it, in C++ until the end of the statement. */
#ifdef __cplusplus
#define SL_ARRAY(type, ...) (std::initializer_list<type>{__VA_ARGS__}.begin())
#else
#define SL_ARRAY(type, ...) ((type const[]){__VA_ARGS__})
#endif

/* X(symbol, text) for each status; SL_OK is 0. */
#define SL_STATUS_LIST(X)                                                                                              \
	X(SL_OK, "no error")                                                                                           \
	X(SL_EINVAL, "invalid argument")                                                                               \
	X(SL_ESHAPE, "shapes do not match")                                                                            \
	X(SL_EDTYPE, "data types do not match")                                                                        \
	X(SL_EDEVICE, "no such device, or devices do not match")                                                       \
	X(SL_ESTATE, "call not allowed now")                                                                           \
	X(SL_ENOMEM, "out of memory")                                                                                  \
	X(SL_EIO, "input/output error")                                                                                \
	X(SL_EFORMAT, "malformed file")                                                                                \
	X(SL_EKERNEL, "an operation failed while it ran")                                                              \
	X(SL_EUNSUPPORTED, "not supported")                                                                            \
	X(SL_ETIME, "deadline exceeded")                                                                               \
	X(SL_EINTERNAL, "error in Starling itself")

enum sl_status {
#define X(symbol, text) symbol,
	SL_STATUS_LIST(X)
#undef X
};

SL_API const char *sl_status_name(enum sl_status status);
SL_API enum sl_status sl_error(void);
SL_API const char *sl_error_message(void);
SL_API void sl_error_clear(void);
SL_API enum sl_status sl_error_raise_at(const char *at, enum sl_status status, const char *message);
#define sl_error_raise(status, message) sl_error_raise_at(SL_HERE, status, message)
SL_API const char *sl_version(void);

/* ---- devices ---------------------------------------------------------------------------------------------------- */

enum sl_device_kind { SL_DEVICE_DEFAULT, SL_DEVICE_AUTO, SL_DEVICE_CPU, SL_DEVICE_GPU };

/* Where an operation runs.  A zeroed device means "the default device". */
typedef struct sl_device {
	enum sl_device_kind kind;
	int index; /* of the team or the GPU, from 0; -1: any of that kind */
} sl_device;

#define SL_DEVICE_NAME_MAX 16

SL_API sl_device sl_auto(void);
SL_API sl_device sl_cpu(int index);
SL_API sl_device sl_gpu(int index);
SL_API int sl_device_count(enum sl_device_kind kind);
SL_API bool sl_device_equal(sl_device a, sl_device b);
SL_API const char *sl_device_name(sl_device device, char name[SL_DEVICE_NAME_MAX]);
SL_API int sl_device_parse_at(const char *at, const char *text, sl_device *devices, int max);
#define sl_device_parse(text, devices, max) sl_device_parse_at(SL_HERE, text, devices, max)
SL_API enum sl_status sl_device_default_at(const char *at, sl_device device);
#define sl_device_default(device) sl_device_default_at(SL_HERE, device)

/* ---- start and stop --------------------------------------------------------------------------------------------- */

/* The float32 products on GPUs that may round their factors to TF32, with 10 bits of mantissa: tensor cores multiply
 * these several times as fast, and sums stay float32.  Default: convolutions, not products of matrices, as in
 * PyTorch. */
enum sl_tf32 { SL_TF32_DEFAULT, SL_TF32_NONE, SL_TF32_CONV, SL_TF32_ALL };

/* Limits of memory and time for untrusted files (doc/files.md); 0: no limit.  Beyond .bytes, calls fail with SL_ENOMEM;
 * beyond the others, with SL_ETIME.  Messages name the file, or the node of its network, and the limit. */
struct sl_untrusted {
	size_t bytes;      /* main memory of the process, beyond its memory after sl_init */
	double seconds;    /* for reading a file, and for running or tracing its network by sl_forward; both wall-clock
	                    * time and the time of all processors together must exceed it */
	double operations; /* for reading a file, and for a run of its network: floating-point operations, and elements
	                    * that are read and written */
};

/* The settings of sl_init.  A program fills the structure itself, so a 0 means the default, as in any such structure
 * (SL_OPTIONS), also where the program wrote it: no GPUs are .gpus = -1, and tasks of one operation each .bulk = 1. */
struct sl_config {
	int teams;         /* CPU devices, including workers of slave processes; they share the cores evenly.  Default:
	            * STARPU_NCPU or 1, and the slaves */
	int gpus;          /* largest number of CUDA devices, -1 for none.  Default: all (STARPU_NCUDA) */
	const char *sched; /* StarPU policy.  Default: STARPU_SCHED, or lws, or dmdas with accelerators */
	int bulk; /* number of small operations that may share a task; 1: no sharing.  Default: SL_BULK or 32 */
	int runahead_tasks; /* largest number of tasks that are submitted and not finished.  Default: SL_RUNAHEAD_TASKS
	                       or 512 */
	size_t runahead_bytes; /* released memory on a device that tasks still use.  Default: SL_RUNAHEAD_BYTES or 8 MiB
	                        */
	uint64_t seed;         /* seed of random numbers; see sl_seed */
	bool explain;          /* record the data of sl_explain.  Default: SL_EXPLAIN, or false */
	const char *dist;      /* "tcp", "mpi" or "nccl": this process is one of several (dist.h); "none": it is alone.
	                    * Default: SL_DIST, or none */
	enum sl_tf32 tf32;     /* Default: SL_TF32 (none, conv or all), or SL_TF32_CONV */
	int cuda_graphs; /* whether compiled programs run on GPUs as CUDA graphs: 1, or -1.  Default: SL_CUDA_GRAPHS (1 or
	                        * 0), or 1 */
	struct sl_untrusted untrusted; /* limits.  Default: SL_UNTRUSTED_BYTES, SL_UNTRUSTED_SECONDS and
	                                * SL_UNTRUSTED_OPERATIONS, or none */
};

SL_API enum sl_status sl_init_at(const char *at, const struct sl_config *SL_OPTIONAL config);
#ifdef __cplusplus
extern "C++" inline enum sl_status sl_init_at(const char *at, const sl_config &config) /* sl_init({.teams = 2}) */
{
	return sl_init_at(at, &config);
}
#endif
#define sl_init(...) sl_init_at(SL_HERE, __VA_ARGS__) /* a config written in place has commas */
SL_API void sl_shutdown(void);
SL_API void sl_shutdown_at_exit(void);
SL_API bool sl_is_initialized(void);
SL_API void sl_seed(uint64_t seed);
/* The state of random numbers. */
struct sl_rng {
	uint64_t seed, stream;
};
SL_API struct sl_rng sl_rng_get(void);
SL_API void sl_rng_set(struct sl_rng rng);
SL_API enum sl_status sl_wait_all_at(const char *at);
#define sl_wait_all() sl_wait_all_at(SL_HERE)
SL_API double sl_time(void);
SL_API bool sl_is_simulated(void);
/* Not for programs: StarPU calls it by its name in slave processes (doc/parallel.md). */
SL_API void sl_slave_segment(void *buffers[], void *arg);
SL_API void sl_iteration_push(int64_t number);
SL_API void sl_iteration_pop(void);

/* ---- statistics ------------------------------------------------------------------------------------------------- */

#define SL_MAX_NODES 32

/* Statistics of the runtime since sl_init or sl_stats_reset. */
struct sl_stats {
	uint64_t ops;      /* operations called */
	uint64_t segments; /* StarPU tasks submitted for them */
	uint64_t finished; /* tasks that have ended */
	uint64_t faults;   /* operations that failed while running */
	uint64_t skipped;  /* operations skipped because an input had failed */
	uint64_t stalls;   /* number of times that submission waited for the run-ahead bound */
	double stall_seconds;
	uint64_t handles;        /* StarPU data handles in existence */
	uint64_t recycled;       /* number of times that a handle was reused instead of registered */
	uint64_t pending_tasks;  /* tasks submitted and not finished, now */
	uint64_t peak_tasks;     /* ... at the peak */
	size_t bytes;            /* memory of tensors and pools, now */
	size_t peak_bytes;       /* ... at the peak */
	size_t scratch_bytes;    /* working memory of all workers: intermediates and workspaces */
	uint64_t overflows;      /* steps of trainers that loss scaling skipped */
	uint64_t graphs;         /* CUDA graphs made of tasks of compiled programs */
	uint64_t graph_launches; /* tasks that were launched as a CUDA graph */
	uint64_t graph_changes;  /* calls in graphs that were recorded again, with other attributes or addresses */
	uint64_t graph_refusals; /* tasks that cannot become graphs, or whose graphs had to be made too often */
	uint64_t plans;          /* programs compiled */
	double loss_scale;       /* of the trainer that made the last step with loss scaling; 0: none did */
	uint64_t spill_written;  /* bytes to the spill file (sl_spill), since the engine started */
	uint64_t spill_read;     /* ... and from it */
	double spill_waited;     /* seconds that tasks and the program have waited for these values */
	int nodes;               /* memory nodes; 0 is main memory */
	size_t node_peak[SL_MAX_NODES];                  /* bytes, as StarPU allocated them */
	uint64_t link_bytes[SL_MAX_NODES][SL_MAX_NODES]; /* [from][to] */
};

SL_API void sl_stats_get(struct sl_stats *SL_OPTIONAL stats);
SL_API void sl_stats_reset(void);
SL_API void sl_stats_print(FILE *SL_OPTIONAL file);

/* Energy of the whole machine since sl_energy_start; NAN where it cannot be read. */
struct sl_energy {
	double seconds;   /* since sl_energy_start; 0: it was not called */
	double cpu;       /* joules of the processors' packages and memory, by RAPL */
	double gpu;       /* joules of the engine's GPUs, by NVML */
	char no_cpu[160]; /* why cpu cannot be read; empty: it can */
	char no_gpu[160];
};

SL_API enum sl_status sl_energy_start_at(const char *at);
#define sl_energy_start() sl_energy_start_at(SL_HERE)
SL_API void sl_energy_get(struct sl_energy *SL_OPTIONAL energy);

/* ---- time of each call ------------------------------------------------------------------------------------------ */

SL_API void sl_profile_start(void);
SL_API void sl_profile_stop(void);
SL_API void sl_profile_rates(double flops, double bytes);
SL_API void sl_profile_print(FILE *file);

#ifdef __cplusplus
}
#endif
#endif
