/* Emulated GPUs: accesses of threads that no barrier orders.
 *
 * In a build of `make EMU_RACES=1` kernels are compiled as for ThreadSanitizer, but what the compiler calls before each
 * access is here: for each byte of a device's memory, and of a block's shared memory, it notes who wrote it and who
 * read it last in this launch.  If one of them writes, two threads of a block conflict unless a barrier of the block
 * lies between them, threads of two blocks unless one has counted up what the other one counts up later, after all its
 * threads had called __threadfence.  A shuffle orders nothing.  Shared memory that its block has not
 * written must not be read.  The program ends at the first conflict. */
#include "emulated.h"

#ifndef EMU_RACES
extern "C" void emu_race_launch(const char *)
{
}
extern "C" struct emu_bytes emu_race_bytes(void)
{
	return {};
}
extern "C" void emu_race_shared(const void *)
{
}
extern "C" void emu_thread_fence(void)
{
}
extern "C" unsigned emu_atomic_add(unsigned *p, unsigned value)
{
	unsigned before = *p;
	*p += value;
	return before;
}
extern "C" unsigned emu_atomic_exchange(unsigned *p, unsigned value)
{
	unsigned before = *p;
	*p = value;
	return before;
}
#else

#include <atomic>
#include <map>
#include <execinfo.h>
#include <link.h>
#include <sys/mman.h>

#include "fibres.h"
extern "C" {
#include "internal.h"
}

namespace
{

enum : unsigned { NOBODY = ~0u };

/* A thread of the launch, and how many barriers its block had passed. */
struct visit {
	unsigned who, at;
};

/* What is known of a byte.  far: a reader of another block than the last one. */
struct cell {
	unsigned launch, block;
	visit writer, reader, other_reader;
	unsigned far;
};

/* Of 32 bytes, as memory moves them: the launch and the block that read and wrote it last. */
enum { SECTOR = 32 };
struct sector {
	unsigned read_launch, read_block, write_launch, write_block;
};

struct region {
	const char *begin;
	size_t size;
	cell *cells;
	sector *sectors; /* of device memory */
};

thread_local unsigned launch;
thread_local bool watched;
thread_local emu_bytes bytes; /* of the launch */
/* The thread's thread-local variables, which shared memory is among: the program's, and those of a library with a compiled
 * kernel. */
thread_local region shared, of_library;
region devices[EMU_MAX_DEVICES];

template <class T> T *array_of(size_t n)
{
	void *p = mmap(NULL, n * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED) emu_misuse("no memory to look for races");
	return (T *)p;
}

int find_shared(struct dl_phdr_info *info, size_t, void *)
{
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_TLS)
			shared = {(const char *)info->dlpi_tls_data, info->dlpi_phdr[i].p_memsz,
			          array_of<cell>(info->dlpi_phdr[i].p_memsz), NULL};
	return 1; /* the program itself is the first */
}

/* The thread-local variables that p is one of, in any library. */
int find_library(struct dl_phdr_info *info, size_t, void *p)
{
	const char *begin = (const char *)info->dlpi_tls_data;
	for (int i = 0; begin && i < info->dlpi_phnum; i++) {
		size_t size = info->dlpi_phdr[i].p_memsz;
		if (info->dlpi_phdr[i].p_type != PT_TLS || (size_t)((const char *)p - begin) >= size) continue;
		of_library = {begin, size, array_of<cell>(size), NULL};
		return 1;
	}
	return 0;
}

void find_devices(void)
{
	for (int i = 0; i < emu_settings.devices; i++)
		devices[i] = {emu_devices[i].alias, emu_devices[i].span, array_of<cell>(emu_devices[i].span),
		              array_of<sector>(emu_devices[i].span / SECTOR + 1)};
}

cell *cell_of(const region &r, const char *p)
{
	size_t at = (size_t)(p - r.begin);
	return at < r.size ? r.cells + at : NULL;
}

