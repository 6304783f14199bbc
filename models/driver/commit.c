/* The commit that a program was built from, in a separate file, which is compiled after each commit. */
#include "common.h"
#include "models/driver/commit.h"

/* As git describes it, with -dirty if files were changed; NULL outside of a repository. */
const char *drv_commit(void)
{
	return *DRV_COMMIT ? DRV_COMMIT : NULL;
}
