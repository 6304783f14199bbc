/* Names of nodes in MXNet's symbols, as MXNet gives them. */
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "ascii.h"
#include "mxnet/writer.h"

/* The word that MXNet's names of an operator begin with: dot, _plus, _mulscalar. */
static void word_of(const char *op, char word[64])
{
	static const struct {
		const char *op, *word;
	} operators[] = {{"broadcast_add", "_plus"}, {"broadcast_sub", "_minus"}};
	size_t n = 0;
	for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
		if (!strcmp(op, operators[i].op)) op = operators[i].word;
	if (!strncmp(op, "broadcast_", 10) && strcmp(op, "broadcast_to")) op += 9;
	bool scalar = *op == '_' && strlen(op) > 7 && !strcmp(op + strlen(op) - 7, "_scalar");
	for (const char *p = op; *p && n < 63; p++)
		if (!scalar || *p != '_' || p == op) word[n++] = slp_to_lower(*p);
	word[n] = '\0';
}

/* The length of the prefix before the operation's name and a number; -1 if the name is not of that form. */
static int prefix_length(const struct slp_gnode *n)
{
	int end = (int)strlen(n->name), length = (int)strlen(n->op->name), digits = end;
	while (digits > 0 && slp_is_digit(n->name[digits - 1])) digits--;
	bool numbered =
	        digits < end && digits >= length && !strncmp(n->name + digits - length, n->op->name, (size_t)length);
	return numbered ? digits - length : -1;
}

/* The number of earlier names with this prefix. */
static int count_of(struct slp_mx_writer *w, const char *begin)
{
	for (int i = 0; i < w->nwords; i++)
		if (!strcmp(w->words[i].begin, begin)) return w->words[i].count++;
	if (!slp_grow((void **)&w->words, &w->max_words, w->nwords + 1, sizeof *w->words)) return -1;
	char *copy = slp_strdup(begin);
	if (!copy) return -1;
	w->words[w->nwords++] = (struct slp_mx_word){copy, 1};
	return 0;
}

bool slp_mx_name(struct slp_mx_writer *w, const char *op, char name[256])
{
	int before = prefix_length(w->now), count;
	char word[64], begin[256];
	if (before < 0) {
		snprintf(name, 256, "%.200s", w->now->name);
		return true;
	}
	word_of(op, word);
	snprintf(begin, sizeof begin, "%.*s%s", before < 180 ? before : 180, w->now->name, word);
	count = count_of(w, begin);
	snprintf(name, 256, "%.240s%d", begin, count);
	return count >= 0;
}

void slp_mx_names_free(struct slp_mx_writer *w)
{
	for (int i = 0; i < w->nwords; i++) free(w->words[i].begin);
	free(w->words);
}
