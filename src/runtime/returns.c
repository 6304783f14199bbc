/* Functions of the program that may end their thread: the unwinding stops at the library's function that called them.
 * */
#include "runtime/returns.h"

#include <pthread.h>
#include <setjmp.h>

static void go_back(void *place)
{
	longjmp(*(jmp_buf *)place, 1);
}

/* Handlers that the function has pushed have run, and its frames are gone.  The C library notes that the thread ends, and
 * looks at that again only when it does. */
bool slp_returns(void (*call)(void *), void *arg)
{
	jmp_buf place;
	volatile bool returned = false;
	pthread_cleanup_push(go_back, &place);
	if (!_setjmp(place)) {
		call(arg);
		returned = true;
	}
	pthread_cleanup_pop(0);
	return returned;
}
