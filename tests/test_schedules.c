/* Schedules at random: training runs compute the same bits under each seed of the policy starling-fuzz.  SCHEDULES is
 * how many seeds each run is tried with; a seed that fails is reported, and can be tried again with
 * STARPU_SCHED=starling-fuzz SL_FUZZ_SEED=… or SCHEDULES=1 SCHEDULES_FIRST=…. */
#include <stdatomic.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <starling.h>

#include "chaos/run.h"
#include "check.h"
#include "folder.h"
#include "runtime/task/fuzz.h"

static const struct {
	const char *name;
	struct run_options options;
} runs[] = {
        {"lenet", {.net = RUN_LENET}},
        {"lenet, call by call", {.net = RUN_LENET, .eager = true}},
        {"lenet on two devices", {.net = RUN_LENET, .shards = 2, .devices = 2}},
        {"lenet on two devices, call by call", {.net = RUN_LENET, .eager = true, .shards = 2, .devices = 2}},
};
enum { RUNS = sizeof runs / sizeof *runs, STEPS = 3, TEAMS = 2 };

static long number(const char *variable, long otherwise)
{
	const char *text = getenv(variable);
	return text ? atol(text) : otherwise;
}

static sl_dataset *begin(const char *policy)
{
	char folder[PATH_MAX];
	slp_begin((struct sl_config){.teams = TEAMS, .sched = policy, .bulk = 2});
	sl_dataset *data = run_data(slp_scratch_path("", folder), RUN_SAMPLES, 1);
	CHECK(data != NULL);
	return data;
}

static uint32_t bits_of(struct run_options o, sl_dataset *data)
{
	struct run r;
	sl_seed(3);
	CHECK(run_start(&r, o, data) && run_steps(&r, STEPS));
	uint32_t bits = run_bits(&r);
	run_stop(&r);
	CHECK_OK(sl_wait_all());
	return bits;
}

/* Small operations on auto, whose workers the policy chooses: a chain, a tree, updates in place. */
static double sums(void)
{
	double sum = 0;
	sl_seed(5);
	SL_SCOPE {
		sl_tensor *total = sl_zeros(SL_SHAPE(40)), *last = sl_uniform(SL_SHAPE(40), 0, 1), *parts[16];
		for (int i = 0; i < 16; i++) {
			parts[i] = sl_mul(sl_uniform(SL_SHAPE(40), -1, 1), last);
			sl_add_(total, parts[i]);
			last = sl_add(last, parts[i / 2]);
			sl_mul_scalar_(parts[i / 3], 0.5);
		}
		for (int n = 8; n; n /= 2)
			for (int i = 0; i < n; i++) parts[i] = sl_add(parts[2 * i], parts[2 * i + 1]);
		sum = sl_item(sl_sum(sl_add(sl_mul(total, last), parts[0])));
	}
	return sum;
}

static void test_same_bits(void)
{
	uint32_t expected[RUNS];
	sl_dataset *data = begin("lws");
	for (int i = 0; i < RUNS; i++) expected[i] = bits_of(runs[i].options, data);
	double sum = sums();
	sl_dataset_free(data);
	slp_end_well();

	long first = number("SCHEDULES_FIRST", 1), count = number("SCHEDULES", 200);
	data = begin(SLP_FUZZ_POLICY);
	uint64_t overtaken = atomic_load(&slp_fuzz_overtaken);
	for (long seed = first; seed < first + count; seed++) {
		int i = (int)(seed % RUNS);
		slp_fuzz_seed((uint64_t)seed);
		uint32_t bits = bits_of(runs[i].options, data);
		CHECK_SAYING(bits == expected[i], "SL_FUZZ_SEED=%ld: %s: bits %08x instead of %08x", seed, runs[i].name,
		             bits, expected[i]);
		double again = sums();
		CHECK_SAYING(again == sum, "SL_FUZZ_SEED=%ld: sums: %a instead of %a", seed, again, sum);
	}
	overtaken = atomic_load(&slp_fuzz_overtaken) - overtaken;
	CHECK_SAYING(count < 10 || overtaken > (uint64_t)count, "%llu tasks overtook others: the policy orders nothing",
	             (unsigned long long)overtaken);
	printf("%ld seeds, %llu tasks overtook others\n", count, (unsigned long long)overtaken);
	sl_dataset_free(data);
	slp_end_well();
}

static const struct slp_test tests[] = {{"same bits", test_same_bits}, {0}};

int main(int argc, char **argv)
{
	static const struct slp_suite suites[] = {
	        {.name = "schedules", .tests = tests, .start = slp_scratch_make, .stop = slp_scratch_remove},
	        {0},
	};
	return slp_test_main(argc, argv, suites);
}
