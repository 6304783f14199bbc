/* Threads of the library.  A signal handler runs on the stack of the thread that receives the signal, which may be in
 * oneDNN's generated code: SIGXCPU goes to the computing thread, where the handler's frame damaged the heap. */
#include "runtime/thread.h"

void slp_signals_hold(sigset_t *before)
{
	static const int faults[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
	sigset_t held;
	sigfillset(&held);
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(&held, faults[i]);
	pthread_sigmask(SIG_BLOCK, &held, before);
}

void slp_signals_restore(const sigset_t *before)
{
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

int slp_thread_create(pthread_t *thread, void *(*run)(void *), void *arg)
{
	sigset_t before;
	slp_signals_hold(&before);
	int error = pthread_create(thread, NULL, run, arg);
	slp_signals_restore(&before);
	return error;
}
