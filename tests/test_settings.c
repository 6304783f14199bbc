/* Settings: seeds, environment variables, scheduling policies. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <starling.h>

#include "check.h"
#include "folder.h"
#include "op.h"
#include "runtime/compat.h"
#include "runtime/engine.h"
#include "runtime/settings/environment.h"

static bool same_rng(struct slp_rng a, struct slp_rng b)
{
	return a.seed == b.seed && a.stream == b.stream;
}

static void test_seeds(void)
{
	slp_begin((struct sl_config){.seed = 42});
	struct slp_rng a = slp_rng_next(), b = slp_rng_next();
	CHECK(a.seed == 42);
	CHECK(!same_rng(a, b));
	sl_seed(42);
	CHECK(same_rng(slp_rng_next(), a) && same_rng(slp_rng_next(), b));
	sl_seed(43);
	CHECK(!same_rng(slp_rng_next(), a));
	sl_shutdown();
	slp_begin((struct sl_config){.seed = 42});
	CHECK(same_rng(slp_rng_next(), a));
	sl_shutdown();
	sl_seed(7); /* before the engine starts by itself */
	CHECK_OK(sl_init(NULL));
	CHECK(slp_rng_next().seed == 7);
	sl_shutdown();
}

/* Names that are not known are reported with the nearest that is; tests/values.sh sees the message. */
static void test_names(void)
{
	static const char *const rows[][2] = {{"SL_BULK", "SL_BULK"},
	                                      {"SL_BULKS", "SL_BULK"},
	                                      {"SL_RUNAHEAD_TASK", "SL_RUNAHEAD_TASKS"},
	                                      {"SL_RUN_AHEAD_BYTES", "SL_RUNAHEAD_BYTES"},
	                                      {"SL_DETERMINISTIC_DEADLINE", "SL_DEADLINE"}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		int difference = -1;
		const char *nearest = slp_env_nearest(rows[i][0], strlen(rows[i][0]), &difference);
		CHECK_SAYING(nearest && (i == 4 || !strcmp(nearest, rows[i][1])), "%s: %s", rows[i][0], nearest);
		CHECK((difference == 0) == (i == 0) && (i == 0 || i == 4 || difference == 1));
	}
	CHECK(!slp_env_nearest(rows[0][0], 1000, &(int){0}));
}

/* Starts and stops the engine with a variable set; what it wrote to stderr goes into text. */
static enum sl_status try_with(const char *name, const char *value, struct sl_config config, char *text, size_t size)
{
	FILE *file = tmpfile();
	fflush(stderr);
	int saved = dup(STDERR_FILENO);
	dup2(fileno(file), STDERR_FILENO);
	setenv(name, value, 1);
	enum sl_status s = sl_init(&config);
	sl_shutdown();
	unsetenv(name);
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
	rewind(file);
	text[fread(text, 1, size - 1, file)] = '\0';
	fclose(file);
	return s;
}

static void init_with(const char *name, const char *value, struct sl_config config, char *text, size_t size)
{
	enum sl_status s = try_with(name, value, config, text, size);
	CHECK_SAYING(s == SL_OK, "%s=%s: %s", name, value, sl_error_message());
}

static void check_variable(const char *name, const char *value, bool refused)
{
	char text[4096], setting[64];
	snprintf(setting, sizeof setting, "%s=%s", name, value);
	enum sl_status s = try_with(name, value, (struct sl_config){0}, text, sizeof text);
	CHECK_SAYING(s == (refused ? SL_EINVAL : SL_OK), "%s: status %d", setting, (int)s);
	CHECK_SAYING(!refused || strstr(sl_error_message(), setting), "%s: %s", setting, sl_error_message());
	sl_error_clear();
}

