/* Which processes of a run have come to MPI_Init. */
#ifndef SLP_MPI_HERE_H
#define SLP_MPI_HERE_H

#include "dist/carrier.h"

/* This one has; closing what is returned (-1: nothing) takes it back. */
int slp_mpi_come(void);
/* Those that have not; "" where that is not known.  mine: what slp_mpi_come returned. */
void slp_mpi_missing(int mine, char list[SLP_CARRIER_RANKS]);

#endif
