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
	struct kept **buckets;
	size_t count, capacity;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* FNV-1a: G. Fowler, L. C. Noll, K.-P. Vo, 1991. */
static uint64_t hash_text(const char *s)
{
	uint64_t h = 0xcbf29ce484222325u;
	for (; *s; s++) h = (h ^ (unsigned char)*s) * 0x100000001b3u;
	return h;
}

/* As many buckets as texts; without memory, chains are longer. */
static void grow(void)
{
	size_t capacity = all.capacity ? 2 * all.capacity : 1024;
	struct kept **buckets = all.count >= all.capacity ? slp_try_calloc(capacity, sizeof *buckets) : NULL;
	if (!buckets) return;
	for (size_t i = 0; i < all.capacity; i++)
		for (struct kept *k = all.buckets[i], *next; k; k = next) {
			next = k->next;
			k->next = buckets[k->hash % capacity];
			buckets[k->hash % capacity] = k;
		}
	free(all.buckets);
	all.buckets = buckets;
	all.capacity = capacity;
}

/* Locked. */
static const char *keep(const char *text, uint64_t h)
{
	grow();
	if (!all.capacity) return NULL;
	struct kept **bucket = &all.buckets[h % all.capacity], *k = *bucket;
	while (k && (k->hash != h || strcmp(k->text, text))) k = k->next;
	if (k) return k->text;
	k = slp_try_malloc(sizeof *k + strlen(text) + 1);
	if (!k) return NULL;
	*k = (struct kept){.next = *bucket, .hash = h};
	strcpy(k->text, text);
	*bucket = k;
	all.count++;
	return k->text;
}

const char *slp_text_keep(const char *text, const char *otherwise)
{
	uint64_t h = hash_text(text);
	pthread_mutex_lock(&all.lock);
	const char *kept = keep(text, h);
	pthread_mutex_unlock(&all.lock);
	return kept ? kept : otherwise;
}
