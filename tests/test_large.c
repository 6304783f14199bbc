/* Large inputs: what reading them costs grows as they do, and what runs them holds no more than it needs. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "check.h"
#include "folder.h"

#ifdef __SANITIZE_ADDRESS__ /* its functions of strings look for the end of the whole text each time */
static const bool is_plain = false;
#else
static const bool is_plain = true;
#endif

static double own_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A chain of so many additions. */
static char *chain_text(int lines)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	fprintf(f, "input y0: float32 (4,)\n");
	for (int i = 1; i < lines; i++) fprintf(f, "y%d = add(y%d, y0)\n", i, i - 1);
	fprintf(f, "return y%d\n", lines - 1);
	fclose(f);
	return text;
}

static double seconds_to_parse(int lines)
{
	char *text = chain_text(lines);
	double begin = own_seconds();
	sl_graph *g = sl_graph_parse(text);
	double seconds = own_seconds() - begin;
	CHECK(g != NULL);
	sl_graph_free(g);
	free(text);
	return seconds;
}

/* Sixteen times the lines: sixteen times as long, where 256 would be quadratic. */
static void test_text(void)
{
	enum { FEW = 4000 };
	slp_begin_plainly();
	seconds_to_parse(FEW);
	double few = seconds_to_parse(FEW), many = is_plain ? seconds_to_parse(16 * FEW) : 0;
	CHECK_SAYING(many < 40 * few, "%d lines: %.4f s, %d lines: %.4f s", FEW, few, 16 * FEW, many);
	slp_end_well();
}

static void write_chain(const char *path, int nodes)
{
	FILE *f = fopen(path, "w");
	fprintf(f, "{\"nodes\": [{\"op\": \"null\", \"name\": \"data\", \"inputs\": []}");
	for (int i = 1; i <= nodes; i++)
		fprintf(f, ",\n{\"op\": \"elemwise_add\", \"name\": \"n%d\", \"inputs\": [[%d, 0], [0, 0]]}", i, i - 1);
	fprintf(f, "], \"arg_nodes\": [0], \"heads\": [[%d, 0]]}", nodes);
	CHECK(fclose(f) == 0);
}

/* Each result is let go once nothing needs it: few have memory, and a handle of StarPU's, at a time. */
static void test_symbol(void)
{
	enum { NODES = 3000 };
	char path[PATH_MAX];
	slp_begin_plainly();
	slp_scratch_path("chain-symbol.json", path);
	write_chain(path, NODES);
	sl_block *net = sl_import(path, NULL, 0, NULL);
	CHECK(net != NULL);
	uint64_t before = slp_stats().handles;
	SL_SCOPE
		CHECK_ALL(sl_forward(net, sl_ones(SL_SHAPE(2, 3))), NODES + 1);
	uint64_t handles = slp_stats().handles - before;
	CHECK_SAYING(handles < NODES / 4, "%llu handles for %d nodes", (unsigned long long)handles, NODES);
	sl_block_free(net);
	remove(path);
	slp_end_well();
}

static const struct slp_test tests[] = {{"text", test_text}, {"symbol", test_symbol}, {0}};

int main(int argc, char **argv)
{
	static const struct slp_suite suites[] = {
	        {.name = "large", .tests = tests, .start = slp_scratch_make, .stop = slp_scratch_remove},
	        {0},
	};
	return slp_test_main(argc, argv, suites);
}
