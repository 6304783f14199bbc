/* Locks in the child of a fork: making all of them anew. */
#include "runtime/forked.h"

/* The linker's names for the ends of the section. */
extern slp_fork_reset __start_slp_at_fork[] __attribute__((visibility("hidden")));
extern slp_fork_reset __stop_slp_at_fork[] __attribute__((visibility("hidden")));

void slp_fork_reset_all(void)
{
	for (slp_fork_reset *reset = __start_slp_at_fork; reset < __stop_slp_at_fork; reset++) (*reset)();
}
