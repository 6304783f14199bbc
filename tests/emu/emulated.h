/* Emulated GPUs, test equipment: what tests and kernels see of them.  README.md explains how they work.
 *
 * X(name, variable, default): what the environment sets. */
#ifndef EMULATED_H
#define EMULATED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EMU_SETTINGS(X)                                                                                                \
	X(devices, "SL_EMU_DEVICES", 2)     /* how many */                                                             \
	X(memory, "SL_EMU_MEMORY", 512)     /* MiB of each */                                                          \
	X(async, "SL_EMU_ASYNC", 1)         /* 0: what is queued runs at once, in the thread that queues it */         \
	X(kernel_us, "SL_EMU_KERNEL_US", 0) /* sleep before each kernel ... */                                         \
	X(copy_us, "SL_EMU_COPY_US", 0)     /* ... copy and memset ... */                                              \
	X(jitter_us, "SL_EMU_JITTER_US", 0) /* ... and up to so much more before either; with async only */            \
	X(peer, "SL_EMU_PEER", 1)           /* whether devices reach one another's memory */                           \
	X(stats, "SL_EMU_STATS", 0)         /* print the counters at the end */                                        \
	X(kernels, "SL_EMU_KERNELS", 0)     /* print the kernels at the end */                                         \
	X(all_blocks, "SL_EMU_BLOCKS", 0)   /* launches have as many blocks as on a GPU */

enum { EMU_MAX_DEVICES = 8, EMU_HOST = EMU_MAX_DEVICES, EMU_PLACES };

/* ---- counters (count.c) ----------------------------------------------------------------------------------------- */

/* X(NAME, text): calls in which the host waits for a device.  PAGEABLE: an asynchronous copy from or to main memory
 * that is
 * not pinned. */
#define EMU_WAITS(X)                                                                                                   \
	X(STREAM, "cudaStreamSynchronize")                                                                             \
	X(DEVICE, "cudaDeviceSynchronize")                                                                             \
	X(EVENT, "cudaEventSynchronize")                                                                               \
	X(PLAIN_COPY, "cudaMemcpy")                                                                                    \
	X(PAGEABLE, "pageable copies")                                                                                 \
	X(FREE, "cudaFree")

enum emu_wait {
#define X(name, text) EMU_WAIT_##name,
	EMU_WAITS(X)
#undef X
	        EMU_WAIT_COUNT
};

struct emu_link {
	uint64_t copies, bytes;
};

/* Ways of cuDNN: engines of its graph API by their index, and behind them algorithms of its older interface; then those of
 * cublasLt. */
enum { EMU_ENGINES = 16, EMU_ALGORITHMS = 8, EMU_LT = EMU_ENGINES + 3 * EMU_ALGORITHMS, EMU_WAYS = EMU_LT + 8 };
#define EMU_ALGORITHM(pass, number) (EMU_ENGINES + (pass)*EMU_ALGORITHMS + (number))

struct emu_counts {
	uint64_t launches[EMU_MAX_DEVICES], sets[EMU_MAX_DEVICES]; /* kernels, memsets */
	uint64_t tf32[EMU_MAX_DEVICES];  /* of the kernels: float32 products of libraries that were told to use TF32 */
	uint64_t last[EMU_MAX_DEVICES];  /* of the kernels: convolutions with channels last */
	uint64_t half[EMU_MAX_DEVICES];  /* of the kernels: products of libraries in half types, on tensor cores */
	uint64_t fused[EMU_MAX_DEVICES]; /* of the kernels, or recorded: operation graphs of cuDNN */
	uint64_t compiled;               /* sources that NVRTC compiled */
	uint64_t ways[EMU_WAYS];         /* of the kernels, or recorded: what cuDNN was asked for, on any device */
	uint64_t allocations[EMU_MAX_DEVICES], refused[EMU_MAX_DEVICES]; /* refused: out of memory */
	size_t used[EMU_MAX_DEVICES], peak[EMU_MAX_DEVICES];             /* bytes */
	uint64_t waits[EMU_WAIT_COUNT];                                  /* of all threads, for any device */
	/* Graphs: instantiated, child nodes given other parameters, launched; kernels that these ran, not in
	 * launches. */
	uint64_t graphs[EMU_MAX_DEVICES], graph_changes[EMU_MAX_DEVICES], graph_launches[EMU_MAX_DEVICES],
	        graph_kernels[EMU_MAX_DEVICES];
	uint64_t graph_children[EMU_MAX_DEVICES];     /* in the graphs that were launched */
	struct emu_link link[EMU_PLACES][EMU_PLACES]; /* [from][to]: a device, or EMU_HOST */
};

void emu_count_way(int way);
void emu_count_compiled(void);
/* How long it takes: for tests; 0: as it was. */
void emu_way_takes(int way, double us);
double emu_way_us(int way, double otherwise);
/* Of cuDNN; 0: as it was. */
void emu_cudnn_version(size_t version);
/* Of all devices, from now on; it stays the caller's. */
void emu_name(const char *name);

