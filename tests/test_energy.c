/* Energy of a run: counters of RAPL from a folder like the kernel's, and, on emulated GPUs, NVML from a library like
 * NVIDIA's (tests/emu/nvml.c). */
#include <CUnit/CUnit.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "folder.h"

static const double range = 262143328850; /* microjoules, of a Xeon */

static void put(const char *zone, const char *file, const char *text)
{
	char name[128];
	snprintf(name, sizeof name, "%s/%s", zone, file);
	slp_write_scratch(name, text, strlen(text));
}

static void set(const char *zone, double microjoules)
{
	char text[64];
	snprintf(text, sizeof text, "%.0f\n", microjoules);
	put(zone, "energy_uj", text);
}

/* A counter, as the kernel shows it. */
static void add_zone(const char *zone, const char *name, double microjoules)
{
	char path[PATH_MAX], text[64];
	mkdir(slp_scratch_path(zone, path), 0777);
	snprintf(text, sizeof text, "%s\n", name);
	put(zone, "name", text);
	snprintf(text, sizeof text, "%.0f\n", range);
	put(zone, "max_energy_range_uj", text);
	set(zone, microjoules);
}

static void use_folder(const char *path)
{
	setenv("SL_POWERCAP", path, 1);
}

/* A folder of counters as at first, and the engine. */
static void begin(struct sl_config config)
{
	char path[PATH_MAX];
	add_zone("intel-rapl:0", "package-0", 1000);
	add_zone("intel-rapl:1", "package-1", range - 3e6);
	add_zone("intel-rapl:0:0", "dram", 0);
	add_zone("intel-rapl:0:1", "core", 0);
	add_zone("intel-rapl:2", "psys", 0);
	add_zone("intel-rapl-mmio:0", "package-0", 0);
	use_folder(slp_scratch_path("", path));
	slp_begin(config);
}

static struct sl_energy energy(void)
{
	struct sl_energy e;
	sl_energy_get(&e);
	return e;
}

static void check_joules(double joules)
{
	struct sl_energy e = energy();
	CHECK_SAYING(fabs(e.cpu - joules) < 1e-6 && !*e.no_cpu, "%.9f J instead of %.9f: %s", e.cpu, joules, e.no_cpu);
}

/* Packages and memory are added; parts and sums of packages, and the same counters at other addresses, are not. */
static void test_counters(void)
{
	begin((struct sl_config){.gpus = -1});
	CHECK(isnan(energy().cpu) && energy().seconds == 0 && *energy().no_cpu);
	CHECK_OK(sl_energy_start());
	check_joules(0);
	set("intel-rapl:0", 5e6 + 1000);
	check_joules(5);
	set("intel-rapl:0:0", 2e6);
	check_joules(7);
	set("intel-rapl:0:1", 1e6);
	set("intel-rapl:2", 9e6);
	set("intel-rapl-mmio:0", 9e6);
	check_joules(7);
	CHECK_SAYING(strstr(energy().no_gpu, "no GPU is used") && isnan(energy().gpu), "%s", energy().no_gpu);
	CHECK_OK(sl_energy_start());
	check_joules(0);
	sl_shutdown();
}

/* A counter that has passed its limit begins again at 0. */
static void test_overflow(void)
{
	begin((struct sl_config){.gpus = -1});
	CHECK_OK(sl_energy_start());
	set("intel-rapl:1", 1.5e6);
	check_joules(4.5);
	set("intel-rapl:1", range - 1e6);
	check_joules(1e-6 * range + 2);
	set("intel-rapl:1", 0);
	check_joules(1e-6 * range + 3);
	sl_shutdown();
}

static char *printed(size_t *size)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, size);
	sl_stats_print(f);
	fclose(f);
	return text;
}

/* What cannot be read is said, with the file; it does not fail. */
static void test_unreadable(void)
{
	char path[PATH_MAX], kept[PATH_MAX];
	size_t size;
	begin((struct sl_config){.gpus = -1});
	snprintf(kept, sizeof kept, "%s", getenv("SL_POWERCAP"));
	use_folder(slp_scratch_path("missing", path));
	CHECK_OK(sl_energy_start());
	CHECK_SAYING(isnan(energy().cpu) && strstr(energy().no_cpu, "No such file"), "%s", energy().no_cpu);
	char *text = printed(&size);
	CHECK_SAYING(strstr(text, "energy of the processors: unknown: ") != NULL, "%s", text);
	free(text);
	use_folder(kept);
	put("intel-rapl:0", "energy_uj", "12x\n");
	CHECK_OK(sl_energy_start());
	CHECK_SAYING(isnan(energy().cpu) && strstr(energy().no_cpu, "not a number"), "%s", energy().no_cpu);
	set("intel-rapl:0", 1000);
	CHECK_OK(sl_energy_start());
	unlink(slp_scratch_path("intel-rapl:0/energy_uj", path)); /* while it counts */
	CHECK_SAYING(isnan(energy().cpu) && strstr(energy().no_cpu, "energy_uj"), "%s", energy().no_cpu);
	set("intel-rapl:0", 1000);
	CHECK_OK(sl_energy_start());
	text = printed(&size);
	CHECK_SAYING(strstr(text, "energy of the processors: 0.000 J") != NULL, "%s", text);
	free(text);
	sl_shutdown();
}

#ifdef SLP_EMULATE
/* Two GPUs: the library's counter of the second one is ten times the first one's, and both rise with every reading. */
static void test_gpus(void)
{
	begin((struct sl_config){.gpus = 2});
	CHECK_OK(sl_energy_start());
	double before = energy().gpu, after = energy().gpu;
	CHECK_SAYING(fabs(after - before - 11) < 1e-9 && !*energy().no_gpu, "%g J, %g J: %s", before, after,
	             energy().no_gpu);
	setenv("NVML_FAILS", "1", 1);
	struct sl_energy e = energy();
	CHECK_SAYING(isnan(e.gpu) && strstr(e.no_gpu, "GPU is lost"), "%g: %s", e.gpu, e.no_gpu);
	CHECK_OK(sl_energy_start());
	CHECK_SAYING(isnan(energy().gpu) && strstr(energy().no_gpu, "GPU is lost"), "%s", energy().no_gpu);
	unsetenv("NVML_FAILS");
	CHECK_OK(sl_energy_start());
	CHECK(energy().gpu > 0);
	sl_shutdown();
}
#endif

static const struct slp_test tests[] = {
        {"counters", test_counters},
        {"overflow", test_overflow},
        {"unreadable", test_unreadable},
#ifdef SLP_EMULATE
        {"GPUs", test_gpus},
#endif
        {NULL, NULL},
};

static const struct slp_suite suites[] = {
        {.name = "energy", .tests = tests, .start = slp_scratch_make, .stop = slp_scratch_remove, .after = slp_end},
        {0},
};

int main(int argc, char **argv)
{
	return slp_test_main(argc, argv, suites);
}
