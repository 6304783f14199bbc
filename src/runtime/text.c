/* Strings that stay until the process ends. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "runtime/text.h"

struct kept {
	struct kept *next;
	uint64_t hash;
	char text[];
};

static struct {
	pthread_mutex_t lock;
	struct kept *buckets[1024];
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* FNV-1a: G. Fowler, L. C. Noll, K.-P. Vo, 1991. */
static uint64_t hash_text(const char *s)
{
	uint64_t h = 0xcbf29ce484222325u;
	for (; *s; s++) h = (h ^ (unsigned char)*s) * 0x100000001b3u;
	return h;
}

const char *slp_text_keep(const char *text, const char *otherwise)
{
	uint64_t h = hash_text(text);
	struct kept **bucket = &all.buckets[h % (sizeof all.buckets / sizeof *all.buckets)];
	pthread_mutex_lock(&all.lock);
	struct kept *k = *bucket;
	while (k && (k->hash != h || strcmp(k->text, text))) k = k->next;
	if (!k && (k = slp_try_malloc(sizeof *k + strlen(text) + 1))) {
		*k = (struct kept){.next = *bucket, .hash = h};
		strcpy(k->text, text);
		*bucket = k;
	}
	pthread_mutex_unlock(&all.lock);
	return k ? k->text : otherwise;
}
