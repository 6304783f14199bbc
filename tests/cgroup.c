/* More main memory than a control group may have: SL_ENOMEM at once that says so, where the system would end the
 * process; what came before is whole.  cgroup.sh runs it in groups that it makes, and says what the errors must
 * name. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "out_of_memory.h"
#include "check.h"

enum { MIB = 1 << 20 };
static const char *whose;

/* What the program's heap keeps counts for the group, though nothing is in it. */
static void test_freed(void)
{
	enum { PIECES = 7000, BYTES = 64 << 10 };
	static void *pieces[PIECES];
	for (int i = 0; i < PIECES; i++)
		if (CHECK((pieces[i] = malloc(BYTES)) != NULL)) memset(pieces[i], 1, BYTES);
	void *volatile above = malloc(BYTES); /* the heap cannot become shorter */
	for (int i = 0; i < PIECES; i++) free(pieces[i]);
	SL_SCOPE
		CHECK_ALL(sl_full(SL_SHAPE(32 * MIB), 3), 3);
	free(above);
}

static void test_giants(void)
{
	slp_check_giants(whose);
}

static void test_large(void)
{
	slp_use_up(4 * MIB, 4, whose);
}

/* Their memory is asked for when their tasks are submitted. */
static void test_small(void)
{
	slp_use_up(15000, 200, whose);
}

static void from_the_start(bool on)
{
	(void)on;
}

static void test_training(void)
{
	slp_train_until_full(false, from_the_start);
}

static void test_training_hybrid(void)
{
	slp_train_until_full(true, from_the_start);
}

int main(int argc, char **argv)
{
	whose = getenv("CGROUP_WHOSE");
	if (!whose) {
		puts("cgroup.sh runs this");
		return 77;
	}
	mallopt(M_MMAP_THRESHOLD, MIB); /* what is large goes back to the system when it is freed */
	static const struct slp_test fitting[] = {{"freed memory", test_freed},
	                                          {"giants", test_giants},
	                                          {"large tensors", test_large},
	                                          {"small tensors", test_small},
	                                          {0}};
	static const struct slp_test training[] = {
	        {"training", test_training}, {"training, hybrid", test_training_hybrid}, {0}};
	static const struct slp_suite suites[] = {{"tensors", fitting, slp_start_engine, slp_stop_engine, NULL, NULL},
	                                          {"networks", training, NULL, NULL, NULL, slp_end},
	                                          {0}};
	return slp_test_main(argc, argv, suites);
}
