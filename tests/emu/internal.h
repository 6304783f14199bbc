/* The emulated CUDA run time from the inside. */
#ifndef EMU_INTERNAL_H
#define EMU_INTERNAL_H

#include <pthread.h>

#include "emulated.h"

/* A piece of a device's memory; they lie side by side. */
struct emu_block {
	size_t offset, size;
	bool used;
	struct emu_block *next;
};

/* Its memory is mapped twice: what cudaMalloc gives out cannot be accessed, copies and kernels use the alias. */
struct emu_device {
	int id;
	char *base, *alias;
	size_t size, used;
	size_t span; /* of its addresses: memory does not fail for gaps, as on a GPU, which has pages */
	struct emu_block *blocks;
	pthread_mutex_t lock;        /* of the blocks */
	struct CUstream_st *null;    /* the NULL stream; made at first use */
	struct CUstream_st *streams; /* all of them */
};

struct emu_settings {
#define X(name, ...) int name;
	EMU_SETTINGS(X)
#undef X
};

/* device.c */
extern struct emu_settings emu_settings;
extern struct emu_device emu_devices[EMU_MAX_DEVICES];
bool emu_start(void);                  /* at first use; false: no devices */
int emu_current(void);                 /* the calling thread's device */
void emu_set_current(int device);      /* of a stream's thread */
cudaError_t emu_result(cudaError_t e); /* remembers an error for cudaGetLastError */
/* What real CUDA might let pass or report late: says so and ends the program. */
void emu_misuse(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* memory.c */
void emu_memory_init(struct emu_device *device);
struct emu_device *emu_device_of(const void *p); /* NULL: not device memory */
bool emu_is_pinned(const void *p);
/* The alias of [p, p + bytes); ends the program if it is not within one allocation. */
char *emu_alias(struct emu_device *device, const void *p, size_t bytes, const char *what);

/* stream.c */
enum emu_kind { EMU_RUN, EMU_SET, EMU_MOVE, EMU_MARK, EMU_WAIT };
struct emu_mark;
struct emu_work {
	struct emu_work *next;
	enum emu_kind kind;
	void (*run)(void *), *arg, (*drop)(void *);
	char *to;
	const char *from;
	size_t to_pitch, from_pitch, to_slice, from_slice, width, height, depth;
	int value;
	double us;          /* of EMU_RUN: how long it seems to take */
	int source, target; /* of a move: devices, or EMU_HOST; of a set: target */
	struct emu_mark *mark;
};
struct emu_work *emu_work_new(enum emu_kind kind);
struct CUstream_st *emu_stream_of(cudaStream_t handle);
/* An error, of which work->drop has been called, only while the stream is captured. */
cudaError_t emu_submit(struct CUstream_st *stream, struct emu_work *work);
void emu_drain(struct CUstream_st *stream);
void emu_drain_device(struct emu_device *device);

/* graph.c, and of a stream (stream.c): what is captured. */
struct emu_capture {
	struct CUgraph_st *graph; /* NULL: the stream is not captured */
	bool lost;
};
struct emu_capture *emu_capture_of(cudaStream_t stream);
bool emu_captures_here(void); /* the calling thread captures a stream */
/* A call that is not allowed while the calling thread captures: then the capture is lost. */
bool emu_is_forbidden(void);
#define EMU_NOT_CAPTURED                                                                                               \
	if (emu_is_forbidden()) return emu_result(cudaErrorStreamCaptureUnsupported)
void emu_note_pointer(const void *p); /* an argument of the kernel that is launched next */
cudaError_t emu_record(struct emu_capture *capture, struct emu_work *work);

/* count.c */
enum emu_graph { EMU_GRAPH_MADE, EMU_GRAPH_CHANGED, EMU_GRAPH_LAUNCHED, EMU_GRAPH_KERNELS, EMU_GRAPH_CHILDREN };
void emu_count_graph(int device, enum emu_graph what, uint64_t n);
void emu_count_launch(int device);
void emu_count_set(int device);
void emu_count_wait(enum emu_wait wait);
void emu_count_copy(int from, int to, size_t bytes);
void emu_count_memory(int device, size_t used, bool refused);
void emu_counts_print(void);
void emu_kernels_print(void);

/* fail.c */
void emu_fail_init(void);
bool emu_fails(enum emu_failure what, cudaError_t *error);

/* A compiled kernel begins to run in this thread, with this variable among its shared memory (races.cc). */
void emu_race_shared(const void *variable);

#endif
