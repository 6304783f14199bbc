/* Waits and files: pthread_cancel takes effect after them, where the program's own code is. */
#ifndef SLP_UNCANCELLED_H
#define SLP_UNCANCELLED_H

#include <pthread.h>

static inline int slp_cancel_hold(void)
{
	int before;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void slp_cancel_restore(const int *before)
{
	pthread_setcancelstate(*before, NULL);
}

/* The calling thread is not cancelled in the rest of the block. */
#define SLP_UNCANCELLED() __attribute__((cleanup(slp_cancel_restore), unused)) const int slp_cancel_ = slp_cancel_hold()

#endif
