/* Finds the ranks that have not called MPI_Init, which waits for all of them and does not report the missing ones.
 *
 * Each rank binds a socket whose name, in Linux's abstract namespace, contains the run and the rank; nothing listens
 * there, and it disappears with the process.  Launchers set both in the environment.  Otherwise, or on several nodes,
 * the missing ranks are unknown. */
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

/* size 0: who has come is not known. */
static struct {
	int rank, size, fd;
	bool *seen; /* of each rank */
} here;

static int number_of(const char *variable)
{
	const char *text = getenv(variable);
	return text ? atoi(text) : -1;
}

/* Finds rank and size; false: the launcher does not tell them, or not all are on this node. */
static bool find_run(void)
{
	for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
		here.rank = number_of(launchers[i].rank);
		here.size = number_of(launchers[i].size);
		if (here.rank >= 0 && here.rank < here.size && number_of(launchers[i].on_this_node) == here.size)
			return true;
	}
	return false;
}

/* A socket, and the name of a rank's. */
static int socket_of(int rank, struct sockaddr_un *name, socklen_t *length)
{
	const char *run = getenv("PMIX_NAMESPACE");
	int n;
	*name = (struct sockaddr_un){.sun_family = AF_UNIX};
	/* After a 0.  Without a name of the run, the launcher's process identifies it. */
	if (run) n = snprintf(name->sun_path + 1, sizeof name->sun_path - 1, "starling-mpi-%.64s-%d", run, rank);
	else n = snprintf(name->sun_path + 1, sizeof name->sun_path - 1, "starling-mpi-%d-%d", (int)getppid(), rank);
	*length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

static bool bind_own(void)
{
	struct sockaddr_un name;
	socklen_t length;
	here.fd = socket_of(here.rank, &name, &length);
	return here.fd >= 0 && bind(here.fd, (struct sockaddr *)&name, length) == 0;
}

void slp_mpi_come(void)
{
	here.fd = -1;
	here.seen = find_run() ? calloc((size_t)here.size, sizeof *here.seen) : NULL;
	if (!here.seen || !bind_own()) slp_mpi_met();
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

void slp_mpi_look(void)
{
	for (int r = 0; r < here.size; r++)
		if (!here.seen[r]) here.seen[r] = has_come(r);
}

void slp_mpi_missing(char list[SLP_CARRIER_RANKS])
{
	*list = '\0';
	for (int r = 0; r < here.size; r++)
		if (!here.seen[r]) slp_add_rank(list, r);
}

void slp_mpi_met(void)
{
	if (here.fd >= 0) close(here.fd);
	free(here.seen);
	here.fd = -1;
	here.seen = NULL;
	here.size = 0;
}
