/* Programs that are made, run in all ways and freed leave nothing on the heap. */
#include <malloc.h>
#include <stdlib.h>
#include <starling.h>

#include "check.h"

enum { FIRST = 100, MODELS = 1000, PER_MODEL = 16 }; /* bytes: half of the least that malloc gives out */

static const char text[] = "input x: float32 (4, 8)\ninput w: float32 (16, 8)\ninput b: float32 (16,)\n"
                           "h = linear(x, w, b, tw=true)\nr = relu(h)\ng = relu_grad(r, r)\n"
                           "d = dot(g, x, ta=true, tb=false)\nsgd(w, d, lr=0.01)\nreturn sum(r) as s, softmax(h) as p";

static size_t on_heap(void)
{
	struct mallinfo2 m = mallinfo2();
	return m.uordblks + m.hblkhd;
}

/* By tasks, on memory that this model alone has. */
static void run(sl_plan *plan, float *x, float *w, float *b)
{
	float s, p[64];
	SL_SCOPE {
		sl_tensor *out[2],
		        *in[] = {sl_adopt(x, SL_SHAPE(4, 8), NULL, NULL), sl_adopt(w, SL_SHAPE(16, 8), NULL, NULL),
		                 sl_adopt(b, SL_SHAPE(16), NULL, NULL)};
		for (int k = 0; k < 2; k++) {
			CHECK_OK(sl_plan_run(plan, in, 3, out));
			CHECK_OK(sl_read(out[0], &s, sizeof s));
			CHECK_OK(sl_read(out[1], p, sizeof p));
		}
	}
}

static void one_model(void)
{
	float *x = calloc(32, sizeof *x), *w = calloc(128, sizeof *w), *b = calloc(16, sizeof *b), s, p[64];
	CHECK(x && w && b);
	sl_graph *g = sl_graph_parse(text);
	sl_plan *plan = sl_compile(g, .training = true);
	CHECK(plan != NULL);
	sl_graph_free(g);
	CHECK_OK(sl_plan_call(plan, SL_ARRAY(void *, x, w, b), 3, NULL, 0, SL_ARRAY(void *, &s, p)));
	run(plan, x, w, b);
	CHECK_OK(sl_wait_all());
	sl_plan_free(plan);
	free(x);
	free(w);
	free(b);
}

/* A text that is wrong, and memory of a wrong size. */
static void one_error(void)
{
	CHECK(!sl_graph_parse("input x: float32 (4, 8)\nreturn relu(y)"));
	sl_error_clear();
	sl_graph *g = sl_graph_parse("input x: float32 (4, 8)\ninput y: float32 (3,)\nreturn add(x, y)");
	sl_plan *plan = g ? sl_compile(g) : NULL;
	CHECK(!plan);
	sl_graph_free(g);
	sl_error_clear();
}

static void check_flat(const char *what, void (*one)(void))
{
	for (int i = 0; i < FIRST; i++) one();
	size_t before = on_heap();
	for (int i = FIRST; i < MODELS; i++) one();
	size_t after = on_heap(), most = (size_t)PER_MODEL * (MODELS - FIRST);
	CHECK_SAYING(after < before + most, "%s: %zu bytes after %d, %zu after %d", what, before, FIRST, after, MODELS);
}

static void test_programs(void)
{
	check_flat("programs", one_model);
}

static void test_errors(void)
{
	check_flat("errors", one_error);
}

static const struct slp_test tests[] = {
        {"programs", test_programs},
        {"errors", test_errors},
        {0},
};

int main(int argc, char **argv)
{
	return slp_test_main(
	        argc, argv,
	        (const struct slp_suite[]){
	                {.name = "plan_life", .tests = tests, .before = slp_begin_plainly, .after = slp_end_well},
	                {0}});
}
