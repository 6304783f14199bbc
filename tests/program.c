/* Programs in tests: from text, as text. */
#include "program.h"

#include <stdlib.h>
#include <string.h>

char *slp_program_text(const sl_graph *g)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	CHECK_OK(sl_graph_print(f, g));
	fclose(f);
	return text;
}

bool slp_check_program(const char *file, int line, const sl_graph *g, const char *expected)
{
	char *text = slp_program_text(g);
	bool same = !strcmp(text, expected);
	if (!same) fprintf(stderr, "%s:%d: the program is\n%s", file, line, text);
	slp_check(same, file, line, "the program is not as expected");
	free(text);
	return same;
}

sl_graph *slp_program(const char *text)
{
	sl_graph *g = sl_graph_parse(text);
	if (!CHECK_SAYING(g != NULL, "%s", sl_error_message())) exit(1);
	for (int i = 0; i < g->count; i++)
		if (slp_node_infer(g, i) != SL_OK) CHECK_SAYING(false, "%s", sl_error_message());
	return g;
}
