/* Transports of values between processes: four functions.  The thread that serves requests (requests.c) calls all but
 * start, in the same order in all processes. */
#ifndef SLP_TRANSPORT_H
#define SLP_TRANSPORT_H

#include "dist/carrier.h"
#include "starling/tensor.h"

enum { SLP_DIST_WHY = SLP_CARRIER_WHY, SLP_DIST_NAME = 48 };

/* The data of an exchange: values of this process, which become those of all.  Number and description are sent with the
 * values, and compared. */
struct slp_exchange {
	uint64_t number; /* in the order of the program */
	char name[SLP_DIST_NAME];
	void *data;
	size_t count;
	enum sl_dtype dtype;
	int64_t rows;       /* of the batch whose gradient it is; 0: of none */
	double lr;          /* of the trainer whose gradient it is; 0: of none */
	const char *spoilt; /* the reason why the values are invalid; NULL: they are valid */
	bool meets;         /* may go from GPU to GPU, if all ranks have the values there, which they exchange first */
	bool gpu;           /* data is memory of this process's GPU */
	/* A sum is for one rank alone, or for all; a broadcast comes from a rank, to rank 0 alone, or to all. */
	int rank;
	bool one;
};

/* Where the elements begin that a rank adds. */
static inline size_t slp_piece_begin(const struct slp_exchange *x, int rank, int ranks)
{
	if (x->one) return rank > x->rank ? x->count : 0;
	return (size_t)((unsigned __int128)x->count * (unsigned)rank / (unsigned)ranks);
}

/* Whether all of a sum goes to all ranks, in one message each, and every rank adds all: two ranks send as many bytes
 * so, and less time passes; so does it with little to add. */
static inline bool slp_goes_whole(const struct slp_exchange *x, int ranks)
{
	enum { LITTLE = 4096 };
	return !x->one && (ranks == 2 || x->count * sl_dtype_size(x->dtype) <= LITTLE);
}

enum slp_outcome {
	SLP_EXCHANGED,
	SLP_EXCHANGE_SPOILT, /* a process has no valid values: all know that, and can continue */
	SLP_DIST_BROKEN      /* the processes cannot go on together */
};

struct slp_transport {
	const char *name;
	/* Connects to the other processes, and sets this one's rank in place; an error's text goes to why. */
	enum sl_status (*start)(struct slp_place *place, char why[SLP_DIST_WHY]);
	/* Adds the values of all processes, in the tree (0 + 1) + (2 + 3) …, or in any order if place->fast; why gets
	 * the error and its rank. */
	enum slp_outcome (*sum)(const struct slp_exchange *x, char why[SLP_DIST_WHY]);
	/* Gives the values of one rank. */
	enum slp_outcome (*broadcast)(const struct slp_exchange *x, char why[SLP_DIST_WHY]);
	/* Leaves; waits for the others to leave, for a bounded time. */
	void (*end)(void);
	uint64_t *sent; /* bytes, since start */
};

/* exchanges.c: the transport that a carrier makes, one at a time. */
const struct slp_transport *slp_messages(const struct slp_carrier *carrier);

/* simulated.c: the transport of simulated nodes; NULL: there are none.  apart: as if each node were alone. */
const struct slp_transport *slp_simulated_transport(bool *apart);
bool slp_simulated_sums_on_gpus(void);

extern const struct slp_carrier slp_tcp;
/* plugin.c: the carrier in libstarling-NAME.so, loaded for the rest of the program; NULL: why has the reason. */
const struct slp_carrier *slp_plugin(const char *name, char why[SLP_DIST_WHY]);

/* add.c */
/* Adds n arrays of count elements, in pairs of pairs; `to` may be one of them. */
void slp_add_tree(void *to, const void *const *list, int n, size_t count, enum sl_dtype dtype);
/* Whether all are finite; true for types that know nothing else. */
bool slp_all_finite(const void *data, size_t count, enum sl_dtype dtype);

#endif
