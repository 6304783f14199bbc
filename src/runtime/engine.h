/* The engine: its state and its lock, starting it, waiting for all of its work (state.c, engine.c). */
#ifndef SLP_ENGINE_H
#define SLP_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "starling/base.h"

enum { SLP_MAX_TEAMS = 256, SLP_MAX_GPUS = 8 };
enum { SLP_POOLS = 3 + SLP_MAX_TEAMS + SLP_MAX_GPUS }; /* auto, cpu, gpu, cpu:i, gpu:i */

struct slp_engine {
	pthread_mutex_t lock; /* taken around every change of buffers, segments and the free lists */
	atomic_int users;     /* sl_init less sl_shutdown */
	struct sl_config config;
	bool cudnn_graph; /* SL_CUDNN_GRAPH: use that API where it will do */
	int nteams, ngpus;
	int nslaves; /* of the nteams: the last ones, which are workers of slave processes */
	int team_worker[SLP_MAX_TEAMS], gpu_worker[SLP_MAX_GPUS];
	int nworkers;
	_Atomic sl_device device; /* the default */
	bool forked;              /* this is a child of the process where it ran: its threads are not here */
	unsigned generation;      /* number of stops: older tensors have lost their values */
	_Atomic uint64_t rng_seed, rng_stream;
};
extern struct slp_engine slp_engine;

/* Whether a worker calls, which would wait for itself: from a kernel, or at the end of a task; that is an error. */
bool slp_worker_refused(const char *at, const char *function);
/* Starts the engine with defaults if it does not run yet. */
enum sl_status slp_engine_need(const char *at);
void slp_engine_idle(void);           /* waits for all work; errors stay to be reported */
bool slp_engine_poll(double seconds); /* the same, but not for longer than that; false: the time is up */
/* Called before the engine stops, if set: for threads that use it. */
extern void (*_Atomic slp_engine_before_stop)(void);
static inline void slp_lock(void)
{
	pthread_mutex_lock(&slp_engine.lock);
}
static inline void slp_unlock(void)
{
	pthread_mutex_unlock(&slp_engine.lock);
}

#endif
