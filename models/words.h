/* A text as a sequence of numbers: its bytes, or its most frequent words. */
#ifndef MODELS_WORDS_H
#define MODELS_WORDS_H

#include <stdbool.h>
#include <stdint.h>

struct words {
	int32_t *all; /* the text */
	int64_t count;
	int vocabulary; /* numbers are below it */
	/* The words; NULL if the numbers are bytes. */
	char *buffer;
	struct words_entry {
		const char *text;
		int64_t times;
		int32_t number; /* 0: not frequent enough */
	} * entries;            /* sorted by text */
	int64_t nentries;
	const char **names; /* by number */
};

/* Reads a file as bytes (most 0), or as its most frequent words: so many, with <unk> for all others and <eos> for the
 * end of a line.  Says what is wrong and returns false. */
bool words_read(struct words *w, const char *path, int most);
void words_free(struct words *w);
/* A text as numbers; free() them.  NULL without memory. */
int32_t *words_encode(const struct words *w, const char *text, int64_t *count);

#endif
