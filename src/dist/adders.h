/* Threads that share passes over memory with the communicating one. */
#ifndef SLP_ADDERS_H
#define SLP_ADDERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Bytes: of what a thread takes at a time, and of each operand that are worth adding, a thread. */
enum { SLP_ADDERS_MOST = 16, SLP_ADDERS_GRAIN = 1 << 17, SLP_ADDERS_PORTION = 1 << 17 };

/* The threads of this process: so many with the communicating one, 0: as many as help. */
void slp_adders_start(int wanted);
/* How many threads add, with the communicating one, where a process has so many cores and GPUs. */
int slp_adders(int cores, int gpus);
int slp_adders_here(void); /* in this one */
/* Lets them work on count elements, at least `grain` at a time, in any order. */
void slp_adders_run(void (*work)(const void *job, size_t first, size_t count), const void *job, size_t count,
                    size_t grain);
double slp_adders_seconds(void); /* processor time since the start, of all but the communicating thread */
void slp_adders_end(void);

#endif
