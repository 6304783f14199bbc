/* Carriers of bytes between processes, for messages.c: TCP (tcp.c), MPI (mpi.c, a plug-in that uses only this header of
 * the library).  Between any two processes bytes arrive in the order in which they were sent.  One thread calls all
 * functions but start. */
#ifndef SLP_CARRIER_H
#define SLP_CARRIER_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>

enum { SLP_CARRIER_VERSION = 6, SLP_CARRIER_WHY = 512 };

/* Where a process stands among those of the run. */
struct slp_place {
	int rank, size;
	const char *host, *port, *secret; /* of rank 0, from the environment; the secret is never NULL */
	double timeout;                   /* SL_DIST_TIMEOUT, seconds: until then an error has been reported, */
	double patience;                  /* and for that, others are waited for so long */
	double latency;                   /* each message sets out so much later, for tests */
	bool fast;                        /* sums may be added in another order than that of the tree */
};

/* The event that a rank is waited for, and whether it may have occurred. */
struct slp_interest {
	bool in, out, ready;
};

/* A list of ranks for messages, "1, 3", appended to a text that starts as ""; ranks beyond its size are left out. */
enum { SLP_CARRIER_RANKS = 128 };
static inline void slp_add_rank(char list[SLP_CARRIER_RANKS], int rank)
{
	size_t n = strlen(list);
	if (n + 16 < SLP_CARRIER_RANKS) snprintf(list + n, SLP_CARRIER_RANKS - n, "%s%d", n ? ", " : "", rank);
}

static inline bool slp_several(const char *list)
{
	return strchr(list, ',') != NULL;
}

struct slp_carrier {
	int version; /* SLP_CARRIER_VERSION */
	const char *name;
	bool knows_place; /* start sets rank and size; otherwise the environment does */
	size_t portion;   /* bytes of a sum per message: received portions are added while others are in flight */
	/* Connects to the other processes; false: why has the reason. */
	bool (*start)(struct slp_place *place, char why[SLP_CARRIER_WHY]);
	/* As writev and read without waiting: bytes that went; 0: none now, the same is tried again; -1 with errno: the
	 * connection is over, 0: the other end has closed it. */
	ssize_t (*send)(int rank, const struct iovec *parts, int n);
	ssize_t (*receive)(int rank, void *data, size_t bytes);
	/* As receive, but leaves the bytes there, and returns 0 if there are none yet.  NULL: sums use messages only.
	 */
	ssize_t (*peek)(int rank, void *data, size_t bytes);
	/* Waits at most `seconds` until data can move for an entry, one entry for each rank; returns the number of
	 * ready ones. */
	int (*wait)(struct slp_interest *list, double seconds);
	/* Adds over all processes in its own order, in place, with the same result for all; NULL: only the tree.  The
	 * supported types by name; whether the sum was done within `seconds`. */
	bool (*adds)(const char *type);
	bool (*sum)(void *data, size_t count, const char *type, double timeout);
	/* Disconnects once the others have disconnected, or at the deadline (of CLOCK_MONOTONIC, in seconds).  broken:
	 * they may never do so. */
	void (*end)(bool broken, double deadline);
};

#endif
