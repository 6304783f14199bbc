/* Strings that stay until the process ends, and strings without control characters. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "runtime/forked.h"
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
SLP_FORK_MUTEX(all.lock);

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

/* Bytes that begin a control character of C0 or, in UTF-8, of C1. */
static size_t control_bytes(const unsigned char *p, bool lines)
{
	if (p[0] == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0) return 2;
	if (lines && (p[0] == '\n' || p[0] == '\t')) return 0;
	return p[0] < ' ' || p[0] == 0x7f;
}

char *slp_text_escape(char *text, size_t size, bool lines)
{
	enum { MOST = 2048, ESCAPED = 4 };
	char escaped[MOST];
	size_t n = 0, room = size < MOST ? size : MOST;
	bool found = false;
	for (const unsigned char *p = (const unsigned char *)text; *p && n + 2 * ESCAPED < room;) {
		size_t bytes = control_bytes(p, lines);
		found |= bytes > 0;
		if (!bytes) escaped[n++] = (char)*p++;
		for (; bytes; bytes--) n += (size_t)sprintf(escaped + n, "\\x%02x", *p++);
	}
	if (!found) return text;
	memcpy(text, escaped, n);
	text[n] = '\0';
	return text;
}
