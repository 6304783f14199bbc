/* Functions of the program that may end their thread. */
#ifndef SLP_RETURNS_H
#define SLP_RETURNS_H

#include <stdbool.h>

/* Calls call(arg).  False: it has ended its thread, by pthread_exit or pthread_cancel, and the thread continues here.
 * For threads of the library, which are not replaced. */
bool slp_returns(void (*call)(void *), void *arg);

#endif
