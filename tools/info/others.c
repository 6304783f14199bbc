/* The other processes that use more than half of a core, by their processor time during a tenth of a second. */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "info.h"

enum { INTERVAL_MS = 100, MOST = 4096, SHOWN = 4 };

struct process {
	long pid;
	unsigned long long ticks; /* of processor time */
	char name[32];
};

/* "pid (name) state ...": the name may contain anything, the times are fields 14 and 15. */
static bool read_process(long pid, struct process *p)
{
	char path[64], line[1024];
	unsigned long long user, system;
	snprintf(path, sizeof path, "/proc/%ld/stat", pid);
	FILE *f = fopen(path, "r");
	if (!f) return false;
	char *begin = fgets(line, sizeof line, f) ? strchr(line, '(') : NULL, *end = begin ? strrchr(begin, ')') : NULL;
	fclose(f);
	if (!end) return false;
	*end = '\0';
	*p = (struct process){.pid = pid};
	snprintf(p->name, sizeof p->name, "%s", begin + 1);
	int found = sscanf(end + 1, " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu %llu", &user, &system);
	p->ticks = found == 2 ? user + system : 0;
	return found == 2;
}

/* Those of this machine but for this one; none without /proc. */
static int read_processes(struct process *p)
{
	DIR *proc = opendir("/proc");
	int n = 0;
	if (!proc) return 0;
	for (struct dirent *e; n < MOST && (e = readdir(proc));) {
		if (!isdigit((unsigned char)e->d_name[0]) || strtol(e->d_name, NULL, 10) == getpid()) continue;
		if (read_process(strtol(e->d_name, NULL, 10), &p[n])) n++;
	}
	closedir(proc);
	return n;
}

static int by_ticks(const void *a, const void *b)
{
	const struct process *p = a, *q = b;
	return (p->ticks < q->ticks) - (p->ticks > q->ticks);
}

/* What they have used since, the busiest first. */
static void measure(struct process *p, int n, double seconds)
{
	for (int i = 0; i < n; i++) {
		struct process now;
		bool there = read_process(p[i].pid, &now) && now.ticks > p[i].ticks;
		p[i].ticks = there ? now.ticks - p[i].ticks : 0;
	}
	qsort(p, (size_t)n, sizeof *p, by_ticks);
	for (int i = 0; i < n; i++)
		if ((double)p[i].ticks < 0.5 * seconds * (double)sysconf(_SC_CLK_TCK)) p[i].ticks = 0;
}

static double seconds_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void info_others_hints(json_t *hints)
{
	char text[SHOWN * 80] = "";
	struct process *p = malloc(MOST * sizeof *p);
	if (!p) return;
	double begin = seconds_now();
	int n = read_processes(p);
	nanosleep(&(struct timespec){0, INTERVAL_MS * 1000000L}, NULL);
	double seconds = seconds_now() - begin;
	measure(p, n, seconds);
	for (int i = 0; i < n && i < SHOWN && p[i].ticks; i++) {
		size_t used = strlen(text);
		snprintf(text + used, sizeof text - used, "%s%s (process %ld): %.1f cores", i ? ", " : "", p[i].name,
		         p[i].pid, (double)p[i].ticks / (seconds * (double)sysconf(_SC_CLK_TCK)));
	}
	free(p);
	if (*text) json_object_set_new(hints, "busy", json_string(text));
}