/* What the emulation keeps for the running thread. */
bool is_built_in(const char *p)
{
	const void *const all[] = {&threadIdx, &blockIdx, &blockDim, &gridDim};
	for (const void *v : all)
		if (p >= (const char *)v && p < (const char *)v + sizeof threadIdx) return true;
	return (size_t)(p - (const char *)&emu::current) < sizeof emu::current;
}

/* other NOBODY: nobody has written it. */
void report(const char *p, bool write, visit me, unsigned other, bool wrote)
{
	void *stack[32];
	fprintf(stderr, "emulated GPU: race in %s: thread %u of block %u %s %p, ", emu::current->kernel,
	        me.who % emu::MOST_THREADS, me.who / emu::MOST_THREADS, write ? "writes" : "reads", (const void *)p);
	if (other == NOBODY) fprintf(stderr, "which the block has not written\n");
	else
		fprintf(stderr, "which thread %u of block %u %s; no barrier between\n", other % emu::MOST_THREADS,
		        other / emu::MOST_THREADS, wrote ? "wrote" : "read");
	backtrace_symbols_fd(stack, backtrace(stack, 32), 2);
	abort();
}

/* Blocks that have counted up a counter, by their number: when, and who; those that the running block comes after. */
typedef std::map<unsigned, visit> arrivals;
thread_local std::map<const unsigned *, arrivals> counted;
thread_local arrivals seen;
thread_local unsigned running, fences; /* the block that runs, and how many of its threads have called __threadfence */

unsigned block_now(void)
{
	return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
}

/* Another block than the one before begins. */
void turn_to(unsigned block)
{
	if (block == running) return;
	running = block;
	fences = 0;
	seen.clear();
}

bool comes_after(visit other)
{
	auto a = seen.find(other.who / emu::MOST_THREADS);
	return a != seen.end() && (other.at < a->second.at || other.who == a->second.who);
}

bool conflicts(visit me, visit other)
{
	if (other.who == NOBODY || other.who == me.who) return false;
	if (other.who / emu::MOST_THREADS != me.who / emu::MOST_THREADS) return !comes_after(other);
	return other.at == me.at;
}

void note_reader(cell *c, visit me)
{
	if (c->reader.who != me.who) {
		if (c->reader.who != NOBODY && c->reader.who / emu::MOST_THREADS != me.who / emu::MOST_THREADS)
			c->far = c->reader.who;
		c->other_reader = c->reader;
	}
	c->reader = me;
}

void look(cell *c, const char *p, bool write, bool of_block, visit me)
{
	unsigned block = me.who / emu::MOST_THREADS;
	if (c->launch != launch || (of_block && c->block != block))
		*c = {launch, block, {NOBODY, 0}, {NOBODY, 0}, {NOBODY, 0}, NOBODY};
	if (conflicts(me, c->writer)) report(p, write, me, c->writer.who, true);
	if (!write && of_block && c->writer.who == NOBODY) report(p, write, me, NOBODY, true);
	if (!write) return note_reader(c, me);
	if (conflicts(me, c->reader)) report(p, write, me, c->reader.who, false);
	if (conflicts(me, c->other_reader)) report(p, write, me, c->other_reader.who, false);
	if (c->far != NOBODY && !seen.count(c->far / emu::MOST_THREADS)) report(p, write, me, c->far, false);
	c->writer = me;
}

/* Whether a block accesses a sector for the first time in this launch: blocks run one after the other. */
bool is_new(unsigned *at_launch, unsigned *at_block, unsigned block)
{
	bool is = *at_launch != launch || *at_block != block;
	*at_launch = launch;
	*at_block = block;
	return is;
}

