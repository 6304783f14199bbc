/* Lists that grow. */
#include <stdlib.h>

#include "alloc.h"

bool slp_grow(void **list, int *max, int n, size_t size)
{
	if (n <= *max) return true;
	enum { FEW = 16 };
	int bigger = 2 * *max > n ? 2 * *max : n;
	if (bigger < FEW) bigger = FEW;
	void *p = slp_realloc(*list, (size_t)bigger * size);
	if (!p) return false;
	*list = p;
	*max = bigger;
	return true;
}
