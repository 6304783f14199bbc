/* Which processes of a run have come to MPI_Init. */
#ifndef SLP_MPI_HERE_H
#define SLP_MPI_HERE_H

#include "dist/carrier.h"

/* This one has. */
void slp_mpi_come(void);
/* Notes who has, from time to time while this one waits: those that give up first are gone when others do. */
void slp_mpi_look(void);
/* Those that never had; "" where that is not known. */
void slp_mpi_missing(char list[SLP_CARRIER_RANKS]);
/* All have: nobody looks any more. */
void slp_mpi_met(void);

#endif
