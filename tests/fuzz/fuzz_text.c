/* Feeds anything to the reader of programs as text.  What it takes is printed, read again and printed once more: both
 * texts are the same.  Then it is compiled. */
#include <stdlib.h>
#include <string.h>
#include <starling.h>

#include "fuzz.h"
#include "graph/text/parse.h"

static char *text_of(const sl_graph *g)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	if (!f) abort();
	enum sl_status s = sl_graph_print(f, g);
	fclose(f);
	if (s == SL_OK) return text;
	free(text);
	return NULL;
}

/* A constant of many elements is printed without them, and cannot be read. */
static void check_again(const char *text)
{
	if (strstr(text, "...")) return;
	sl_graph *again = sl_graph_parse(text);
	char *other = again ? text_of(again) : NULL;
	if (!other || strcmp(text, other)) {
		fprintf(stderr, "%s\nis read as\n%s\n%s\n", text, other ? other : "nothing", sl_error_message());
		abort();
	}
	free(other);
	sl_graph_free(again);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char *text = malloc(size + 1);
	if (!text) abort();
	slp_text_most_bytes = 1 << 16; /* filling more takes longer than all else */
	if (size) memcpy(text, data, size);
	text[size] = '\0';
	sl_graph *g = sl_graph_parse(text);
	char *printed = g ? text_of(g) : NULL;
	sl_error_clear();
	if (printed) check_again(printed);
	if (g) sl_plan_free(sl_compile(g));
	sl_error_clear();
	free(printed);
	sl_graph_free(g);
	free(text);
	return 0;
}
