/* An exchange of messages.c as MPI messages, for SimGrid's SMPI: prints the simulated seconds of one sum of so many
 * bytes. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* Every rank sends a piece to every other one. */
static void exchange(char *from, char *to, size_t piece, int rank, int size)
{
	MPI_Request *list = malloc(2 * (size_t)size * sizeof *list);
	int n = 0;
	for (int r = 0; list && r < size; r++) {
		if (r == rank) continue;
		MPI_Irecv(to + (size_t)r * piece, (int)piece, MPI_BYTE, r, 0, MPI_COMM_WORLD, &list[n++]);
		MPI_Isend(from + (size_t)r * piece, (int)piece, MPI_BYTE, r, 0, MPI_COMM_WORLD, &list[n++]);
	}
	MPI_Waitall(n, list, MPI_STATUSES_IGNORE);
	free(list);
}

int main(int argc, char **argv)
{
	enum { TIMES = 5 };
	int rank, size;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	size_t bytes = argc > 1 ? strtoul(argv[1], NULL, 10) : 0, piece = size == 2 ? bytes : bytes / (size_t)size;
	char *from = malloc((size_t)size * bytes), *to = malloc((size_t)size * bytes);
	MPI_Barrier(MPI_COMM_WORLD);
	double start = MPI_Wtime();
	for (int i = 0; from && to && i < TIMES; i++) {
		exchange(from, to, piece, rank, size);               /* pieces */
		if (size > 2) exchange(to, from, piece, rank, size); /* their sums; two have got all */
	}
	if (rank == 0) printf("%.9f\n", (MPI_Wtime() - start) / TIMES);
	MPI_Finalize();
	return 0;
}
