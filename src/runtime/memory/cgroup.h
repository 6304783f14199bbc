/* Control groups: the files of this process's group and of all outer groups. */
#ifndef SLP_CGROUP_H
#define SLP_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* For tests: a prefix of /proc and /sys. */
extern const char *slp_system_root;

/* A file of the system, whose path begins with /proc or /sys.  Allocates nothing, and uses little stack. */
bool slp_system_read(const char *path, char *text, size_t size);

/* A group's folder.  Its path is long, and the stack may be small: there is one path, and names are added to it. */
struct slp_cgroup {
	char path[PATH_MAX];
	size_t length;
	int version; /* of control groups: 1 or 2 */
	bool own;    /* the process is in it; else it is around another one */
};

bool slp_cgroup_read(struct slp_cgroup *group, const char *file, char *text, size_t size);
/* Reads a number from a file; false for "max" and numbers that are effectively no limit. */
bool slp_cgroup_number(struct slp_cgroup *group, const char *file, uint64_t *number);

/* Calls visit for the process's group and all that it is in, in both versions; controller is that of the first: "memory",
 * "cpu". */
void slp_cgroups_visit(const char *controller, void (*visit)(struct slp_cgroup *group, void *arg), void *arg);

#endif
