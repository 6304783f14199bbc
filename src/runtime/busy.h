/* How long workers have computed. */
#ifndef SLP_BUSY_H
#define SLP_BUSY_H

#include "runtime/runtime.h"

/* StarPU takes the time of each task from now on. */
void slp_busy_start(void);
/* A task has ended: adds its time; called from its callback. */
void slp_busy_note(double flops);

struct slp_busy {
	double seconds; /* that some task ran */
	double flops;   /* of these tasks */
};
/* Of a device since slp_busy_start; of all workers of a kind for cpu and gpu, of all for auto. */
struct slp_busy slp_busy_of(sl_device device);

#endif