static void test_malformed_variables(void)
{
	check_variable("SL_BULK", "x", true);
	check_variable("SL_BULK", "0", true);
	check_variable("SL_BULK", "7 ", true);
	check_variable("SL_BULK", "7", false);
	check_variable("SL_BULK", "", false);
	check_variable("SL_RUNAHEAD_TASKS", "-3", true);
	check_variable("SL_DEADLINE", "soon", true);
	check_variable("SL_DEADLINE_ERROR", "yes", true);
	check_variable("SL_NAN", "yes", true);
	check_variable("SL_PRIORITIES", "-1", true);
	check_variable("SL_CUDNN_GRAPH", "1.5", true);
	check_variable("SL_GPU_AUTOTUNE", "x", true);
	check_variable("SL_FUZZ_SEED", "-1", true);
	check_variable("SL_TF32", "half", true);
	check_variable("SL_NAN", "1", false);
	check_variable("SL_RUNAHEAD_BYTES", "99999999999999999999999", true);
	check_variable("SL_UNTRUSTED_BYTES", "-1", true);
	check_variable("SL_UNTRUSTED_SECONDS", "nan", true);
	check_variable("SL_UNTRUSTED_SECONDS", "0.5", false);
	check_variable("SL_UNTRUSTED_OPERATIONS", "1e9x", true);
	check_variable("SL_UNTRUSTED_OPERATIONS", "1e9", false);
	check_variable("STARPU_NCPU", "two", true);
	check_variable("STARPU_NCUDA", "-1", true);
	check_variable("STARPU_WORKERS_COREID", "0,one", true);
	check_variable("STARPU_WORKERS_CPUID", "+0", true);
	check_variable("STARPU_WORKERS_CPUID", "0-", false);
}

/* One rule for all that are numbers: decimal digits, and in some a fraction; an empty one is not set. */
static void test_form_of_numbers(void)
{
	static const char *const names[] = {"STARPU_NCPU",
	                                    "STARPU_NCUDA",
	                                    "STARPU_RESERVE_NCPU",
	                                    "STARPU_CALIBRATE",
	                                    "STARPU_SCHED_ALPHA",
	                                    "STARPU_LIMIT_CPU_MEM",
	                                    "STARPU_TCPIP_MS_SLAVES",
	                                    "STARPU_WORKERS_NOBIND",
	                                    "SL_BULK",
	                                    "SL_RUNAHEAD_TASKS",
	                                    "SL_RUNAHEAD_BYTES",
	                                    "SL_EXPLAIN",
	                                    "SL_CUDA_GRAPHS",
	                                    "SL_DEADLINE",
	                                    "SL_DEADLINE_ERROR",
	                                    "SL_NAN",
	                                    "SL_PRIORITIES",
	                                    "SL_CUDNN_GRAPH",
	                                    "SL_GPU_AUTOTUNE",
	                                    "SL_FUZZ_SEED",
	                                    "SL_FIXED_SUMS",
	                                    "SL_WINOGRAD",
	                                    "SL_CHANNELS_LAST",
	                                    "SL_TEAM_THREADS",
	                                    "SL_SIMULATED_NODES",
	                                    "SL_UNTRUSTED_BYTES",
	                                    "SL_UNTRUSTED_SECONDS",
	                                    "SL_UNTRUSTED_OPERATIONS"};
	static const char *const wrong[] = {" 1", "1 ",      "\t1", "+1",  "1x",
	                                    "x",  "0x1",     "1,5", "nan", "inf",
	                                    "-1", "1e99999", "--1", "1 2", "99999999999999999999999e"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		bool negative = !strcmp(names[i], "STARPU_SCHED_ALPHA"); /* StarPU takes any */
		for (size_t j = 0; j < sizeof wrong / sizeof *wrong; j++)
			if (!negative || strcmp(wrong[j], "-1")) check_variable(names[i], wrong[j], true);
	}
	check_variable("SL_WINOGRAD", "", false);
	check_variable("STARPU_NCPU", "", false);
	check_variable("STARPU_NCPU", "01", false);
}

/* What reading a file costs at most: the message names the file and the limit. */
static void test_untrusted(void)
{
	char path[PATH_MAX];
	slp_begin_plainly();
	slp_scratch_path("x.npy", path);
	SL_SCOPE
		CHECK_OK(sl_save_npy(sl_zeros(SL_SHAPE(1 << 20)), path));
	slp_end_well();
	slp_begin((struct sl_config){.untrusted = {.bytes = 1 << 30, .seconds = 100, .operations = 1e9}});
	SL_SCOPE
		CHECK(sl_load_npy(path) && sl_wait_all() == SL_OK);
	sl_shutdown();
	slp_begin((struct sl_config){.untrusted = {.operations = 1e6}});
	SL_SCOPE
		CHECK_NULL(sl_load_npy(path), SL_ETIME, "x.npy", "sl_config.untrusted");
	sl_shutdown();
	slp_begin((struct sl_config){.untrusted = {.bytes = 1 << 20}});
	SL_SCOPE
		CHECK_NULL(sl_load_npy(path), SL_ENOMEM, "x.npy", "sl_config.untrusted");
	sl_shutdown();
	remove(path);
	CHECK_STATUS(sl_init(&(struct sl_config){.untrusted = {.seconds = -1}}), SL_EINVAL, "untrusted");
	sl_error_clear();
}

