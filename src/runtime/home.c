/* A folder for StarPU's measurements if no variable names one: without HOME, StarPU reads /tmp/.starpu, which any user
 * of the machine may have written.  A new folder is made for this user alone, and removed when the engine stops. */
#include "runtime/home.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/process/processes.h"

static char folder[PATH_MAX]; /* "": there is none */
static pid_t maker;           /* its child processes leave it alone */

bool slp_home_make(void)
{
	if (*folder || slp_starpu_home() || *slp_env_or("STARPU_PERF_MODEL_DIR", "")) return true;
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
