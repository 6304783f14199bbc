/* Times a kernel's alternatives on the GPU, on the kernel's own operands, in plain runs. */
#ifndef SLP_TUNE_CUH
#define SLP_TUNE_CUH

#include "op.h"
#include "gpu.cuh"
#include "tune.h"

#ifdef SLP_EMULATE
enum { SLP_TUNE_ROUNDS = 1, SLP_TUNE_CALLS = 1 }; /* its clock is exact */
#else
enum { SLP_TUNE_ROUNDS = 4, SLP_TUNE_CALLS = 3 };
#endif

/* Keeps the stream busy while the host queues the timed work, so that the host's time is not part of it. */
__global__ static void slp_hold(long long clocks)
{
#ifdef SLP_EMULATE
	(void)clocks;
#else
	for (long long begin = clock64(); clock64() - begin < clocks;) continue;
#endif
}

struct slp_stopwatch {
	cudaEvent_t at[2];
	bool ready;

	slp_stopwatch() : at(), ready(true)
	{
		for (cudaEvent_t &e : at)
			ready = ready && cudaEventCreateWithFlags(&e, cudaEventDefault) == cudaSuccess;
	}
	~slp_stopwatch()
	{
		for (cudaEvent_t e : at)
			if (e) cudaEventDestroy(e);
	}
	bool mark(int i, void *stream)
	{
		return cudaEventRecord(at[i], (cudaStream_t)stream) == cudaSuccess;
	}
	/* µs between the two events; negative: unknown. */
	double elapsed()
	{
		float ms = 0;
		bool ok = cudaEventSynchronize(at[1]) == cudaSuccess &&
		          cudaEventElapsedTime(&ms, at[0], at[1]) == cudaSuccess;
		return ok ? 1000.0 * ms : -1;
	}
};

/* µs of the work that `run` queues on the kernel's stream, the least of a few rounds; negative: it fails. Work that is
 * much slower than `best` is given up early. Repeated runs must give the same result. */
template <class F> static double slp_time_of(const struct slp_kernel *k, double best, F run)
{
	const long long clocks = 200000; /* a tenth of a millisecond */
	struct slp_stopwatch watch;
	double least = -1;
	/* The first run loads code. */
	bool ok = watch.ready && run() == SL_OK && watch.mark(0, k->stream) && watch.mark(1, k->stream) &&
	          watch.elapsed() >= 0;
	for (int i = 0; ok && i < SLP_TUNE_ROUNDS && (i == 0 || best < 0 || least < 1.5 * best); i++) {
		SLP_LAUNCH(slp_hold, 1, 1, 0, k->stream, clocks);
		ok = watch.mark(0, k->stream);
		for (int j = 0; ok && j < SLP_TUNE_CALLS; j++) ok = run() == SL_OK;
		ok = ok && watch.mark(1, k->stream);
		double us = ok ? watch.elapsed() / SLP_TUNE_CALLS : -1;
		ok = us >= 0;
		if (least < 0 || us < least) least = us;
	}
	cudaGetLastError(); /* drops the errors of alternatives that failed */
	return ok ? least : -1;
}

/* Whether k runs directly, not while a CUDA graph is recorded. */
static inline bool slp_is_plain_run(const struct slp_kernel *k)
{
	enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
	return cudaStreamIsCapturing((cudaStream_t)k->stream, &status) == cudaSuccess &&
	       status == cudaStreamCaptureStatusNone;
}

#endif
