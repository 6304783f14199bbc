/* Control groups: the files of this process's group and of all outer groups, in both versions. */
#include "runtime/memory/cgroup.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *slp_system_root = "";

static bool read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) return false;
	ssize_t n = read(fd, text, size - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

bool slp_system_read(const char *path, char *text, size_t size)
{
	char full[512];
	if (snprintf(full, sizeof full, "%s%s", slp_system_root, path) >= (int)sizeof full) return false;
	return read_text(full, text, size);
}

bool slp_cgroup_read(struct slp_cgroup *group, const char *file, char *text, size_t size)
{
	size_t left = sizeof group->path - group->length;
	bool fits = snprintf(group->path + group->length, left, "/%s", file) < (int)left;
	bool read = fits && read_text(group->path, text, size);
	group->path[group->length] = '\0';
	return read;
}

bool slp_cgroup_number(struct slp_cgroup *group, const char *file, uint64_t *number)
{
	char text[64];
	if (!file || !slp_cgroup_read(group, file, text, sizeof text) || *text < '0' || *text > '9') return false;
	*number = strtoull(text, NULL, 10);
	return *number < INT64_MAX / 2;
}

struct visit {
	void (*visit)(struct slp_cgroup *group, void *arg);
	void *arg;
};

/* A group and all that it is in.  In a container its path may not be there; the container's own group is the root. */
static void visit_from(const struct visit *v, int version, const char *folder, const char *path)
{
	struct slp_cgroup group = {.version = version, .own = true};
	int n = snprintf(group.path, sizeof group.path, "%s%s%s", slp_system_root, folder, path);
	if (n >= (int)sizeof group.path) return;
	group.length = (size_t)n;
	for (size_t root = strlen(slp_system_root) + strlen(folder);; group.own = false) {
		v->visit(&group, v->arg);
		char *end = strrchr(group.path + root, '/');
		if (!end) return;
		*end = '\0';
		group.length = (size_t)(end - group.path);
	}
}

/* A line of /proc/self/cgroup: number, controllers of the first version (none in the second), path. */
static void visit_line(const struct visit *v, const char *controller, const char *line)
{
	const char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
	char folder[64];
	size_t n = strlen(controller);
	if (!path) return;
	if (!strncmp(line, "0::", 3)) {
		visit_from(v, 2, "/sys/fs/cgroup", path + 1);
		visit_from(v, 2, "/sys/fs/cgroup/unified", path + 1);
	}
	snprintf(folder, sizeof folder, "/sys/fs/cgroup/%s", controller);
	for (const char *p = names; p < path; p = strpbrk(p + 1, ",:"))
		if (!strncmp(p + 1, controller, n) && strchr(",:", p[n + 1])) visit_from(v, 1, folder, path + 1);
}

void slp_cgroups_visit(const char *controller, void (*visit)(struct slp_cgroup *group, void *arg), void *arg)
{
	char text[4096], *rest;
	struct visit v = {visit, arg};
	if (!slp_system_read("/proc/self/cgroup", text, sizeof text)) return;
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		visit_line(&v, controller, line);
}
