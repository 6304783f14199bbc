/* Which processes of a run have come to MPI_Init. */
#ifndef SLP_MPI_HERE_H
#define SLP_MPI_HERE_H

enum { SLP_MPI_MISSING = 160 };

/* This one has; closing what is returned (-1: nothing) takes it back. */
int slp_mpi_come(void);
/* "rank 2, 5 have" of those that have not, or "a rank has" where it is not known.  mine: what slp_mpi_come returned. */
void slp_mpi_missing(int mine, char text[SLP_MPI_MISSING]);

#endif
