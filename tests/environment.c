/* A test program that is started by hand runs in the environment of make check. */
#include "environment.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "folder.h"

static const struct variable {
	const char *name, *value;
} variables[] = {
#define X(name, value) {#name, #value},
#include "environment.def"
#undef X
};

/* A new folder beside the program: no run depends on what an earlier one measured. */
static bool make_home(void)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - sizeof ".home");
	if (n < 0) return false;
	strcpy(path + n, ".home");
	if (!slp_remove_folder(path) && errno != ENOENT) return false;
	return mkdir(path, 0777) == 0 && setenv("STARPU_HOME", path, 1) == 0;
}

void slp_enter_environment(char **argv)
{
	if (getenv("SLP_ENVIRONMENT")) return;
	bool ok = setenv("SLP_ENVIRONMENT", "set", 1) == 0;
	for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
		ok = ok && setenv(variables[i].name, variables[i].value, 0) == 0;
	if (ok && (getenv("STARPU_HOME") || make_home())) execv("/proc/self/exe", argv);
	fprintf(stderr, "this is not the environment of make check: %s\n", strerror(errno));
}
