/* Measurements on this machine's GPUs, in memory and in a file for each kind of GPU, FOLDER/starling/GPU: FOLDER is
 * that of StarPU's models.  A line is a key, a way, µs and a check sum, separated by tabs; lines with a wrong check
 * sum, such as those of a truncated file, are skipped and measured again.  Lines are only appended, under a lock, each
 * in one write. */
#include "tune.h"

#include "config.h"

#include <stdio.h>

#include "number.h"

static int wish;

bool slp_tune_wanted(void)
{
	return wish > 0;
}

void slp_tune_start(int now)
{
	wish = now;
}

void slp_tune_say(const char *key, const char *way, double us)
{
	if (wish > 1) slp_fprintf(stderr, "%s: %s: %.2f us\n", key, way, us);
}

#ifdef HAVE_CUDA
#include <cuda_runtime_api.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alloc.h"
#include "runtime/compat.h"
#include "runtime/settings/environment.h"

enum { LINE = SLP_TUNE_KEY + SLP_TUNE_TEXT + 64, BUCKETS = 256, DEVICES = 64 };

struct entry {
	struct entry *next;
	char way[SLP_TUNE_TEXT], key[];
};

/* Of one kind of GPU. */
struct kind {
	struct kind *next;
	struct entry *bucket[BUCKETS];
	char path[SLP_TUNE_PATH], name[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kind *kinds;
static char names[DEVICES][256]; /* kinds, by device; empty: not requested yet */

static uint64_t hash_of(const char *text, size_t n)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	while (n--) hash = (hash ^ (unsigned char)*text++) * UINT64_C(0x100000001b3);
	return hash;
}

/* ---- in memory --------------------------------------------------------------------------------------------------- */

static struct entry *find(struct kind *kind, const char *key)
{
	struct entry *e = kind->bucket[hash_of(key, strlen(key)) % BUCKETS];
	while (e && strcmp(e->key, key)) e = e->next;
	return e;
}

/* The first that is known of a key stays. */
static void add(struct kind *kind, const char *key, const char *way)
{
	size_t n = strlen(key);
	struct entry *e = find(kind, key) ? NULL : slp_try_malloc(sizeof *e + n + 1);
	if (!e) return;
	memcpy(e->key, key, n + 1);
	snprintf(e->way, sizeof e->way, "%s", way);
	struct entry **first = &kind->bucket[hash_of(key, n) % BUCKETS];
	e->next = *first;
	*first = e;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* false: nowhere. */
static bool folder(char to[SLP_TUNE_PATH])
{
	const int most = SLP_TUNE_PATH - (int)sizeof "/starling";
	int n = slp_starpu_folder(to, (size_t)most);
	if (!n || n >= most) return false;
	strcat(to, "/starling");
	return true;
}

/* A line that checks, taken apart in place; false: it does not. */
static bool parse(char *line, char **key, char **way)
{
	char *field[4] = {line};
	for (int i = 1; i < 4; i++) {
		char *tab = strchr(field[i - 1], '\t');
		if (!tab) return false;
		field[i] = tab + 1;
	}
	uint64_t sum = hash_of(line, (size_t)(field[3] - line));
	char text[32];
	snprintf(text, sizeof text, "%016" PRIx64, sum);
	if (strcmp(field[3], text)) return false;
	for (int i = 1; i < 4; i++) field[i][-1] = '\0';
	*key = field[0];
	*way = field[1];
	return strlen(*way) < SLP_TUNE_TEXT;
}

static void read_from(struct kind *kind, FILE *file)
{
	char line[LINE], *key, *way;
	while (fgets(line, sizeof line, file)) {
		size_t n = strlen(line);
		if (n && line[n - 1] == '\n') line[n - 1] = '\0';
		if (parse(line, &key, &way)) add(kind, key, way);
	}
}

static void read_file(struct kind *kind)
{
	FILE *file = *kind->path ? fopen(kind->path, "re") : NULL;
	if (!file) return;
	read_from(kind, file);
	fclose(file);
}

/* Appended after the lines that other processes have added since; an end of line first, if the last line was cut off.
 */
static void write_line(struct kind *kind, int fd, const char *key, const char *way, double us)
{
	char line[LINE + 1] = "\n", last = '\n';
	off_t end = lseek(fd, 0, SEEK_END);
	bool cut = end > 0 && pread(fd, &last, 1, end - 1) == 1 && last != '\n';
	int n = slp_snprintf(line + 1, LINE, "%s\t%s\t%.2f\t", key, way, us);
	if (n < 0 || n > LINE - 32) return;
	n += snprintf(line + 1 + n, (size_t)(LINE - n), "%016" PRIx64 "\n", hash_of(line + 1, (size_t)n));
	const char *from = cut ? line : line + 1;
	if (write(fd, from, strlen(from)) < 0) kind->path[0] = '\0'; /* the disk is full: it is known in memory */
}

static void add_to_file(struct kind *kind, const char *key, const char *way, double us)
{
	int fd = *kind->path ? open(kind->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
	if (fd < 0) return;
	if (flock(fd, LOCK_EX) == 0) {
		read_file(kind);
		if (!find(kind, key)) write_line(kind, fd, key, way, us);
	}
	close(fd);
}

/* ---- kinds of GPUs ----------------------------------------------------------------------------------------------- */

/* The file; empty: there is none. */
static void find_path(struct kind *kind)
{
	char within[SLP_TUNE_PATH], name[256];
	snprintf(name, sizeof name, "%s", kind->name);
	for (char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c)) *c = '-';
	if (!folder(within) || (mkdir(within, 0777) && errno != EEXIST)) return; /* StarPU has created its folder */
	if (snprintf(kind->path, sizeof kind->path, "%s/%s", within, name) >= SLP_TUNE_PATH) kind->path[0] = '\0';
}

/* Asking for all properties takes milliseconds: once a device. */
static const char *device_name(void)
{
	int device = -1;
	if (cudaGetDevice(&device) != cudaSuccess || device < 0 || device >= DEVICES) return NULL;
	struct cudaDeviceProp p;
	if (!names[device][0] && cudaGetDeviceProperties(&p, device) == cudaSuccess)
		snprintf(names[device], sizeof names[device], "%s", p.name);
	return names[device][0] ? names[device] : NULL;
}

/* The kind of the calling thread's GPU; NULL: unknown. */
static struct kind *current(void)
{
	const char *name = device_name();
	struct kind *kind = kinds;
	while (name && kind && strcmp(kind->name, name)) kind = kind->next;
	if (!name || kind) return name ? kind : NULL;
	kind = slp_try_calloc(1, sizeof *kind + strlen(name) + 1);
	if (!kind) return NULL;
	memcpy(kind->name, name, strlen(name) + 1);
	find_path(kind);
	read_file(kind);
	kind->next = kinds;
	return kinds = kind;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

bool slp_tune_find(const char *key, char way[SLP_TUNE_TEXT])
{
	pthread_mutex_lock(&lock);
	struct kind *kind = current();
	const struct entry *e = kind ? find(kind, key) : NULL;
	if (e) memcpy(way, e->way, SLP_TUNE_TEXT);
	pthread_mutex_unlock(&lock);
	return e;
}

void slp_tune_keep(const char *key, char way[SLP_TUNE_TEXT], double us)
{
	pthread_mutex_lock(&lock);
	struct kind *kind = current();
	struct starpu_task *task = starpu_task_get_current();
	if (task) slp_task_time_is_void(task); /* most of it was measuring */
	if (kind && !find(kind, key)) add_to_file(kind, key, way, us);
	if (kind) add(kind, key, way);
	const struct entry *e = kind ? find(kind, key) : NULL;
	if (e) memcpy(way, e->way, SLP_TUNE_TEXT);
	pthread_mutex_unlock(&lock);
}

void slp_tune_path(char to[SLP_TUNE_PATH])
{
	pthread_mutex_lock(&lock);
	const struct kind *kind = current();
	snprintf(to, SLP_TUNE_PATH, "%s", kind ? kind->path : "");
	pthread_mutex_unlock(&lock);
}

void slp_tune_forget(void)
{
	pthread_mutex_lock(&lock);
	for (struct kind *kind; (kind = kinds);) {
		kinds = kind->next;
		for (int i = 0; i < BUCKETS; i++)
			for (struct entry *e; (e = kind->bucket[i]);) {
				kind->bucket[i] = e->next;
				free(e);
			}
		free(kind);
	}
	memset(names, 0, sizeof names);
	pthread_mutex_unlock(&lock);
}

#else

bool slp_tune_find(const char *key, char way[SLP_TUNE_TEXT])
{
	(void)key;
	(void)way;
	return false;
}

void slp_tune_keep(const char *key, char way[SLP_TUNE_TEXT], double us)
{
	(void)key;
	(void)way;
	(void)us;
}

void slp_tune_path(char to[SLP_TUNE_PATH])
{
	to[0] = '\0';
}

void slp_tune_forget(void)
{
}
#endif
