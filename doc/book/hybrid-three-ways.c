/* The same sum three ways: called line by line; written down, compiled, run; read from text. */
#include "book.h"

static sl_tensor *fancy(sl_tensor *a, sl_tensor *b, sl_tensor *c, sl_tensor *d)
{
	sl_tensor *e = sl_add(a, b);
	sl_tensor *f = sl_add(c, d);
	return sl_add(e, f);
}

static sl_tensor *run(sl_graph *graph, sl_tensor **in, int nin)
{
	sl_tensor *out = NULL;
	sl_plan *plan = sl_compile(graph);
	puts("compiled:");
	sl_graph_print(stdout, sl_plan_graph(plan));
	sl_plan_run(plan, in, nin, &out);
	sl_plan_free(plan);
	return out;
}

int main(void)
{
	SL_SCOPE {
		sl_tensor *in[4];
		for (int i = 0; i < 4; i++) in[i] = sl_full(SL_SHAPE(1), i + 1);

		/* Line by line: each call asks for its result. */
		sl_print(fancy(in[0], in[1], in[2], in[3]));

		/* The same function, called with symbols: nothing is computed, the calls are written down. */
		sl_tensor *a = sl_var("a", SL_VAR_SHAPE(1)), *b = sl_var("b", SL_VAR_SHAPE(1));
		sl_tensor *c = sl_var("c", SL_VAR_SHAPE(1)), *d = sl_var("d", SL_VAR_SHAPE(1));
		sl_graph *graph = sl_graph_define(fancy(a, b, c, d));
		puts("written down:");
		sl_graph_print(stdout, graph);
		sl_print(run(graph, in, 4));
		sl_graph_free(graph);

		/* From text: the numbers are known, so there is nothing left to do when it runs. */
		graph = sl_graph_parse("e = add(1, 2)\n"
		                       "f = add(3, 4)\n"
		                       "return add(e, f)\n");
		sl_print(run(graph, NULL, 0));
		sl_graph_free(graph);
	}
	return finish();
}
