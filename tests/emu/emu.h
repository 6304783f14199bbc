/* CUDA C++ as host C++: what .cu files get instead of nvcc's built-ins on emulated GPUs (codelets/common/gpu.cuh).
 *
 * The threads of a block are fibres of one host thread, the stream's; blocks run one after another.  A fibre runs
 * thread after thread until one meets a barrier; then a further fibre takes the rest.  So kernels without barriers
 * cost one fibre and no switch.  Block sizes, __syncthreads, shuffles and shared memory mean what they mean on a GPU;
 * races within a launch are not found. */
#ifndef EMU_H
#define EMU_H

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <type_traits>
#include <ucontext.h>
#include <utility>
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

#undef __shared__
#define __shared__ static thread_local
#define SLP_DYN_SHARED(T, name) T *name = (T *)emu::current->dynamic
#define SLP_LAUNCH(kernel, grid, block, shmem, stream, ...)                                                            \
	emu::launch(#kernel, (grid), (block), (shmem), (cudaStream_t)(stream), kernel, __VA_ARGS__)

inline thread_local uint3 threadIdx{}, blockIdx{}, blockDim{}, gridDim{};
enum { warpSize = 32 };

namespace emu
{

/* ---- fibres ----------------------------------------------------------------------------------------------------- */

enum state { RUNS, AT_WARP, AT_BLOCK, ENDED };
enum { STACK = 64 << 10, MOST_THREADS = 1024 };

struct fibre {
	ucontext_t context; /* only starts it */
	void *at[5];        /* where it goes on: of __builtin_setjmp, which makes no system call */
	state where = ENDED;
	unsigned shuffles;
	std::unique_ptr<char[]> stack{new char[STACK]};
	void *fake = nullptr; /* AddressSanitizer's */
};

struct block {
	std::vector<std::unique_ptr<fibre>> fibres; /* the first `live` belong to the running block */
	size_t live = 0, next = 0, total = 0;
	fibre *running = nullptr;
	ucontext_t start;
	void *back[5];
	void (*body)(void *) = nullptr; /* the kernel, for the thread in threadIdx */
	void *arg = nullptr;
	char *dynamic = nullptr;
	std::vector<char> dynamic_store;
	unsigned long long lanes[2][MOST_THREADS]; /* what shuffles exchange, by parity */
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
	static thread_local block b;
	current = &b;
	return b;
}

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
	while (b.next < b.total) {
		unsigned t = (unsigned)b.next++;
		threadIdx = make_uint3(t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y);
		b.running->shuffles = 0;
		b.body(b.arg);
	}
}

/* Back to run_block, until that goes on with this fibre. */
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
__attribute__((noinline)) inline void wait(state where)
{
	block &b = *current;
	fibre *f = b.running;
	uint3 thread = threadIdx;
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

/* All threads of one block.  When everyone waits or has ended, those that wait for their warp go on first. */
inline void run_block(block &b)
{
	b.live = b.next = 0;
	while (b.next < b.total) {
		bool fresh = b.live == b.fibres.size();
		if (fresh) make_fibre(b);
		resume(b, b.fibres[b.live++].get(), fresh);
	}
	for (;;) {
		state first = ENDED;
		for (size_t i = 0; i < b.live; i++)
			if (b.fibres[i]->where < first) first = b.fibres[i]->where;
		if (first == ENDED) break;
		for (size_t i = 0; i < b.live; i++)
			if (b.fibres[i]->where == first) resume(b, b.fibres[i].get(), false);
	}
}

/* ---- launches --------------------------------------------------------------------------------------------------- */

/* A launch with its arguments by value, of the kernel's types, as a real one has them.  Little of it depends on the
 * types: there are a thousand kernels to compile. */
struct call {
	enum { MOST = 32 };
	void (*thread)(void *); /* calls the kernel for the thread in threadIdx */
	void (*kernel)();
	uint3 grid, size;
	size_t shared;
	size_t at[MOST], count = 0, used = 0; /* where arguments stand */
	alignas(16) char values[4096];        /* as much as a GPU takes */

	void add(const void *value, size_t bytes, size_t alignment)
	{
		used = (used + alignment - 1) / alignment * alignment;
		if (count == MOST || used + bytes > sizeof values) {
			fprintf(stderr, "emulated GPU: too many arguments of a kernel\n");
			abort();
		}
		memcpy(values + used, value, bytes);
		at[count++] = used;
		used += bytes;
	}
};

template <class... P> struct kernel_of {
	template <size_t... I> static void apply(call *c, std::index_sequence<I...>)
	{
		((void (*)(P...))c->kernel)(*(P *)(c->values + c->at[I])...);
	}
	static void thread(void *p)
	{
		apply((call *)p, std::index_sequence_for<P...>{});
	}
};

inline void run(void *p)
{
	call *c = (call *)p;
	block &b = make_current();
	b.body = c->thread;
	b.arg = p;
	b.dynamic_store.assign(c->shared + 16, (char)0xff);
	b.dynamic = (char *)(((uintptr_t)b.dynamic_store.data() + 15) & ~(uintptr_t)15);
	b.total = (size_t)c->size.x * c->size.y * c->size.z;
	gridDim = c->grid;
	blockDim = c->size;
	for (unsigned i = 0; i < c->grid.x * c->grid.y * c->grid.z; i++) {
		blockIdx = make_uint3(i % c->grid.x, i / c->grid.x % c->grid.y, i / c->grid.x / c->grid.y);
		run_block(b);
	}
}

inline void drop(void *p)
{
	delete (call *)p;
}

/* A structure that is passed by value and has pointers in it lists them; a kernel that follows one that is not listed
 * ends the program:
 *     template <class F> void emu_pointers(F f) { f(a); f(b); } */
struct any_pointer {
	template <class T> void operator()(T &) const
	{
	}
};
template <class T, class = void> struct lists_pointers : std::false_type {
};
template <class T> struct lists_pointers<T, std::void_t<decltype(std::declval<T &>().emu_pointers(any_pointer{}))>>
    : std::true_type {
};

/* Pointers are checked and become what kernels can follow. */
template <class T> void translate(T &value, const char *kernel)
{
	if constexpr (std::is_pointer_v<T>) value = (T)emu_argument((const void *)value, kernel);
	else if constexpr (lists_pointers<T>::value) value.emu_pointers([&](auto &p) { translate(p, kernel); });
}

inline bool fits(dim3 grid, dim3 size, size_t shared)
{
	size_t threads = (size_t)size.x * size.y * size.z;
	return grid.x && grid.y && grid.z && threads && threads <= MOST_THREADS && size.z <= 64 &&
	       grid.x <= 0x7fffffff && grid.y <= 65535 && grid.z <= 65535 && shared <= 48 << 10;
}

template <class P> void add_argument(call *c, P value, const char *kernel)
{
	static_assert(std::is_trivially_copyable_v<P>, "arguments of kernels are copied as bytes");
	translate(value, kernel);
	c->add(&value, sizeof value, alignof(P));
}

inline call *new_call(const char *name, dim3 grid, dim3 size, size_t shared)
{
	if (!fits(grid, size, shared)) {
		fprintf(stderr, "emulated GPU: %s: invalid launch configuration\n", name);
		abort();
	}
	call *c = new call;
	c->grid = make_uint3(grid.x, grid.y, grid.z), c->size = make_uint3(size.x, size.y, size.z);
	c->shared = shared;
	return c;
}

template <class... P, class... A>
void launch(const char *name, dim3 grid, dim3 size, size_t shared, cudaStream_t stream, void (*kernel)(P...), A... args)
{
	static_assert(sizeof...(P) == sizeof...(A), "number of kernel arguments");
	call *c = new_call(name, grid, size, shared);
	c->thread = kernel_of<P...>::thread, c->kernel = (void (*)())kernel;
	(add_argument<P>(c, args, name), ...);
	emu_launch(stream, run, c, drop);
}

/* ---- warps ------------------------------------------------------------------------------------------------------ */

inline unsigned thread_in_block()
{
	return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

/* What lane `source` of the calling thread's warp has; its own where that is outside its group of `width`. */
template <class T> T shuffle(T value, unsigned source, unsigned width)
{
	static_assert(sizeof(T) <= 8, "shuffles are of at most 8 bytes");
	block &b = *current;
	unsigned me = thread_in_block(), lane = me % warpSize, parity = b.running->shuffles++ & 1;
	memcpy(&b.lanes[parity][me], &value, sizeof value);
	wait(AT_WARP);
	if (source / width == lane / width) memcpy(&value, &b.lanes[parity][me - lane + source], sizeof value);
	return value;
}

} // namespace emu

inline void __syncthreads()
{
	emu::wait(emu::AT_BLOCK);
}
inline void __syncwarp(unsigned = ~0u)
{
	emu::wait(emu::AT_WARP);
}
template <class T> T __shfl_sync(unsigned, T value, int source, int width = 32)
{
	unsigned lane = emu::thread_in_block() % warpSize;
	return emu::shuffle(value, lane / width * width + source % width, width);
}
template <class T> T __shfl_down_sync(unsigned, T value, unsigned distance, int width = 32)
{
	return emu::shuffle(value, emu::thread_in_block() % warpSize + distance, width);
}
template <class T> T __shfl_up_sync(unsigned, T value, unsigned distance, int width = 32)
{
	return emu::shuffle(value, emu::thread_in_block() % warpSize - distance, width);
}
template <class T> T __shfl_xor_sync(unsigned, T value, int mask, int width = 32)
{
	return emu::shuffle(value, emu::thread_in_block() % warpSize ^ mask, width);
}

#endif
