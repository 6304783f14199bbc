/* A folder for StarPU's measurements where there is none to trust: without HOME, StarPU reads /tmp/.starpu, which any user
 * of the machine may have written, and it ends the program for a file that it cannot read.  A new folder is made for
 * this user alone, and removed when the engine stops. */
#include "runtime/settings/home.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/process/processes.h"

static char folder[PATH_MAX]; /* "": there is none */
static pid_t maker;           /* its child processes leave it alone */

/* StarPU's folder in HOME or XDG_CACHE_HOME belongs to this user, and no other user can write to it. */
static bool is_own(const char *home)
{
	char path[PATH_MAX];
	struct stat link, s;
	int n = snprintf(path, sizeof path, "%s/.starpu", home);
	if (n >= (int)sizeof path || lstat(path, &link) || stat(path, &s)) return true; /* StarPU makes it, or cannot */
	if (link.st_uid == geteuid() && s.st_uid == geteuid() && !(s.st_mode & S_IWOTH)) return true;
	fprintf(stderr,
	        "starling: %s %s: StarPU's measurements are not read from there (STARPU_HOME chooses another folder)\n",
	        path, s.st_mode & S_IWOTH ? "can be written by every user" : "belongs to another user");
	return false;
}

/* The program's user has chosen a folder, or there is one to trust. */
static bool has_folder(void)
{
	const char *home = slp_starpu_home();
	if (*slp_env_or("STARPU_HOME", "") || *slp_env_or("STARPU_PERF_MODEL_DIR", "")) return true;
	return home && is_own(home);
}

bool slp_home_make(void)
{
	if (*folder || has_folder()) return true;
	int n = snprintf(folder, sizeof folder, "%s/starling-XXXXXX", slp_env_or("TMPDIR", "/tmp"));
	bool fits = n < (int)sizeof folder;
	if (!fits) errno = ENAMETOOLONG;
	if (fits && mkdtemp(folder) && !setenv("STARPU_HOME", folder, 1)) { /* of mode 0700 */
		maker = getpid();
		return true;
	}
	*folder = '\0';
	return false;
}

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *where)
{
	(void)s, (void)kind, (void)where;
	return remove(path) && errno != ENOENT ? -1 : 0;
}

void slp_home_forget(void)
{
	enum { MOST_OPEN = 16 };
	if (!*folder || maker != getpid()) return;
	if (nftw(folder, remove_one, MOST_OPEN, FTW_DEPTH | FTW_PHYS))
		fprintf(stderr, "starling: %s cannot be removed: %m\n", folder);
	unsetenv("STARPU_HOME");
	*folder = '\0';
}
