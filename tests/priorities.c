/* For simulate.sh: a program written in an unlucky order, 12 products that nobody waits for before a chain of 6, runs
 * ROUNDS times; prints the simulated milliseconds of a run. */
#include <starling.h>
#include <stdio.h>

enum { SIDE = 4096, ALONE = 12, CHAIN = 6, ROUNDS = 4 };

static sl_graph *program(void)
{
	sl_tensor *x = sl_var("x", SL_VAR_SHAPE(SIDE, SIDE)), *w = sl_var("w", SL_VAR_SHAPE(SIDE, SIDE)),
	          *out[ALONE + 1];
	for (int i = 0; i < ALONE; i++) /* no two are the same */
		out[i] = sl_dot(i < 4 ? x : w, i < 8 ? w : x, .ta = i & 1, .tb = i & 2);
	out[ALONE] = x;
	for (int i = 0; i < CHAIN; i++) out[ALONE] = sl_dot(out[ALONE], x);
	return sl_graph_define_at(SL_HERE, out, ALONE + 1);
}

int main(void)
{
	enum sl_status status = SL_OK;
	double start = 0;
	SL_SCOPE {
		sl_tensor *in[2] = {sl_zeros(SL_SHAPE(SIDE, SIDE)), sl_zeros(SL_SHAPE(SIDE, SIDE))}, *out[ALONE + 1];
		sl_graph *g = program();
		sl_plan *plan = sl_compile(g);
		for (int round = 0; round <= ROUNDS; round++) {
			if (sl_plan_run(plan, in, 2, out) != SL_OK || sl_wait_all() != SL_OK) break;
			if (round == 0) start = sl_time(); /* memory is allocated */
		}
		sl_plan_free(plan);
		sl_graph_free(g);
		status = sl_wait_all();
	}
	if (status != SL_OK) fprintf(stderr, "%s\n", sl_error_message());
	printf("%.6f ms\n", 1e3 * (sl_time() - start) / ROUNDS);
	sl_shutdown();
	return status != SL_OK;
}