void emu_count_tf32(int device);
void emu_count_half(int device);
void emu_count_last(int device);
void emu_count_fused(int device);
const char *emu_wait_name(enum emu_wait wait);
void emu_counts_get(struct emu_counts *counts);
/* Until nothing has been counted for a tenth of a second: what is sent ahead has arrived. */
void emu_counts_settle(void);
void emu_counts_reset(void); /* all but used */
/* Copies of exactly so many bytes since the last reset. */
uint64_t emu_copies(int from, int to, size_t bytes);

/* ---- kernels (kernels.c) ---------------------------------------------------------------------------------------- */

/* What threads access in a build with EMU_RACES; else zeros.  accessed: bytes of device memory, by all threads.  read, written:
 * sectors of 32 bytes of it, each once a block, in bytes: what goes through the second-level cache.  least: bytes that are read
 * before the launch writes them, and bytes that it writes, each once.  shared: bytes of shared memory, by all threads. */
struct emu_bytes {
	uint64_t accessed, read, written, least, shared;
};

/* A kernel, as its launch names it, and its launches; the bytes are of all of them.  alone: the largest least of a launch of at
 * most 256 threads; alone_shared: the largest `shared` of one. */
struct emu_kernel {
	const char *name;
	uint64_t launches, fewest; /* fewest: threads */
	uint64_t fewest_blocks, most_blocks;
	struct emu_bytes bytes;
	uint64_t alone, alone_shared;
};

void emu_kernels_each(void (*f)(const struct emu_kernel *k, void *arg), void *arg);
void emu_kernels_reset(void);
/* In descending order of the bytes that they move beyond the least. */
void emu_kernels_sort(void);
/* Bytes read and written over the least; 0: not counted. */
double emu_kernel_ratio(const struct emu_kernel *k);
/* A launch of so many blocks and threads has run in this thread. */
void emu_kernel_ran(const char *name, uint64_t blocks, uint64_t threads);
/* The most blocks of a launch that may have `most`. */
int64_t emu_blocks(int64_t most);

/* ---- failures (fail.c) ------------------------------------------------------------------------------------------ */

/* X(name, text in SL_EMU_FAIL, what it returns) */
#define EMU_FAILURES(X)                                                                                                \
	X(MALLOC, "malloc", cudaErrorMemoryAllocation)                                                                 \
	X(COPY, "copy", cudaErrorIllegalAddress)                                                                       \
	X(LAUNCH, "launch", cudaErrorLaunchOutOfResources)                                                             \
	X(CAPTURE, "capture", cudaErrorStreamCaptureUnsupported) /* a kernel while a stream is captured */             \
	X(UPDATE, "update", cudaErrorGraphExecUpdateFailure)     /* of an executable graph */                          \
	X(GRAPH, "graph", cudaErrorLaunchOutOfResources)         /* the launch of one */                               \
	X(PLAN, "plan", cudaErrorNotSupported)                   /* cuDNN: a plan of an operation graph */             \
	X(EXECUTE, "execute", cudaErrorLaunchOutOfResources)     /* cuDNN: the execution of one */                     \
	X(HALF, "half", cudaErrorNotSupported)                   /* cuDNN: proposals or a plan for a half type */      \
	X(LAST, "last", cudaErrorNotSupported)                   /* cuDNN: proposals with channels last */

enum emu_failure {
#define X(name, ...) EMU_##name,
	EMU_FAILURES(X)
#undef X
	        EMU_FAILURE_COUNT
};

/* The k-th such call from now on fails (1: the next); 0: none; -k: all from the k-th on.
 * SL_EMU_FAIL=malloc:3,launch:10 does it from outside. */
void emu_fail(enum emu_failure what, long k);

/* ---- launches (memory.c, stream.c) ------------------------------------------------------------------------------ */

/* Whether what is queued there now is captured. */
bool emu_is_captured(cudaStream_t stream);
/* Queues run(arg) as a kernel; drop(arg) is called when it has run, or at once if it is refused. */
cudaError_t emu_launch(cudaStream_t stream, void (*run)(void *), void *arg, void (*drop)(void *));
/* Events of streams see a clock that does not depend on the machine: a kernel takes 1 µs of it, and the one that the
 * calling thread launches next takes so many. */
void emu_takes(double us);
/* What a kernel on the current device finds at p, an argument of its own or within a structure.  Ends the program
 * if that is neither device memory nor pinned host memory. */
void *emu_argument(const void *p, const char *what);

/* ---- threads (device.c, races.cc) -------------------------------------------------------------------------------- */

/* In which the threads of a block, and the blocks of a launch, run: SL_EMU_ORDER. */
enum emu_order { EMU_FORWARD, EMU_BACKWARD, EMU_RANDOM };
enum emu_order emu_order(unsigned *seed);

/* A kernel begins to run in this thread. */
void emu_race_launch(const char *kernel);
/* What its threads have accessed since. */
struct emu_bytes emu_race_bytes(void);
/* What kernels call: they order accesses of blocks, which the search for races knows. */
unsigned emu_atomic_add(unsigned *p, unsigned value);
unsigned emu_atomic_exchange(unsigned *p, unsigned value);
void emu_thread_fence(void);

#ifdef __cplusplus
}
#endif
#endif
