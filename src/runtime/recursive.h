/* A lock that its thread may take again, in C's and POSIX's own words: glibc's initialiser of such mutexes is not in other C
 * libraries. */
#ifndef SLP_RECURSIVE_H
#define SLP_RECURSIVE_H

#include "runtime/forked.h"

/* Defines a file's lock, and lock_again and unlock_again for it.  The child of a fork holds it no longer. */
#define SLP_RECURSIVE_LOCK                                                                                             \
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;                                                       \
	static _Thread_local int held; /* how often by this thread */                                                  \
	static void lock_again(void)                                                                                   \
	{                                                                                                              \
		if (held++ == 0) pthread_mutex_lock(&lock);                                                            \
	}                                                                                                              \
	static void unlock_again(void)                                                                                 \
	{                                                                                                              \
		if (held > 0 && --held == 0) pthread_mutex_unlock(&lock);                                              \
	}                                                                                                              \
	static void reset_in_child(void)                                                                               \
	{                                                                                                              \
		static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;                                     \
		lock = unlocked;                                                                                       \
		held = 0;                                                                                              \
	}                                                                                                              \
	SLP_AT_FORK(reset_in_child)

#endif
