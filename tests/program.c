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

void slp_check_pass(int line, enum sl_pass pass, const char *before, const char *after, double tolerance)
{
	sl_graph *g = slp_program(before), *h = slp_graph_copy(g);
	CHECK_SAYING(slp_passes[pass].run(h) == SL_OK, "line %d: %s", line, sl_error_message());
	CHECK_SAYING(slp_graph_verify(h) == SL_OK, "line %d: %s", line, sl_error_message());
	char *text = slp_program_text(h);
	/* As written by hand: without types. */
	sl_graph *expected = slp_program(after);
	if (pass != SL_PASS_DEAD) CHECK_OK(slp_passes[SL_PASS_DEAD].run(expected)); /* parameters that nobody needs */
	char *wanted = slp_program_text(expected);
	if (!CHECK_SAYING(!strcmp(text, wanted), "line %d: %s", line, slp_passes[pass].name))
		fprintf(stderr, "line %d: the program is\n%s", line, text);
	CHECK_SAYING(slp_graph_compare(slp_passes[pass].name, g, h, tolerance) == SL_OK, "line %d: %s", line,
	             sl_error_message());
	sl_error_clear();
	free(text);
	free(wanted);
	sl_graph_free(g);
	sl_graph_free(h);
	sl_graph_free(expected);
}
