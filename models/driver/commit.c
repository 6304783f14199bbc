/* The commit that a program was made from; by itself because it is compiled anew after each commit. */
#include "common.h"
#include "models/driver/commit.h"

/* As git describes it, with -dirty if files had been changed; NULL if it was not made in a repository. */
const char *drv_commit(void)
{
	return *DRV_COMMIT ? DRV_COMMIT : NULL;
}
