/* Busy time of workers. */
#ifndef SLP_UTILISATION_H
#define SLP_UTILISATION_H

#include "starling/base.h"

/* StarPU takes the time of each task from now on. */
void slp_utilisation_start(void);
/* A task has ended: adds its time; called from its callback. */
void slp_utilisation_add(double flops);

struct slp_utilisation {
	double seconds; /* that some task ran */
	double flops;   /* of these tasks */
};
/* Of a device since slp_utilisation_start; of all workers of a kind for cpu and gpu, of all for auto. */
struct slp_utilisation slp_utilisation_of(sl_device device);

#endif
