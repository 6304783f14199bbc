/* The interface between the engine and src/dist. */
#ifndef SLP_PROCESSES_H
#define SLP_PROCESSES_H

#include "starling/base.h"

/* Set by src/dist: this process takes part in a run of several, by a transport of that name (before StarPU starts,
 * since there may be something wrong with it); and leaves it, once all work is done. */
extern enum sl_status (*slp_engine_join)(const char *at, const char *transport);
extern void (*slp_engine_joined)(const char *at); /* StarPU has started */
extern void (*slp_engine_leave)(void);
/* Waits for the exchanges in flight between processes. */
extern void (*slp_engine_others)(void);

/* environment.c */
const char *slp_env_or(const char *name, const char *otherwise); /* otherwise: not set, or empty */
const char *slp_starpu_home(void); /* the folder of StarPU's .starpu; NULL: no variable names one */
enum sl_status slp_dist_timeout(const char *at, double *seconds);

/* error.c */
void slp_fault_text(uint32_t fault, char *text, size_t size);

#endif
