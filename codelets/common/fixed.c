/* SL_FIXED_SUMS: divides the sums of libraries into parts, whose number depends on sizes alone. */
#include "fixed.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool wanted;

static void look(void)
{
	const char *text = getenv("SL_FIXED_SUMS");
	wanted = text && *text && strcmp(text, "0") != 0;
}

bool slp_fixed_sums(void)
{
	pthread_once(&once, look);
	return wanted;
}
