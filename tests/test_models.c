/* Performance models: what their files are called, that others in the folder are left alone, what footprints identify
 * apart. */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <starling.h>

#include "check.h"
#include "folder.h"
#include "linear/linear.h"
#include "op_list/binary.h"
#include "op_list/linear.h"
#include "runtime/device/team.h"
#include "runtime/task/record.h"

#define FOLDER ".starpu/sampling/codelets"

/* The one file that matches, below the folder of models; "" if there is none. */
static const char *find(const char *pattern, char path[PATH_MAX])
{
	char all[PATH_MAX], text[256];
	glob_t found;
	snprintf(text, sizeof text, FOLDER "/*/%s.*", pattern);
	bool one = !glob(slp_scratch_path(text, all), 0, NULL, &found) && found.gl_pathc == 1;
	snprintf(path, PATH_MAX, "%s", one ? found.gl_pathv[0] : "");
	globfree(&found);
	return path;
}

/* Measures products on teams of so many threads each. */
static void measure(int teams)
{
	slp_begin((struct sl_config){.teams = teams, .sched = "dmda"});
	SL_SCOPE {
		sl_tensor *a = sl_ones(SL_SHAPE(64, 64));
		CHECK_OK(sl_wait(a));
		for (int i = 0; i < 12; i++) CHECK_OK(sl_wait(sl_dot(a, a)));
	}
	slp_end();
}

static void start_home(void)
{
	char path[PATH_MAX];
	CHECK(slp_scratch_make() == 0);
	setenv("STARPU_HOME", slp_scratch_path("", path), 1);
	setenv("STARPU_CALIBRATE", "1", 1);
}

static void end_home(void)
{
	CHECK(slp_scratch_remove() == 0);
}

static void test_names(void)
{
	char name[64], path[PATH_MAX];
	start_home();
	measure(1);
	snprintf(name, sizeof name, "starling_dot_%d", slp_team_cores_total());
	CHECK_SAYING(*find(name, path), "there is no %s", name);
	CHECK_SAYING(!*find("dot", path), "%s", path);
	end_home();
}

/* What one team has measured is neither used nor changed by two. */
static void test_threads(void)
{
	enum { TEAMS = 2 };
	char name[64], one[PATH_MAX], two[PATH_MAX];
	size_t size, again;
	int cores = slp_team_cores_total();
	if (cores < TEAMS) return; /* teams of one thread each, as the one */
	start_home();
	measure(1);
	snprintf(name, sizeof name, "starling_dot_%d", cores);
	char *before = slp_read_file(find(name, one), &size);
	measure(TEAMS);
	if (cores % TEAMS) snprintf(name, sizeof name, "starling_dot_%d-%d", cores / TEAMS, cores / TEAMS + 1);
	else snprintf(name, sizeof name, "starling_dot_%d", cores / TEAMS);
	CHECK_SAYING(*find(name, two), "there is no %s", name);
	char *after = slp_read_file(one, &again);
	CHECK(before && after && size == again && !memcmp(before, after, size));
	free(before);
	free(after);
	end_home();
}

/* Models of other programs, and those of older versions, which were called by the operation alone. */
static void test_others(void)
{
	static const char text[] = "not a model at all\n";
	char path[PATH_MAX], other[PATH_MAX];
	size_t size;
	start_home();
	measure(1);
	snprintf(other, sizeof other, "%s", find("starling_dot_*", path));
	char *host = strrchr(other, '/') ? strchr(strrchr(other, '/'), '.') : NULL;
	if (!CHECK(host != NULL)) return;
	memmove(strrchr(other, '/') + 4, host, strlen(host) + 1);
	memcpy(strrchr(other, '/'), "/dot", 4);
	FILE *f = fopen(other, "w");
	CHECK(f && fputs(text, f) >= 0 && !fclose(f));
	measure(1);
	char *left = slp_read_file(other, &size);
	CHECK(left && !strcmp(left, text));
	free(left);
	end_home();
}

/* ---- footprints -------------------------------------------------------------------------------------------------- */

static uint32_t footprint(const struct sl_op *op, void *attrs, enum sl_dtype dtype, int64_t rows)
{
	/* Two of them count; functions of an operation that has more look at those, too. */
	struct slp_type x = {dtype, SL_SHAPE(rows, 8)}, w = {dtype, SL_SHAPE(8, 8)}, in[] = {x, w, x, x, w, w}, out = x;
	struct slp_infer c = {op, SL_HERE, attrs, 2, 1, in, &out};
	struct slp_call_list list = {0};
	CHECK(slp_call_list_add(&list, &c, 1) != NULL);
	free(list.records);
	return list.footprint;
}

static void test_footprints(void)
{
	struct {
		bool ta, tb;
	} plain = {false, false}, turned = {false, true};
	uint32_t f = footprint(&slp_op_dot, &plain, SL_FLOAT32, 8);
	/* What was measured stays known: this number changes when operations are measured anew. */
	CHECK_SAYING(f == 0xa561123e, "%#x", f);
	CHECK(f == footprint(&slp_op_dot, &plain, SL_FLOAT32, 8));
	CHECK(f != footprint(&slp_op_dot, &turned, SL_FLOAT32, 8));
	CHECK(f != footprint(&slp_op_dot, &plain, SL_FLOAT64, 8));
	CHECK(f != footprint(&slp_op_dot, &plain, SL_FLOAT32, 9));
	CHECK(footprint(&slp_op_add, NULL, SL_FLOAT32, 8) != footprint(&slp_op_sub, NULL, SL_FLOAT32, 8));
}

/* A learning rate changes numbers, not the work. */
static void test_values(void)
{
	struct slp_linear_grad_attrs a = {.lr = 0.1}, b = {.lr = 0.2}, c = {.lr = 0.1, .tw = true};
	uint32_t f = footprint(&slp_op_linear_sgd, &a, SL_FLOAT32, 8);
	CHECK(f == footprint(&slp_op_linear_sgd, &b, SL_FLOAT32, 8));
	CHECK(f != footprint(&slp_op_linear_sgd, &c, SL_FLOAT32, 8));
}

static const struct slp_test file_tests[] = {
        {"names", test_names}, {"threads of a team", test_threads}, {"models of others", test_others}, {0}};
static const struct slp_test footprint_tests[] = {{"footprints", test_footprints}, {"values", test_values}, {0}};

int main(int argc, char **argv)
{
	return slp_test_main(argc, argv,
	                     (const struct slp_suite[]){{.name = "files", .tests = file_tests},
	                                                {.name = "footprints", .tests = footprint_tests},
	                                                {0}});
}
