/* Numbered files of a folder: which there are, and removing the oldest. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alloc.h"
#include "io/durable.h"
#include "io/numbered.h"

static const char before[] = "checkpoint-", after[] = ".safetensors";

/* -1: the name of another file. */
static int64_t number_of(const char *name)
{
	enum { MOST_DIGITS = 18 };
	size_t n = strlen(before);
	if (strncmp(name, before, n)) return -1;
	size_t digits = strspn(name + n, "0123456789");
	if (!digits || digits > MOST_DIGITS || strcmp(name + n + digits, after)) return -1;
	return strtoll(name + n, NULL, 10);
}

static int newest_first(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return x > y ? -1 : x < y;
}

static bool append(int64_t **list, int *count, int64_t number)
{
	enum { STEP = 64 };
	if (*count % STEP == 0) {
		int64_t *more = slp_realloc(*list, ((size_t)*count + STEP) * sizeof *more);
		if (!more) return false;
		*list = more;
	}
	(*list)[(*count)++] = number;
	return true;
}

int64_t *slp_numbered_list(const char *folder, int *count)
{
	int64_t *list = slp_malloc(sizeof *list);
	DIR *dir = list ? opendir(folder) : NULL;
	bool ok = dir != NULL;
	*count = 0;
	for (struct dirent *e; ok && (e = readdir(dir));) {
		int64_t number = number_of(e->d_name);
		ok = number < 0 || append(&list, count, number);
	}
	int error = errno;
	if (dir) closedir(dir);
	errno = error;
	if (!ok) {
		free(list);
		return NULL;
	}
	qsort(list, (size_t)*count, sizeof *list, newest_first);
	return list;
}

char *slp_numbered_path(const char *folder, int64_t number)
{
	return slp_format("%s/%s%06lld%s", folder, before, (long long)number, after);
}

bool slp_numbered_make(const char *folder)
{
	struct stat s;
	if (mkdir(folder, 0777) == 0) return true;
	if (errno != EEXIST || stat(folder, &s)) return false;
	errno = ENOTDIR;
	return S_ISDIR(s.st_mode);
}

void slp_numbered_prune(const char *folder, int keep)
{
	int count;
	int64_t *list = slp_numbered_list(folder, &count);
	for (int i = keep; list && i < count; i++) {
		char *path = slp_numbered_path(folder, list[i]);
		if (path) unlink(path);
		free(path);
	}
	free(list);
	slp_durable_sweep(folder);
}
