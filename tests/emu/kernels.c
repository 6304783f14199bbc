/* Emulated GPUs: what each kernel did: launches, blocks, threads, and in a build that looks for races the bytes of memory
 * that its threads accessed, that its blocks fetched and stored, and that it must at least. */
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
	if (i == nkernels)
		kernels[nkernels++] =
		        (struct emu_kernel){.name = name, .fewest = UINT64_MAX, .fewest_blocks = UINT64_MAX};
	return &kernels[i];
}

static void add_bytes(struct emu_bytes *sum, struct emu_bytes b)
{
	sum->accessed += b.accessed;
	sum->read += b.read;
	sum->written += b.written;
	sum->least += b.least;
	sum->shared += b.shared;
}

static void keep_most(uint64_t *most, uint64_t n)
{
	if (n > *most) *most = n;
}

static void keep_fewest(uint64_t *fewest, uint64_t n)
{
	if (n < *fewest) *fewest = n;
}

void emu_kernel_ran(const char *name, uint64_t blocks, uint64_t threads)
{
	struct emu_bytes bytes = emu_race_bytes();
	pthread_mutex_lock(&lock);
	struct emu_kernel *k = kernel_of(name);
	k->launches++;
	add_bytes(&k->bytes, bytes);
	keep_fewest(&k->fewest, threads);
	keep_fewest(&k->fewest_blocks, blocks);
	keep_most(&k->most_blocks, blocks);
	if (threads <= FEW_THREADS) {
		keep_most(&k->alone, bytes.least);
		keep_most(&k->alone_shared, bytes.shared);
	}
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

/* Of two kernels, the one that moves more beyond the least comes first. */
static int by_loss(const void *a, const void *b)
{
	const struct emu_kernel *k = a, *l = b;
	int64_t of_k = (int64_t)(k->bytes.read + k->bytes.written - k->bytes.least),
	        of_l = (int64_t)(l->bytes.read + l->bytes.written - l->bytes.least);
	if (of_k != of_l) return of_k < of_l ? 1 : -1;
	return k->launches < l->launches ? 1 : k->launches > l->launches ? -1 : strcmp(k->name, l->name);
}

void emu_kernels_sort(void)
{
	pthread_mutex_lock(&lock);
	qsort(kernels, (size_t)nkernels, sizeof *kernels, by_loss);
	pthread_mutex_unlock(&lock);
}

double emu_kernel_ratio(const struct emu_kernel *k)
{
	return k->bytes.least ? (double)(k->bytes.read + k->bytes.written) / (double)k->bytes.least : 0;
}

void emu_kernels_print(void)
{
	emu_kernels_sort();
	fprintf(stderr, "launches  blocks        bytes read  written     least       ratio  accessed    kernel\n");
	for (int i = 0; i < nkernels; i++) {
		const struct emu_kernel *k = &kernels[i];
		fprintf(stderr, "%8llu  %5llu-%-6llu  %10llu  %10llu  %10llu  %5.2f  %10llu  %s\n",
		        (unsigned long long)k->launches, (unsigned long long)k->fewest_blocks,
		        (unsigned long long)k->most_blocks, (unsigned long long)k->bytes.read,
		        (unsigned long long)k->bytes.written, (unsigned long long)k->bytes.least, emu_kernel_ratio(k),
		        (unsigned long long)k->bytes.accessed, k->name);
	}
}
