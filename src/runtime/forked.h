/* Locks in the child of a fork: threads that held them are not there.  A file with a lock names a function that makes it anew;
 * the child calls all of them before anything else (src/runtime/engine.c). */
#ifndef SLP_FORKED_H
#define SLP_FORKED_H

#include <pthread.h>

typedef void (*slp_fork_reset)(void);

/* The linker gathers these in one array. */
#define SLP_AT_FORK(function)                                                                                          \
	static slp_fork_reset slp_at_fork_##function __attribute__((used, section("slp_at_fork"))) = function

/* A file with one mutex. */
#define SLP_FORK_MUTEX(lock)                                                                                           \
	static void reset_in_child(void)                                                                               \
	{                                                                                                              \
		static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;                                     \
		lock = unlocked;                                                                                       \
	}                                                                                                              \
	SLP_AT_FORK(reset_in_child)

void slp_fork_reset_all(void);

#endif
