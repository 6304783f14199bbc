/* Threads that share passes over memory with the communicating thread. */
#ifndef SLP_ADDERS_H
#define SLP_ADDERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Bytes: the part that a thread takes at a time, and the least size of each operand that is worth another thread. */
enum { SLP_ADDERS_MOST = 16, SLP_ADDERS_GRAIN = 1 << 17, SLP_ADDERS_PORTION = 1 << 17 };

/* Sets the number of threads, with the communicating one; 0: the best number. */
void slp_adders_start(int wanted);
/* The number of threads that add, with the communicating one, for a process with these cores and GPUs. */
int slp_adders(int cores, int gpus);
int slp_adders_here(void); /* in this one */
/* Lets them work on count elements, at least `grain` at a time, in any order. */
void slp_adders_run(void (*work)(const void *job, size_t first, size_t count), const void *job, size_t count,
                    size_t grain);
double slp_adders_seconds(void); /* processor time since the start, of all but the communicating thread */
void slp_adders_end(void);

#endif
