/* Kernels of earlier launches by the launches' descriptions, so that a launch of a kind that ran before neither writes nor hashes a
 * source: a table with a place for each hash, where the later of two descriptions stays.  So it needs at most PLACES times
 * MOST_KEY bytes, and a description that was replaced is looked up by its source. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "compiled.h"

enum { PLACES = 512, MOST_KEY = 2048 };

struct note {
	const void *kernel;
	size_t bytes;
	char key[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct note *notes[PLACES];
static size_t noted;

/* Eight bytes at a time: a key has hundreds. */
static size_t place_of(const char *key, size_t bytes)
{
	uint64_t hash = bytes, word;
	for (; bytes >= sizeof word; bytes -= sizeof word, key += sizeof word) {
		memcpy(&word, key, sizeof word);
		hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	for (; bytes; bytes--) hash = (hash ^ (unsigned char)*key++) * UINT64_C(0x9e3779b97f4a7c15);
	return (size_t)(hash >> 32) % PLACES;
}

bool slp_compiled_recall(const void *key, size_t bytes, const void **kernel)
{
	size_t place = place_of(key, bytes);
	pthread_mutex_lock(&lock);
	const struct note *n = notes[place];
	bool known = n && n->bytes == bytes && !memcmp(n->key, key, bytes);
	if (known) *kernel = n->kernel;
	pthread_mutex_unlock(&lock);
	return known;
}

void slp_compiled_note(const void *key, size_t bytes, const void *kernel)
{
	struct note *n = bytes <= MOST_KEY ? slp_try_malloc(sizeof *n + bytes) : NULL;
	if (!n) return; /* it is looked up by its source again */
	n->kernel = kernel;
	n->bytes = bytes;
	memcpy(n->key, key, bytes);
	size_t place = place_of(key, bytes);
	pthread_mutex_lock(&lock);
	struct note *old = notes[place];
	notes[place] = n;
	noted++;
	pthread_mutex_unlock(&lock);
	free(old);
}

size_t slp_compiled_notes(void)
{
	pthread_mutex_lock(&lock);
	size_t n = noted;
	pthread_mutex_unlock(&lock);
	return n;
}

void slp_compiled_forget_notes(void)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < PLACES; i++) {
		free(notes[i]);
		notes[i] = NULL;
	}
	noted = 0;
	pthread_mutex_unlock(&lock);
}
