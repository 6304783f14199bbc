/* Emulated GPUs: what each kernel did: launches, threads, and in a build that looks for races the bytes of device memory
 * that its threads accessed, and that they would access if each was accessed once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum { KERNELS = 512, FEW_THREADS = 256 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct emu_kernel kernels[KERNELS];
static int nkernels;

int64_t emu_blocks(int64_t most)
{
	return emu_settings.all_blocks ? most : 2;
}

/* Launches name kernels as they are written there, perhaps in parentheses. */
static struct emu_kernel *kernel_of(const char *name)
{
	int i = 0;
	while (i < nkernels && strcmp(kernels[i].name, name) != 0) i++;
	if (i == KERNELS) emu_misuse("more than %d kernels", KERNELS);
	if (i == nkernels) kernels[nkernels++] = (struct emu_kernel){.name = name, .fewest = UINT64_MAX};
	return &kernels[i];
}

void emu_kernel_ran(const char *name, uint64_t threads)
{
	uint64_t moved, least;
	emu_race_bytes(&moved, &least);
	pthread_mutex_lock(&lock);
	struct emu_kernel *k = kernel_of(name);
	k->launches++;
	k->moved += moved;
	k->least += least;
	if (threads < k->fewest) k->fewest = threads;
	if (threads <= FEW_THREADS && least > k->alone) k->alone = least;
	pthread_mutex_unlock(&lock);
}

void emu_kernels_each(void (*f)(const struct emu_kernel *k, void *arg), void *arg)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < nkernels; i++) f(&kernels[i], arg);
	pthread_mutex_unlock(&lock);
}

void emu_kernels_reset(void)
{
	pthread_mutex_lock(&lock);
	nkernels = 0;
	pthread_mutex_unlock(&lock);
}

static int by_bytes(const void *a, const void *b)
{
	const struct emu_kernel *k = a, *l = b;
	if (k->moved != l->moved) return k->moved < l->moved ? 1 : -1;
	return k->launches < l->launches ? 1 : k->launches > l->launches ? -1 : 0;
}

void emu_kernels_print(void)
{
	qsort(kernels, (size_t)nkernels, sizeof *kernels, by_bytes);
	fprintf(stderr, "launches  fewest threads  bytes moved  of the least  alone  kernel\n");
	for (int i = 0; i < nkernels; i++) {
		const struct emu_kernel *k = &kernels[i];
		fprintf(stderr, "%8llu  %14llu  %11llu  %12.2f  %5llu  %s\n", (unsigned long long)k->launches,
		        (unsigned long long)k->fewest, (unsigned long long)k->moved,
		        k->least ? (double)k->moved / (double)k->least : 0, (unsigned long long)k->alone, k->name);
	}
}
