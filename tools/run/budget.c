/* Limits of a run: memory by RLIMIT_DATA, which the library obeys; time by a thread that reads the clocks. */
#include "budget.h"

#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <starling/base.h>

/* The fixed cost of a file, and the cost of a byte: a parameter is copied, packed and converted, its products take
 * time. */
static const int64_t least_bytes = 256 << 20, bytes_a_byte = 32;
static const double least_seconds = 2, seconds_a_byte = 1e-6;

struct run_budget run_budget_for(struct run_budget asked, int64_t file_bytes)
{
	if (isnan(asked.seconds)) asked.seconds = least_seconds + seconds_a_byte * (double)file_bytes;
	if (asked.bytes < 0) asked.bytes = least_bytes + bytes_a_byte * file_bytes;
	return asked;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

int64_t run_file_bytes(const char *path)
{
	struct stat s;
	return path && stat(path, &s) == 0 && S_ISREG(s.st_mode) ? (int64_t)s.st_size : 0;
}

/* Bytes of a folder's files, or of those alone whose names occur in `text`. */
static int64_t folder_bytes(const char *folder, const char *text, size_t size, int depth)
{
	int64_t bytes = 0;
	DIR *dir = depth ? opendir(folder) : NULL;
	for (struct dirent *e; dir && (e = readdir(dir));) {
		char path[PATH_MAX];
		bool named = !text || memmem(text, size, e->d_name, strlen(e->d_name));
		if (*e->d_name == '.' || !named) continue;
		if (snprintf(path, sizeof path, "%s/%s", folder, e->d_name) >= (int)sizeof path) continue;
		bytes += run_file_bytes(path) + folder_bytes(path, NULL, 0, depth - 1);
	}
	if (dir) closedir(dir);
	return bytes;
}

/* Parameters may be in other files beside the model, which names them. */
int64_t run_model_bytes(const char *path)
{
	int64_t bytes = run_file_bytes(path);
	char folder[PATH_MAX];
	const char *slash = strrchr(path, '/');
	FILE *f = fopen(path, "rb");
	char *text = f && bytes > 0 ? malloc((size_t)bytes) : NULL;
	size_t size = text ? fread(text, 1, (size_t)bytes, f) : 0;
	if (f) fclose(f);
	snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
	if (size) bytes += folder_bytes(folder, text, size, 2);
	free(text);
	return bytes;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Data of this process, as the system's limit counts them; -1: unknown. */
static int64_t data_bytes(void)
{
	long pages[6] = {0};
	FILE *f = fopen("/proc/self/statm", "r");
	int n = f ? fscanf(f, "%ld %ld %ld %ld %ld %ld", &pages[0], &pages[1], &pages[2], &pages[3], &pages[4],
	                   &pages[5])
	          : 0;
	if (f) fclose(f);
	return n == 6 ? pages[5] * sysconf(_SC_PAGESIZE) : -1;
}

/* CUDA maps more than it uses. */
static struct rlimit before;
static bool is_limited;

static void limit_memory(int64_t bytes)
{
	struct rlimit limit;
	int64_t now = data_bytes();
	if (!bytes || now < 0 || sl_device_count(SL_DEVICE_GPU) || getrlimit(RLIMIT_DATA, &limit)) return;
	rlim_t most = (rlim_t)(now + bytes);
	if (most > limit.rlim_cur) return;
	before = limit;
	is_limited = true;
	limit.rlim_cur = most;
	setrlimit(RLIMIT_DATA, &limit); /* without it only the machine's memory limits the run */
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

static struct {
	atomic_bool over;
	double seconds;
	const char *model;
} watch;

static double clock_of(clockid_t id)
{
	struct timespec t = {0};
	clock_gettime(id, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* On a machine that others use, too, the processor's time decides. */
static void *watch_clocks(void *unused)
{
	double wall = clock_of(CLOCK_MONOTONIC), own = clock_of(CLOCK_PROCESS_CPUTIME_ID);
	while (!atomic_load(&watch.over)) {
		nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
		if (clock_of(CLOCK_MONOTONIC) - wall < watch.seconds) continue;
		if (clock_of(CLOCK_PROCESS_CPUTIME_ID) - own < watch.seconds) continue;
		if (atomic_load(&watch.over)) break;
		fprintf(stderr,
		        "sl-run: %s takes longer than %g s for its size; --time-limit allows more (0: any time)\n",
		        watch.model, watch.seconds);
		_exit(1);
	}
	return unused;
}

void run_budget_begin(struct run_budget limits, const char *model)
{
	pthread_t thread;
	limit_memory(limits.bytes);
	watch.seconds = limits.seconds;
	watch.model = model;
	if (limits.seconds > 0 && !pthread_create(&thread, NULL, watch_clocks, NULL)) pthread_detach(thread);
}

void run_budget_end(void)
{
	atomic_store(&watch.over, true);
	if (is_limited) setrlimit(RLIMIT_DATA, &before);
}

void run_budget_explain(struct run_budget limits)
{
	if (sl_error() == SL_ENOMEM && limits.bytes)
		fprintf(stderr,
		        "sl-run: a model of this size may take %.0f MiB; --memory-limit allows more (0: as much as "
		        "there is)\n",
		        (double)limits.bytes / (1 << 20));
}
