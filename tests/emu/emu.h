/* CUDA C++ as host C++: what .cu files get instead of nvcc's built-ins on emulated GPUs (codelets/common/gpu.cuh).
 *
 * The threads of a block are fibres of one host thread, the stream's (fibres.h); blocks run one after another.  Block
 * sizes, __syncthreads, shuffles and shared memory mean what they mean on a GPU.  Races within a launch show when the
 * order changes (SL_EMU_ORDER), or in a build that looks for them (races.cc). */
#ifndef EMU_H
#define EMU_H

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>

#include "emulated.h"
#include "fibres.h"

#undef __shared__
#define __shared__ static thread_local
#define SLP_DYN_SHARED(T, name) T *name = (T *)emu::current->dynamic
#define SLP_LAUNCH(kernel, grid, block, shmem, stream, ...)                                                            \
	emu::launch(#kernel, (grid), (block), (shmem), (cudaStream_t)(stream), kernel, __VA_ARGS__)

namespace emu
{

/* ---- launches --------------------------------------------------------------------------------------------------- */

/* A launch with its arguments by value, of the kernel's types, as a real one has them.  Little of it depends on the
 * types: there are a thousand kernels to compile. */
struct call {
	enum { MOST = 32 };
	void (*thread)(void *); /* calls the kernel for the thread in threadIdx */
	void (*kernel)();
	const char *name;
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
	b.kernel = c->name;
	b.body = c->thread;
	b.arg = p;
	b.dynamic_store.assign(c->shared + 16, (char)0xff);
	b.dynamic = (char *)(((uintptr_t)b.dynamic_store.data() + 15) & ~(uintptr_t)15);
	b.total = (size_t)c->size.x * c->size.y * c->size.z;
	gridDim = c->grid;
	blockDim = c->size;
	block_order order(b, (size_t)c->grid.x * c->grid.y * c->grid.z);
	emu_race_launch(c->name);
	for (size_t i = 0; i < order.n; i++) {
		size_t at = order[i];
		blockIdx = make_uint3((unsigned)(at % c->grid.x), (unsigned)(at / c->grid.x % c->grid.y),
		                      (unsigned)(at / c->grid.x / c->grid.y));
		run_block(b);
	}
	b.running = nullptr;
	emu_kernel_ran(c->name, order.n, order.n * b.total);
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

/* What a GPU takes; of threads, what the registers are known to do for. */
inline bool fits(dim3 grid, dim3 size, size_t shared)
{
	size_t threads = (size_t)size.x * size.y * size.z;
	return grid.x && grid.y && grid.z && threads && threads <= SLP_MOST_THREADS && size.z <= 64 &&
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
	c->name = name;
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
template <class T> T shuffle(T value, unsigned source, unsigned width, place at)
{
	static_assert(sizeof(T) <= 8, "shuffles are of at most 8 bytes");
	block &b = *current;
	unsigned me = thread_in_block(), lane = me % warpSize, parity = b.running->shuffles++ & 1;
	memcpy(&b.lanes[parity][me], &value, sizeof value);
	wait(AT_WARP, at);
	if (source / width == lane / width) memcpy(&value, &b.lanes[parity][me - lane + source], sizeof value);
	return value;
}

} // namespace emu

/* As inaccurate as a GPU's may be: a unit in the last place too small, except where every pow is exact. */
namespace emu
{
template <class T> T pow(T x, T y)
{
	T v = std::pow(x, y);
	return x == 1 || y == 0 || v == 0 || !std::isfinite(v) ? v : std::nextafter(v, (T)0);
}
} // namespace emu
#define SLP_LIBRARY_POW emu::pow

#define EMU_PLACE const char *file = __builtin_FILE(), int line = __builtin_LINE()
inline void __syncthreads(EMU_PLACE)
{
	emu::wait(emu::AT_BLOCK, {file, line, ~0u});
}
/* Blocks run one after the other. */
inline void __threadfence()
{
	emu_thread_fence();
}
inline unsigned atomicAdd(unsigned *p, unsigned value)
{
	return emu_atomic_add(p, value);
}
inline unsigned atomicExch(unsigned *p, unsigned value)
{
	return emu_atomic_exchange(p, value);
}
inline void __syncwarp(unsigned mask = ~0u, EMU_PLACE)
{
	emu::wait(emu::AT_WARP, {file, line, mask});
}
template <class T> T __shfl_sync(unsigned mask, T value, int source, int width = 32, EMU_PLACE)
{
	unsigned lane = emu::thread_in_block() % warpSize;
	return emu::shuffle(value, lane / width * width + source % width, width, {file, line, mask});
}
template <class T> T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = 32, EMU_PLACE)
{
	return emu::shuffle(value, emu::thread_in_block() % warpSize + distance, width, {file, line, mask});
}
template <class T> T __shfl_up_sync(unsigned mask, T value, unsigned distance, int width = 32, EMU_PLACE)
{
	return emu::shuffle(value, emu::thread_in_block() % warpSize - distance, width, {file, line, mask});
}
template <class T> T __shfl_xor_sync(unsigned mask, T value, int other, int width = 32, EMU_PLACE)
{
	return emu::shuffle(value, emu::thread_in_block() % warpSize ^ other, width, {file, line, mask});
}
#undef EMU_PLACE

#endif
