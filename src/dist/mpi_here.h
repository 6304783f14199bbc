/* The processes of a run that have called MPI_Init. */
#ifndef SLP_MPI_HERE_H
#define SLP_MPI_HERE_H

#include "dist/carrier.h"

/* This one has. */
void slp_mpi_come(void);
/* Notes the ranks that have called it, repeatedly while this one waits: ranks that give up first have disappeared when
 * others give up. */
void slp_mpi_look(void);
/* The ranks that never called it; "" if that is unknown. */
void slp_mpi_missing(char list[SLP_CARRIER_RANKS]);
/* All ranks have called it: the notes are no longer needed. */
void slp_mpi_met(void);

#endif
