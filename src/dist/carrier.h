/* What moves bytes between processes, for messages.c: TCP (tcp.c), MPI (mpi.c, a plug-in: it sees nothing of the
 * library but this header).  Between each two processes bytes come in the order in which they were sent.  All but start
 * are called by one thread. */
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
	const char *host, *port, *secret; /* of rank 0, as the environment says; the secret is never NULL */
	double timeout;                   /* SL_DIST_TIMEOUT, seconds: until then an error has been reported, */
	double patience;                  /* and for that, others are waited for so long */
	double latency;                   /* each message sets out so much later, for tests */
	bool fast;                        /* sums may be added in another order than that of the tree */
};

/* What is waited for of a rank, and whether it may have come. */
struct slp_interest {
	bool in, out, ready;
};

/* Ranks in a message: "1, 3", in what begins as ""; those for which there is no room are left out. */
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
	bool knows_place; /* start sets rank and size; else the environment says them */
	size_t portion; /* bytes of a sum that go in a message: what has come is added while others are on their way */
	/* Meets the other processes; false: why says what is wrong. */
	bool (*start)(struct slp_place *place, char why[SLP_CARRIER_WHY]);
	/* As writev and read without waiting: bytes that went; 0: none now, the same is tried again; -1 with errno: the
	 * connection is over, 0: the other end has closed it. */
	ssize_t (*send)(int rank, const struct iovec *parts, int n);
	ssize_t (*receive)(int rank, void *data, size_t bytes);
	/* As receive, but leaves it there, and 0 is nothing yet.  NULL: no sums go other ways than messages. */
	ssize_t (*peek)(int rank, void *data, size_t bytes);
	/* Waits so many seconds at most until something may move, for one entry a rank; how many are ready. */
	int (*wait)(struct slp_interest *list, double seconds);
	/* What adds over all processes in an order of its own, in place, and gives all the same; NULL: the tree is all
	 * there is.  Which types, by their names; whether it was done within so many seconds. */
	bool (*adds)(const char *type);
	bool (*sum)(void *data, size_t count, const char *type, double timeout);
	/* Leaves once the others have left, too, or the deadline (of CLOCK_MONOTONIC, in seconds) is over.  broken:
	 * they may not. */
	void (*end)(bool broken, double deadline);
};

#endif
