/* Energy of a run (energy.c), and the two sources of it: the processors' counters and the GPUs' (energy_nvml.c). */
#ifndef SLP_ENERGY_H
#define SLP_ENERGY_H

#include <stdbool.h>

enum { SLP_ENERGY_WHY = 160 };

/* The start of counting, at 0: for sl_energy_start, and for traces. */
void slp_energy_start(void);
/* Adds to the counts at most once in some seconds, so that no counter overflows twice in between. */
void slp_energy_sample(void);
void slp_energy_stop(void);

/* Whether the energy of all GPUs of the engine can be read; otherwise the reason. */
bool slp_nvml_start(char why[SLP_ENERGY_WHY]);
/* Joules since the driver was loaded, of all of them; NAN: they cannot be read any more. */
double slp_nvml_joules(char why[SLP_ENERGY_WHY]);
void slp_nvml_stop(void);

#endif
