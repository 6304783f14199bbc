/* The limit of memory for untrusted files (budget.h).  It is a limit of the process, which memory_limit.c obeys. */
#include <stdlib.h>
#include <unistd.h>

#include "runtime/budget.h"
#include "runtime/memory/cgroup.h"
#include "runtime/memory/memory_limit.h"
#include "starling/base.h"

struct sl_untrusted slp_untrusted;
_Thread_local struct slp_budget *slp_budget_current;
static size_t at_start; /* bytes taken when the engine started */

/* Pages of this process alone: files that it maps count for nothing. */
static size_t anonymous_bytes(void)
{
	char text[256], *p = text;
	if (!slp_system_read("/proc/self/statm", text, sizeof text)) return 0;
	unsigned long pages[3];
	for (int i = 0; i < 3; i++) pages[i] = strtoul(p, &p, 10);
	return pages[1] > pages[2] ? (pages[1] - pages[2]) * (size_t)sysconf(_SC_PAGESIZE) : 0;
}

void slp_budget_start(const struct sl_untrusted *limits)
{
	slp_untrusted = *limits;
	at_start = limits->bytes ? anonymous_bytes() : 0;
	slp_memory_limit_changed();
}

size_t slp_budget_taken(void)
{
	size_t now = anonymous_bytes();
	return now > at_start ? now - at_start : 0;
}

bool slp_budget_has_small(size_t bytes)
{
	struct slp_budget *b = slp_budget_current;
	b->small += bytes;
	if (b->small < SLP_MEMORY_LARGE || !slp_untrusted.bytes) return true;
	bool fits = slp_memory_limit_allows(b->small);
	if (fits) b->small = 0;
	return fits;
}
