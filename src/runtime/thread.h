/* Threads of the library: signals are for the program's own threads. */
#ifndef SLP_THREAD_H
#define SLP_THREAD_H

#include <pthread.h>
#include <signal.h>

/* Threads created between the two get only the signals of their own faults. */
void slp_signals_hold(sigset_t *before);
void slp_signals_restore(const sigset_t *before);

/* pthread_create, for such a thread. */
int slp_thread_create(pthread_t *thread, void *(*run)(void *), void *arg);

#endif
