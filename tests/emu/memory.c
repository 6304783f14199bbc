/* Emulated GPUs: their memory, and host memory that is pinned.
 *
 * What cudaMalloc gives out is mapped without any access; copies and kernels use a second mapping of the same memory.
 * So host code that touches device memory, or a kernel that follows a pointer which emu_pointers (emu.h) did not list,
 * ends with SIGSEGV and a word about it.  New and freed memory is filled with NaN. */
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

enum { ALIGNMENT = 256 }; /* of cudaMalloc */

struct pin {
	char *begin;
	size_t size;
	bool owned; /* by cudaHostAlloc */
	struct pin *next;
};
static struct pin *pins;
static pthread_mutex_t pin_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- illegal accesses ------------------------------------------------------------------------------------------- */

static struct sigaction handler_before;

struct emu_device *emu_device_of(const void *p)
{
	for (int i = 0; i < emu_settings.devices; i++) {
		struct emu_device *d = &emu_devices[i];
		if ((const char *)p >= d->base && (const char *)p < d->base + d->span) return d;
	}
	return NULL;
}

/* The access is then made again, and handled as it would have been without us. */
static void on_fault(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)context;
	const struct emu_device *d = emu_device_of(info->si_addr);
	if (d) {
		char text[200], name[16] = "?";
		void *stack[32];
		pthread_getname_np(pthread_self(), name, sizeof name);
		int n = snprintf(text, sizeof text,
		                 "emulated GPU: illegal access to memory of gpu:%d by thread \"%s\": host code, or a "
		                 "pointer that no kernel was given\n",
		                 d->id, name);
		if (write(2, text, (size_t)n) < n) _exit(1);
		backtrace_symbols_fd(stack, backtrace(stack, 32), 2);
	}
	sigaction(SIGSEGV, &handler_before, NULL);
}

static void catch_faults(void)
{
	void *stack[1];
	backtrace(stack, 1); /* loads what it needs now, not in the handler */
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	sigaction(SIGSEGV, &action, &handler_before);
}

/* With AddressSanitizer, kernels cannot leave what is allocated, either. */
void __asan_poison_memory_region(const volatile void *, size_t) __attribute__((weak));
void __asan_unpoison_memory_region(const volatile void *, size_t) __attribute__((weak));

static void allow(const struct emu_device *d, size_t offset, size_t n, bool yes)
{
	if (yes && __asan_unpoison_memory_region) __asan_unpoison_memory_region(d->alias + offset, n);
	if (!yes && __asan_poison_memory_region) __asan_poison_memory_region(d->alias + offset, n);
}

void emu_memory_init(struct emu_device *d)
{
	d->size = (size_t)emu_settings.memory << 20;
	d->span = 2 * d->size;
	int fd = memfd_create("emulated GPU", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, (off_t)d->span)) emu_misuse("no memory of %zu bytes", d->span);
	d->base = mmap(NULL, d->span, PROT_NONE, MAP_SHARED, fd, 0);
	d->alias = mmap(NULL, d->span, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	d->blocks = calloc(1, sizeof *d->blocks);
	if (d->base == MAP_FAILED || d->alias == MAP_FAILED || !d->blocks)
		emu_misuse("no memory of %zu bytes", d->span);
	close(fd);
	pthread_mutex_init(&d->lock, NULL);
	d->blocks->size = d->span;
	allow(d, 0, d->span, false);
	if (d->id == 0) catch_faults();
}

/* ---- pointers --------------------------------------------------------------------------------------------------- */

/* Bytes of the allocation around p that come after it; -1: p is in none.  Its end belongs to it: views of nothing. */
static long after(struct emu_device *d, const void *p)
{
	size_t offset = (size_t)((const char *)p - d->base);
	long n = -1;
	pthread_mutex_lock(&d->lock);
	for (struct emu_block *b = d->blocks; b && n <= 0; b = b->next)
		if (b->used && offset >= b->offset && offset <= b->offset + b->size)
			n = (long)(b->offset + b->size - offset);
	pthread_mutex_unlock(&d->lock);
	return n;
}

char *emu_alias(struct emu_device *d, const void *p, size_t bytes, const char *what)
{
	long n = after(d, p);
	if (n < 0) emu_misuse("%s %p is not allocated on gpu:%d", what, p, d->id);
	if ((size_t)n < bytes) emu_misuse("%s %p + %zu leaves its allocation on gpu:%d", what, p, bytes, d->id);
	return d->alias + ((const char *)p - d->base);
}

bool emu_is_pinned(const void *p)
{
	bool found = false;
	pthread_mutex_lock(&pin_lock);
	for (struct pin *q = pins; q && !found; q = q->next)
		found = (const char *)p >= q->begin && (const char *)p < q->begin + q->size;
	pthread_mutex_unlock(&pin_lock);
	return found;
}

void *emu_argument(const void *p, const char *what)
{
	struct emu_device *d = emu_device_of(p);
	if (!p || (!d && emu_is_pinned(p))) return (void *)p;
	if (!d) emu_misuse("%s: %p is host memory", what, p);
	if (d->id != emu_current()) emu_misuse("%s: %p is memory of gpu:%d, not gpu:%d", what, p, d->id, emu_current());
	emu_note_pointer(p);
	return emu_alias(d, p, 0, what);
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *a, const void *p)
{
	if (!emu_start()) return emu_result(cudaErrorNoDevice);
	const struct emu_device *d = emu_device_of(p);
	memset(a, 0, sizeof *a);
	a->device = d ? d->id : emu_current();
	a->type = d ? cudaMemoryTypeDevice : emu_is_pinned(p) ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
	a->devicePointer = a->type == cudaMemoryTypeUnregistered ? NULL : (void *)p;
	a->hostPointer = d ? NULL : (void *)p;
	return cudaSuccess;
}