/* n bytes at p of device memory, c their cells as they were before. */
void count_bytes(const region &r, const char *p, size_t n, bool write, const cell *c, unsigned block)
{
	size_t at = (size_t)(p - r.begin);
	for (size_t i = at / SECTOR; i <= (at + n - 1) / SECTOR; i++) {
		sector *s = r.sectors + i;
		if (write) bytes.written += SECTOR * is_new(&s->write_launch, &s->write_block, block);
		else bytes.read += SECTOR * is_new(&s->read_launch, &s->read_block, block);
	}
	bytes.accessed += n;
	for (size_t i = 0; i < n; i++) bytes.least += c[i].launch != launch || (write && c[i].writer.who == NOBODY);
}

void visit_bytes(const void *address, size_t n, bool write)
{
	const emu::block *b = emu::current;
	if (!b || !b->running || !watched) return;
	unsigned block = block_now();
	turn_to(block);
	visit me = {block * emu::MOST_THREADS + b->running->thread, b->barriers};
	const char *p = (const char *)address;
	cell *c = cell_of(shared, p);
	if (!c) c = cell_of(of_library, p);
	bool of_block = c;
	if (c && is_built_in(p)) return;
	for (int i = 0; !c && i < emu_settings.devices; i++)
		if ((c = cell_of(devices[i], p))) count_bytes(devices[i], p, n, write, c, block);
	if (of_block || (size_t)(p - b->dynamic_store.data()) < b->dynamic_store.size()) bytes.shared += n;
	for (size_t i = 0; c && i < n; i++) look(c + i, p + i, write, of_block, me);
}

} // namespace

/* All that write write the same. */
static bool is_harmless(const char *kernel)
{
	return !strncmp(kernel, "look_kernel", strlen("look_kernel"));
}

extern "C" {

void emu_race_launch(const char *kernel)
{
	static std::atomic<unsigned> launches;
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, find_devices);
	if (!shared.cells) dl_iterate_phdr(find_shared, NULL);
	launch = ++launches;
	bytes = {};
	watched = !is_harmless(kernel);
	counted.clear();
	running = NOBODY;
}

void emu_race_shared(const void *p)
{
	if (of_library.cells) munmap(of_library.cells, of_library.size * sizeof(cell));
	of_library = {};
	dl_iterate_phdr(find_library, (void *)p);
}

void emu_thread_fence(void)
{
	turn_to(block_now());
	fences++;
}

/* Releases what the block has done, if all its threads have called __threadfence, and acquires what others have. */
unsigned emu_atomic_add(unsigned *p, unsigned value)
{
	const emu::block *b = emu::current;
	unsigned block = block_now(), before = *p;
	turn_to(block);
	arrivals &others = counted[p];
	for (const auto &a : others) seen[a.first] = a.second;
	if (fences >= b->total) others[block] = {block * emu::MOST_THREADS + b->running->thread, b->barriers};
	*p += value;
	return before;
}

unsigned emu_atomic_exchange(unsigned *p, unsigned value)
{
	unsigned before = *p;
	*p = value;
	return before;
}

struct emu_bytes emu_race_bytes(void)
{
	return bytes;
}

#define ACCESS(size)                                                                                                   \
	void __tsan_read##size(void *p)                                                                                \
	{                                                                                                              \
		visit_bytes(p, size, false);                                                                           \
	}                                                                                                              \
	void __tsan_write##size(void *p)                                                                               \
	{                                                                                                              \
		visit_bytes(p, size, true);                                                                            \
	}                                                                                                              \
	void __tsan_unaligned_read##size(void *p)                                                                      \
	{                                                                                                              \
		visit_bytes(p, size, false);                                                                           \
	}                                                                                                              \
	void __tsan_unaligned_write##size(void *p)                                                                     \
	{                                                                                                              \
		visit_bytes(p, size, true);                                                                            \
	}
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)

void __tsan_read_range(void *p, size_t n)
{
	visit_bytes(p, n, false);
}
void __tsan_write_range(void *p, size_t n)
{
	visit_bytes(p, n, true);
}
void __tsan_vptr_update(void **, void *)
{
}
void __tsan_func_entry(void *)
{
}
void __tsan_func_exit(void)
{
}
void __tsan_init(void)
{
}
}
#endif
