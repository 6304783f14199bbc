/* A text as a sequence of numbers: its bytes, or its most frequent words. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "driver/common.h"
#include "words.h"

static const char unknown[] = "<unk>", end_of_line[] = "<eos>";

/* ---- words ------------------------------------------------------------------------------------------------------- */

/* The word at *at, which then stands behind it; its length is *length.  NULL: there is none. */
static const char *next_word(const char **at, size_t *length)
{
	*at += strspn(*at, " \t\r");
	const char *word = *at;
	if (!*word) return NULL;
	*length = *word == '\n' ? 1 : strcspn(word, " \t\r\n");
	*at += *length;
	if (*word != '\n') return word;
	*length = sizeof end_of_line - 1;
	return end_of_line;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(((const struct words_entry *)a)->text, ((const struct words_entry *)b)->text);
}

/* The most frequent first; of equal ones the smaller text. */
static int by_times(const void *a, const void *b)
{
	const struct words_entry *x = a, *y = b;
	return x->times != y->times ? (x->times < y->times) - (x->times > y->times) : strcmp(x->text, y->text);
}

/* Entries of all words, one for each time, whose texts are put into the buffer. */
static bool list_words(struct words *w, const char *text)
{
	size_t length, all = strlen(text);
	char *to = w->buffer = malloc(all * (sizeof end_of_line + 1) + 1);
	w->entries = malloc((all + 2) * sizeof *w->entries);
	if (!w->buffer || !w->entries) return false;
	for (const char *word; (word = next_word(&text, &length));) {
		w->entries[w->nentries++] = (struct words_entry){memcpy(to, word, length), 1, 0};
		to[length] = 0;
		to += length + 1;
	}
	return true;
}

/* Each text once, with its number of times. */
static void unite(struct words *w)
{
	int64_t n = 0;
	qsort(w->entries, (size_t)w->nentries, sizeof *w->entries, by_text);
	for (int64_t i = 0; i < w->nentries; i++)
		if (n && !strcmp(w->entries[n - 1].text, w->entries[i].text)) w->entries[n - 1].times++;
		else w->entries[n++] = w->entries[i];
	w->nentries = n;
}

/* Numbers from 1 for the most frequent. */
static bool number(struct words *w, int most)
{
	int64_t n = w->nentries < most - 1 ? w->nentries : most - 1;
	w->vocabulary = (int)n + 1;
	w->names = malloc((size_t)w->vocabulary * sizeof *w->names);
	if (!w->names) return false;
	qsort(w->entries, (size_t)w->nentries, sizeof *w->entries, by_times);
	w->names[0] = unknown;
	for (int64_t i = 0; i < n; i++) {
		w->entries[i].number = (int32_t)i + 1;
		w->names[i + 1] = w->entries[i].text;
	}
	qsort(w->entries, (size_t)w->nentries, sizeof *w->entries, by_text);
	return true;
}

static int32_t number_of(const struct words *w, const char *word, size_t length)
{
	int64_t low = 0, high = w->nentries;
	while (low < high) {
		int64_t i = (low + high) / 2;
		int order = strncmp(word, w->entries[i].text, length);
		if (!order && w->entries[i].text[length]) order = -1;
		if (!order) return w->entries[i].number;
		if (order < 0) high = i;
		else low = i + 1;
	}
	return 0;
}

int32_t *words_encode(const struct words *w, const char *text, int64_t *count)
{
	size_t length;
	int32_t *all = malloc((strlen(text) + 1) * sizeof *all);
	*count = 0;
	if (!all) return NULL;
	if (!w->entries) {
		for (; text[*count]; ++*count) all[*count] = (unsigned char)text[*count];
		return all;
	}
	for (const char *word; (word = next_word(&text, &length));) all[(*count)++] = number_of(w, word, length);
	return all;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* All of a file with a 0 behind it; NULL after saying why not. */
static char *read_file(const char *path, size_t *size)
{
	errno = 0;
	FILE *f = fopen(path, "rb");
	char *text = NULL;
	size_t room = 1 << 16, n = 1;
	*size = 0;
	for (; f && n; room *= 2) {
		char *more = realloc(text, room);
		if (!more) break;
		text = more;
		n = fread(text + *size, 1, room - *size - 1, f);
		*size += n;
	}
	bool ok = f && text && !n && !ferror(f);
	if (!ok) drv_error("%s: cannot be read: %s", path, strerror(errno ? errno : EIO));
	else text[*size] = 0;
	if (f) fclose(f);
	if (ok) return text;
	free(text);
	return NULL;
}

static bool encode_bytes(struct words *w, const char *text, size_t size)
{
	w->vocabulary = 256;
	w->count = (int64_t)size;
	w->all = malloc((size + 1) * sizeof *w->all);
	for (size_t i = 0; w->all && i < size; i++) w->all[i] = (unsigned char)text[i];
	return w->all != NULL;
}

static bool encode_words(struct words *w, const char *text, int most)
{
	if (!list_words(w, text)) return false;
	unite(w);
	return number(w, most) && (w->all = words_encode(w, text, &w->count));
}

bool words_read(struct words *w, const char *path, int most)
{
	size_t size;
	*w = (struct words){0};
	char *text = read_file(path, &size);
	if (!text) return false;
	bool ok = most ? encode_words(w, text, most) : encode_bytes(w, text, size);
	if (!ok) drv_error("%s: no memory for the text", path);
	free(text);
	return ok;
}

void words_free(struct words *w)
{
	free(w->all);
	free(w->buffer);
	free(w->entries);
	free(w->names);
}
