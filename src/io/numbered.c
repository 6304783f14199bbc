/* Numbered files of a folder: lists them and removes the oldest. */
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
#include "io/params.h"

static const char before[] = "checkpoint-", after[] = ".safetensors";

/* Of any number: int64_t holds them. */
enum { MOST_DIGITS = 18 };

/* -1: the name of another file.  A name that slp_numbered_path would not give is one, too. */
static int64_t number_of(const char *name)
{
	char again[64];
	size_t n = strlen(before);
	if (strncmp(name, before, n) || strspn(name + n, "0123456789") > MOST_DIGITS) return -1;
	int64_t number = strtoll(name + n, NULL, 10);
	snprintf(again, sizeof again, "%s%06lld%s", before, (long long)number, after);
	return strcmp(name, again) ? -1 : number;
}

static bool is_numbered(const char *name)
{
	return number_of(name) >= 0;
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

int64_t slp_numbered_next(const int64_t *list, int count)
{
	static const int64_t largest = 999999999999999999; /* MOST_DIGITS */
	if (!count) return 1;
	return list[0] < largest ? list[0] + 1 : -1;
}

/* Removes a checkpoint; not a stranger's file of that name. */
static bool remove_one(const char *folder, int64_t number)
{
	char *path = slp_numbered_path(folder, number);
	bool removed = path && slp_seal_is_file(path) && unlink(path) == 0;
	free(path);
	return removed;
}

void slp_numbered_prune(const char *folder, int keep)
{
	int count;
	int64_t *list = slp_numbered_list(folder, &count);
	for (int i = keep; list && i < count; i++) remove_one(folder, list[i]);
	free(list);
	slp_durable_sweep(folder, is_numbered);
}

bool slp_numbered_drop_oldest(const char *folder)
{
	int count;
	bool removed = false;
	int64_t *list = slp_numbered_list(folder, &count);
	for (int i = count - 1; list && !removed && i > 0; i--) removed = remove_one(folder, list[i]);
	free(list);
	return removed;
}
