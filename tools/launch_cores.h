/* Dividing the cores of this machine among processes. */
#ifndef LAUNCH_CORES_H
#define LAUNCH_CORES_H

#include <stdbool.h>

/* Binds the calling process to its part of the cores that it may use, whole cores of neighbours; to all if there are fewer
 * than processes. */
void launch_bind(int rank, int ranks);
/* Prints the CPUs of each process; false with a message. */
bool launch_show(int ranks);

#endif
