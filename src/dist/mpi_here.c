/* Who of the processes of a run has come to MPI_Init, which waits for all of them and does not say for whom.
 *
 * Each binds a socket whose name, in the abstract namespace of Linux, holds the run and its rank; nobody listens there,
 * and it goes with the process.  Launchers tell both in the environment.  Where they do not, or the run is on several
 * nodes, nothing is known. */
#include "dist/mpi_here.h"

#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Of Open MPI; of MPICH and others that start processes by Hydra. */
static const struct {
	const char *rank, *size, *on_this_node;
} launchers[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
                 {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"}};

struct run {
	int rank, size;
};

static int number_of(const char *variable)
{
	const char *text = getenv(variable);
	return text ? atoi(text) : -1;
}

/* Size 0: not known, or not all are on this node. */
static struct run run_here(void)
{
	for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
		struct run r = {number_of(launchers[i].rank), number_of(launchers[i].size)};
		if (r.rank >= 0 && r.rank < r.size && number_of(launchers[i].on_this_node) == r.size) return r;
	}
	return (struct run){0};
}

/* A socket, and the name of a rank's. */
static int socket_of(int rank, struct sockaddr_un *name, socklen_t *length)
{
	const char *run = getenv("PMIX_NAMESPACE");
	int n;
	*name = (struct sockaddr_un){.sun_family = AF_UNIX};
	/* After a 0.  Without a name of the run, what started all of them stands for it. */
	if (run) n = snprintf(name->sun_path + 1, sizeof name->sun_path - 1, "starling-mpi-%.64s-%d", run, rank);
	else n = snprintf(name->sun_path + 1, sizeof name->sun_path - 1, "starling-mpi-%d-%d", (int)getppid(), rank);
	*length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

int slp_mpi_come(void)
{
	struct run r = run_here();
	struct sockaddr_un name;
	socklen_t length;
	int fd = r.size ? socket_of(r.rank, &name, &length) : -1;
	if (fd < 0 || bind(fd, (struct sockaddr *)&name, length) == 0) return fd;
	close(fd);
	return -1;
}

static bool has_come(int rank)
{
	struct sockaddr_un name;
	socklen_t length;
	int fd = socket_of(rank, &name, &length);
	bool come = fd < 0 || connect(fd, (struct sockaddr *)&name, length) == 0;
	if (fd >= 0) close(fd);
	return come;
}

void slp_mpi_missing(int mine, char list[SLP_CARRIER_RANKS])
{
	struct run r = run_here();
	*list = '\0';
	for (int i = 0; mine >= 0 && i < r.size; i++)
		if (!has_come(i)) slp_add_rank(list, i);
}
