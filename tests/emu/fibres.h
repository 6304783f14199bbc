/* Emulated GPUs: the threads of a block as fibres of one host thread, the stream's; emu.h includes this.
 *
 * A fibre runs thread after thread until one meets a barrier; then a further fibre takes the rest, so kernels without
 * barriers cost one fibre and no switch.  A warp goes on until all its threads wait for the block or have ended, then
 * the next warp does: only a barrier of the block holds one warp back for another, as on a GPU.
 *
 * In which order warps, and the threads of a warp, take turns is a setting (SL_EMU_ORDER).  What two threads do between
 * the same two barriers happens in either order, forward and backward: if the result differs, a barrier is missing. */
#ifndef EMU_FIBRES_H
#define EMU_FIBRES_H

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <ucontext.h>
#include <vector>

#include <vector_functions.h>

#include "emulated.h"

#if defined(__SANITIZE_ADDRESS__)
#define EMU_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EMU_ASAN 1
#endif
#endif
#ifdef EMU_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

inline thread_local uint3 threadIdx{}, blockIdx{}, blockDim{}, gridDim{};
enum { warpSize = 32 };

namespace emu
{

enum state { RUNS, AT_WARP, AT_BLOCK, ENDED };
enum { STACK = 64 << 10, MOST_THREADS = 1024 };

/* Where a thread waits, in the source, and for which lanes of its warp. */
struct place {
	const char *file;
	int line;
	unsigned lanes;
	bool operator!=(const place &other) const
	{
		return line != other.line || lanes != other.lanes || strcmp(file, other.file);
	}
};

struct fibre {
	ucontext_t context; /* only starts it */
	void *at[5];        /* where it goes on: of __builtin_setjmp, which makes no system call */
	state where = ENDED;
	place waits;
	unsigned thread, shuffles;
	std::unique_ptr<char[]> stack{new char[STACK]};
	void *fake = nullptr; /* AddressSanitizer's */
};

struct range {
	size_t begin, end;
};

struct block {
	const char *kernel = "";
	std::vector<std::unique_ptr<fibre>> fibres; /* the first `live` belong to the running block */
	std::vector<unsigned> threads;              /* in the order in which they begin, warp by warp */
	std::vector<range> warps;                   /* fibres of each, once all threads wait */
	size_t live = 0, next = 0, total = 0;
	size_t limit = 0; /* further threads that may begin now: those of the running warp */
	fibre *running = nullptr;
	ucontext_t start;
	void *back[5];
	void (*body)(void *) = nullptr; /* the kernel, for the thread in threadIdx */
	void *arg = nullptr;
	char *dynamic = nullptr;
	std::vector<char> dynamic_store;
	unsigned long long lanes[2][MOST_THREADS]; /* what shuffles exchange, by parity */
	unsigned barriers = 0;                     /* that this block has passed */
	unsigned random = 0;
	enum emu_order order = emu_order(&random);
	void *fake = nullptr;
	const void *bottom = nullptr;
	size_t size = 0;
};

/* AddressSanitizer would unpoison the whole stack before each switch, which takes it microseconds: it is told of
 * switches, and leaves these functions alone. */
#define EMU_PLAIN no_sanitize("address", "undefined")
/* What other fibres do to registers is not known from the code of these functions. */
#ifdef __clang__
#define EMU_SWITCH __attribute__((noinline, EMU_PLAIN))
#else
#define EMU_SWITCH __attribute__((noipa, EMU_PLAIN))
#endif

inline thread_local block *current; /* of the stream's thread, while a kernel runs */

/* Not inlined: GCC 12 miscompiles UBSan's checks of addresses of thread-local variables. */
EMU_SWITCH inline block &make_current()
{
	static thread_local std::unique_ptr<block> b{new block};
	current = b.get();
	return *b;
}

__attribute__((noreturn)) inline void refuse(const block &b, const char *what, const place &at)
{
	fprintf(stderr, "emulated GPU: %s: %s (%s:%d)\n", b.kernel, what, at.file, at.line);
	abort();
}

/* ---- switching -------------------------------------------------------------------------------------------------- */

#ifdef EMU_ASAN
inline void leave(void **fake, const void *bottom, size_t size)
{
	__sanitizer_start_switch_fiber(fake, bottom, size);
}
inline void arrive(void *fake, const void **bottom, size_t *size)
{
	__sanitizer_finish_switch_fiber(fake, bottom, size);
}
#else
inline void leave(void **, const void *, size_t)
{
}
inline void arrive(void *, const void **, size_t *)
{
}
#endif

EMU_SWITCH __attribute__((noreturn)) inline void go(void **to)
{
	__builtin_longjmp(to, 1);
}

inline void run_threads(block &b)
{
	while (b.next < b.limit) {
		unsigned t = b.threads[b.next++];
		threadIdx = make_uint3(t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y);
		b.running->thread = t;
		b.running->shuffles = 0;
		b.body(b.arg);
	}
}

/* Back to the block, until that goes on with this fibre. */
EMU_SWITCH inline void park(block &b, fibre *f, state where)
{
	f->where = where;
	if (!__builtin_setjmp(f->at)) {
		leave(&f->fake, b.bottom, b.size);
		go(b.back);
	}
	arrive(f->fake, &b.bottom, &b.size);
}

/* Called by the kernel at a barrier. */
__attribute__((noinline)) inline void wait(state where, place at)
{
	block &b = *current;
	fibre *f = b.running;
	uint3 thread = threadIdx;
	f->waits = at;
	b.limit = std::min(b.limit, b.next);
	while (b.limit < b.total && b.threads[b.limit] / warpSize == f->thread / warpSize) b.limit++;
	park(b, f, where);
	threadIdx = thread;
}

/* Runs threads of one block after the other. */
inline void fibre_main()
{
	block &b = *current;
	arrive(nullptr, &b.bottom, &b.size);
	for (;;) {
		run_threads(b);
		park(b, b.running, ENDED);
	}
}

/* Until it waits or has no more threads to run. */
EMU_SWITCH inline void resume(block &b, fibre *f, bool fresh)
{
	b.running = f;
	f->where = RUNS;
	if (!__builtin_setjmp(b.back)) {
		leave(&b.fake, f->stack.get(), STACK);
		if (fresh) swapcontext(&b.start, &f->context);
		else go(f->at);
	}
	arrive(b.fake, nullptr, nullptr);
}

/* Stacks begin at different lines of the cache. */
inline void make_fibre(block &b)
{
	b.fibres.emplace_back(new fibre);
	fibre *f = b.fibres.back().get();
	getcontext(&f->context);
	f->context.uc_stack.ss_sp = f->stack.get();
	f->context.uc_stack.ss_size = STACK - b.fibres.size() % 64 * 64;
	f->context.uc_link = nullptr;
	makecontext(&f->context, fibre_main, 0);
}

/* ---- orders ----------------------------------------------------------------------------------------------------- */

inline unsigned draw(block &b, size_t below)
{
	b.random = b.random * 1664525u + 1013904223u;
	return (unsigned)((uint64_t)b.random * below >> 32);
}

template <class T> void mix(block &b, T *list, size_t n)
{
	for (; n > 1; n--) std::swap(list[n - 1], list[draw(b, n)]);
}

/* Threads in the order in which they begin. */
inline void order_threads(block &b)
{
	std::vector<unsigned> &t = b.threads;
	if (t.size() == b.total && b.order != EMU_RANDOM) return;
	t.resize(b.total);
	std::iota(t.begin(), t.end(), 0u);
	if (b.order == EMU_BACKWARD) std::reverse(t.begin(), t.end());
	if (b.order != EMU_RANDOM) return;
	std::vector<unsigned> keys((b.total + warpSize - 1) / warpSize);
	for (unsigned &key : keys) key = draw(b, 1 << 16);
	mix(b, t.data(), t.size());
	std::stable_sort(t.begin(), t.end(), [&](unsigned u, unsigned v) {
		u /= warpSize, v /= warpSize;
		return keys[u] != keys[v] ? keys[u] < keys[v] : u < v;
	});
}

/* The block that is the i-th of n to run. */
struct block_order {
	size_t n, step, first;
	block_order(block &b, size_t count) : n(count), step(1), first(0)
	{
		if (b.order == EMU_BACKWARD) step = n - 1, first = n - 1;
		if (b.order != EMU_RANDOM) return;
		for (step = draw(b, n) + 1; std::gcd(step, n) != 1;) step++;
		first = draw(b, n);
	}
	size_t operator[](size_t i) const
	{
		return (first + i * step) % n;
	}
};

/* ---- blocks ----------------------------------------------------------------------------------------------------- */

/* All lanes that a shuffle or __syncwarp names are there. */
inline void check_warp(const block &b, range w)
{
	const fibre *first = nullptr;
	unsigned there = 0;
	for (size_t i = w.begin; i < w.end; i++) {
		const fibre *f = b.fibres[i].get();
		if (f->where != AT_WARP) continue;
		if (first && first->waits != f->waits) refuse(b, "lanes of a warp wait at several places", f->waits);
		first = f;
		there |= 1u << f->thread % warpSize;
	}
	if (first && there != first->waits.lanes)
		refuse(b, "not all lanes that the mask names are there", first->waits);
}

/* Goes on until all its threads wait for the block or have ended. */
inline void run_warp(block &b, range w)
{
	unsigned char turn[MOST_THREADS / warpSize];
	static_assert(sizeof turn >= warpSize, "");
	for (;;) {
		size_t n = 0;
		check_warp(b, w);
		for (size_t i = w.begin; i < w.end; i++)
			if (b.fibres[i]->where == AT_WARP) turn[n++] = (unsigned char)(i - w.begin);
		if (n == 0) return;
		if (b.order == EMU_RANDOM) mix(b, turn, n);
		for (size_t i = 0; i < n; i++) resume(b, b.fibres[w.begin + turn[i]].get(), false);
	}
}

/* The warp whose turn it is, from its beginning; warps that meet no barrier go with it. */
inline void begin_warp(block &b)
{
	size_t first = b.live;
	b.limit = b.total;
	do {
		bool fresh = b.live == b.fibres.size();
		if (fresh) make_fibre(b);
		resume(b, b.fibres[b.live++].get(), fresh);
	} while (b.next < b.limit);
	b.warps.push_back({first, b.live});
	run_warp(b, b.warps.back());
}

/* Whether the threads wait for one another: all of them, at the same place. */
inline bool meet(const block &b)
{
	const fibre *first = nullptr;
	size_t n = 0;
	for (size_t i = 0; i < b.live; i++) {
		const fibre *f = b.fibres[i].get();
		if (f->where != AT_BLOCK) continue;
		if (first && first->waits != f->waits) refuse(b, "threads of a block wait at several places", f->waits);
		first = f;
		n++;
	}
	if (first && n != b.total) refuse(b, "not all threads of the block reach a barrier", first->waits);
	return first;
}

inline void go_on(block &b, range w)
{
	for (size_t i = w.begin; i < w.end; i++) {
		size_t other = b.order == EMU_RANDOM ? i + draw(b, w.end - i) : i;
		std::swap(b.fibres[i], b.fibres[other]);
		resume(b, b.fibres[i].get(), false);
	}
	run_warp(b, w);
}

/* All threads of one block. */
inline void run_block(block &b)
{
	b.live = b.next = 0;
	b.barriers = 0;
	b.warps.clear();
	order_threads(b);
	while (b.next < b.total) begin_warp(b);
	while (meet(b)) {
		b.barriers++;
		if (b.order == EMU_RANDOM) mix(b, b.warps.data(), b.warps.size());
		for (range w : b.warps) go_on(b, w);
	}
}

} // namespace emu

#endif