/* ---- device memory ---------------------------------------------------------------------------------------------- */

/* Locked: the first free piece that is large enough, cut to size; NULL: none. */
static struct emu_block *take(struct emu_device *d, size_t need)
{
	struct emu_block *b = d->blocks;
	while (b && (b->used || b->size < need)) b = b->next;
	if (!b || d->used + need > d->size) return NULL;
	if (b->size > need) {
		struct emu_block *rest = calloc(1, sizeof *rest);
		if (!rest) return NULL;
		*rest = (struct emu_block){b->offset + need, b->size - need, false, b->next};
		b->next = rest;
		b->size = need;
	}
	b->used = true;
	d->used += need;
	return b;
}

cudaError_t cudaMalloc(void **to, size_t n)
{
	if (!emu_start()) return emu_result(cudaErrorNoDevice);
	struct emu_device *d = &emu_devices[emu_current()];
	cudaError_t error = cudaErrorMemoryAllocation;
	*to = NULL;
	EMU_NOT_CAPTURED;
	if (!n) return cudaSuccess;
	pthread_mutex_lock(&d->lock);
	struct emu_block *b =
	        emu_fails(EMU_MALLOC, &error) ? NULL : take(d, (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
	emu_count_memory(d->id, d->used, !b);
	pthread_mutex_unlock(&d->lock);
	if (!b) return emu_result(error);
	allow(d, b->offset, n, true);
	memset(d->alias + b->offset, 0xff, n); /* NaN: what is read before it was written shows */
	*to = d->base + b->offset;
	return cudaSuccess;
}

static void join(struct emu_block *b)
{
	struct emu_block *next = b->next;
	if (!next || next->used || b->used) return;
	b->size += next->size;
	b->next = next->next;
	free(next);
}

/* Waits for all the device does, as the real one. */
cudaError_t cudaFree(void *p)
{
	if (!emu_start()) return emu_result(cudaErrorNoDevice);
	if (!p) return cudaSuccess;
	EMU_NOT_CAPTURED;
	struct emu_device *d = emu_device_of(p);
	if (!d) emu_misuse("cudaFree of %p, which is not device memory", p);
	emu_count_wait(EMU_WAIT_FREE);
	emu_drain_device(d);
	pthread_mutex_lock(&d->lock);
	struct emu_block *b = d->blocks, *before = NULL;
	for (; b && (!b->used || d->base + b->offset != (char *)p); b = b->next) before = b;
	if (!b) emu_misuse("cudaFree of %p, which is not allocated", p);
	allow(d, b->offset, b->size, true);
	memset(d->alias + b->offset, 0xff, b->size);
	allow(d, b->offset, b->size, false);
	b->used = false;
	d->used -= b->size;
	emu_count_memory(d->id, d->used, false);
	join(b);
	if (before) join(before);
	pthread_mutex_unlock(&d->lock);
	return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *all)
{
	if (!emu_start()) return emu_result(cudaErrorNoDevice);
	struct emu_device *d = &emu_devices[emu_current()];
	pthread_mutex_lock(&d->lock);
	*left = d->size - d->used;
	*all = d->size;
	pthread_mutex_unlock(&d->lock);
	return cudaSuccess;
}

/* ---- pinned host memory ----------------------------------------------------------------------------------------- */

static cudaError_t pin(void *p, size_t n, bool owned)
{
	struct pin *q = malloc(sizeof *q);
	if (!q) return emu_result(cudaErrorMemoryAllocation);
	pthread_mutex_lock(&pin_lock);
	*q = (struct pin){p, n, owned, pins};
	pins = q;
	pthread_mutex_unlock(&pin_lock);
	return cudaSuccess;
}

static bool unpin(const void *p, bool owned)
{
	pthread_mutex_lock(&pin_lock);
	struct pin **at = &pins;
	while (*at && ((*at)->begin != p || (*at)->owned != owned)) at = &(*at)->next;
	struct pin *found = *at;
	if (found) *at = found->next;
	pthread_mutex_unlock(&pin_lock);
	free(found);
	return found != NULL;
}

cudaError_t cudaHostAlloc(void **to, size_t n, unsigned flags)
{
	(void)flags;
	*to = NULL;
	if (!emu_start()) return emu_result(cudaErrorNoDevice);
	EMU_NOT_CAPTURED;
	if (!n) return cudaSuccess;
	if (posix_memalign(to, 4096, n)) return emu_result(cudaErrorMemoryAllocation);
	return pin(*to, n, true);
}

cudaError_t cudaFreeHost(void *p)
{
	EMU_NOT_CAPTURED;
	if (p && !unpin(p, true)) emu_misuse("cudaFreeHost of %p, which is not from cudaHostAlloc", p);
	free(p);
	return cudaSuccess;
}

cudaError_t cudaHostRegister(void *p, size_t n, unsigned flags)
{
	(void)flags;
	if (!emu_start()) return emu_result(cudaErrorNoDevice);
	EMU_NOT_CAPTURED;
	if (!p || !n || emu_device_of(p)) return emu_result(cudaErrorInvalidValue);
	return emu_is_pinned(p) ? emu_result(cudaErrorHostMemoryAlreadyRegistered) : pin(p, n, false);
}

cudaError_t cudaHostUnregister(void *p)
{
	return unpin(p, false) ? cudaSuccess : emu_result(cudaErrorHostMemoryNotRegistered);
}

cudaError_t cudaHostGetDevicePointer(void **to, void *p, unsigned flags)
{
	(void)flags;
	if (!emu_is_pinned(p)) return emu_result(cudaErrorInvalidValue);
	*to = p;
	return cudaSuccess;
}