static const char *const places[] = {"STARPU_HOME", "XDG_CACHE_HOME", "HOME", "STARPU_PERF_MODEL_DIR", "TMPDIR"};
enum { PLACES = sizeof places / sizeof *places, TEMPORARY = PLACES - 1 };

/* Where no variable names a place for StarPU's measurements, a folder of this user's own does, as long as it runs: none
 * that a stranger may have put where StarPU would look. */
static void test_no_home(void)
{
	char *before[PLACES], folder[PATH_MAX], measured[PATH_MAX + 32];
	struct stat s;
	slp_scratch_path("temporary", folder);
	CHECK(mkdir(folder, 0777) == 0);
	for (int i = 0; i < PLACES; i++) {
		before[i] = getenv(places[i]) ? strdup(getenv(places[i])) : NULL;
		unsetenv(places[i]);
	}
	setenv(places[TEMPORARY], folder, 1);
	CHECK_OK(sl_init(NULL));
	const char *home = getenv("STARPU_HOME");
	CHECK(home && !strncmp(home, folder, strlen(folder)));
	CHECK(home && !lstat(home, &s) && S_ISDIR(s.st_mode) && s.st_uid == geteuid() && (s.st_mode & 0777) == 0700);
	snprintf(measured, sizeof measured, "%s/.starpu/sampling", home ? home : "");
	CHECK(access(measured, F_OK) == 0);
	sl_shutdown();
	CHECK(!getenv("STARPU_HOME"));
	CHECK_SAYING(rmdir(folder) == 0, "something is left in %s", folder);
	for (int i = 0; i < PLACES; i++) {
		if (before[i]) setenv(places[i], before[i], 1);
		else unsetenv(places[i]);
		free(before[i]);
	}
}

static void test_no_devices(void)
{
	setenv("STARPU_NCPU", "0", 1);
	CHECK_STATUS(sl_init(&(struct sl_config){.gpus = -1}), SL_EDEVICE, "STARPU_NCPU=0");
	unsetenv("STARPU_NCPU");
	sl_error_clear();
}

static void test_variables(void)
{
	char text[4096];
	init_with("SL_BULK", "7", (struct sl_config){0}, text, sizeof text);
	CHECK(slp_engine.config.bulk == 7);
	init_with("SL_BULK", "7", (struct sl_config){.bulk = 3}, text, sizeof text);
	CHECK(slp_engine.config.bulk == 3);
	init_with("STARPU_NCPU", "2", (struct sl_config){0}, text, sizeof text);
	CHECK(slp_engine.config.teams == 2);
	init_with("SL_RUNAHEAD_TASKS", "5", (struct sl_config){0}, text, sizeof text);
	CHECK(slp_engine.config.runahead_tasks == 5);
	init_with("SL_RUNAHEAD_TASKS", "4294967296", (struct sl_config){0}, text,
	          sizeof text); /* 0 as an int: it hung */
	CHECK(slp_engine.config.runahead_tasks == INT_MAX);
	init_with("SL_RUNAHEAD_BYTES", "12345678", (struct sl_config){0}, text, sizeof text);
	CHECK(slp_engine.config.runahead_bytes == 12345678);
	init_with("STARPU_SCHED", "eager", (struct sl_config){0}, text, sizeof text);
	CHECK(!strcmp(slp_engine.config.sched, "eager"));
}

#if SLP_STARPU_1_4
/* StarPU takes what the config says, whatever the variable says. */
static void test_policy(void)
{
	setenv("STARPU_SCHED", "eager", 1);
	slp_begin((struct sl_config){.sched = "prio"});
	CHECK(!strcmp(starpu_sched_get_sched_policy()->policy_name, "prio"));
	sl_shutdown();
	slp_begin((struct sl_config){0});
	CHECK(!strcmp(starpu_sched_get_sched_policy()->policy_name, "eager"));
	sl_shutdown();
	unsetenv("STARPU_SCHED");
}
#endif

static const struct slp_test tests[] = {
        {"seeds", test_seeds},
        {"names", test_names},
        {"malformed variables", test_malformed_variables},
        {"form of numbers", test_form_of_numbers},
        {"untrusted", test_untrusted},
        {"no home", test_no_home},
        {"no devices", test_no_devices},
        {"variables", test_variables},
#if SLP_STARPU_1_4
        {"policy", test_policy},
#endif
        {0},
};

int main(int argc, char **argv)
{
	const struct slp_suite suites[] = {{.name = "settings", .tests = tests, .after = slp_end}, {0}};
	return slp_test_main(argc, argv, suites);
}
