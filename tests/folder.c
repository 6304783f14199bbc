/* Files of tests: those in tests/data, and a scratch folder. */
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "folder.h"

static char scratch[PATH_MAX / 2];

const char *slp_data_path(const char *name, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/tests/data/%s", SLP_SRCDIR, name);
	return path;
}

int slp_scratch_make(void)
{
	const char *tmp = getenv("TMPDIR");
	snprintf(scratch, sizeof scratch, "%s/%s.XXXXXX", tmp ? tmp : "/tmp", program_invocation_short_name);
	return mkdtemp(scratch) == NULL;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
	(void)st, (void)flag, (void)at;
	return remove(path);
}

bool slp_remove_folder(const char *path)
{
	return nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS) == 0;
}

int slp_scratch_remove(void)
{
	return !slp_remove_folder(scratch);
}

int slp_start_with_scratch(void)
{
	return slp_scratch_make() || slp_start_engine();
}

int slp_stop_with_scratch(void)
{
	return slp_stop_engine() + slp_scratch_remove();
}

const char *slp_scratch_path(const char *name, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/%s", scratch, name);
	return path;
}

void slp_write_scratch(const char *name, const void *data, size_t size)
{
	char path[PATH_MAX];
	FILE *f = fopen(slp_scratch_path(name, path), "wb");
	CHECK(f && fwrite(data, 1, size, f) == size);
	if (f) fclose(f);
}

char *slp_read_file(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	if (!f) return NULL;
	fseek(f, 0, SEEK_END);
	long n = ftell(f);
	rewind(f);
	char *data = malloc((size_t)n + 1);
	*size = data ? fread(data, 1, (size_t)n, f) : 0;
	if (data) data[*size] = '\0';
	fclose(f);
	return data;
}

bool slp_same_file(const char *a, const char *b)
{
	size_t na, nb;
	char *x = slp_read_file(a, &na), *y = slp_read_file(b, &nb);
	bool same = x && y && na == nb && !memcmp(x, y, na);
	free(x);
	free(y);
	return same;
}
