/* The interface for higher layers to several processes that train together: ranks, and exchanges between them. */
#ifndef SLP_DIST_H
#define SLP_DIST_H

#include "starling/dist.h"
#include "starling/tensor.h"
#include "tensor/tensor.h"

struct slp_transport;
struct slp_place;

/* This process among all of the run; size 1: it is alone. */
struct slp_dist {
	int rank, size;
	enum sl_dtype wire; /* as which float32 gradients travel */
	bool apart;         /* in simulation: exchanges are left out, as if each process were alone */
	bool nccl;          /* whether gradients on GPUs are added there */
	double patience;    /* seconds, as in struct slp_place */
};
extern struct slp_dist slp_dist;

/* ---- requests.c: served by a thread, in the order in which they are made ----------------------------------------- */

/* Elements of a tensor. */
struct slp_dist_part {
	size_t first, count;
};

/* An exchange: a name by which processes compare their calls; rows of the batch, 0: not a gradient.  parts: the parts
 * of a gradient that must be finite, if padding lies between them; nparts 0: all. */
struct slp_dist_what {
	const char *name;
	int64_t rows;
	double lr; /* the trainer's; 0: it is no gradient */
	const struct slp_dist_part *parts;
	int nparts;
	const char *const *names; /* of each tensor, where several are summed together; NULL: the name is that of all */
	/* A sum is for all; one: for this rank, and the others' values are worth nothing then.  A broadcast comes from
	 * this rank to all; one: to rank 0. */
	int rank;
	bool one;
	bool gpu; /* it is used on GPUs alone, though its tensor may be anywhere */
	bool any; /* values that are not finite are added as others are: loss scaling looks at the sums */
};
/* Submits a sum of a tensor's values over all processes, in place, or their replacement by those of a rank.  Returns at
 * once; earlier tasks on the tensor run before it, later ones wait for it.  False with an error recorded. */
bool slp_dist_sum(const char *at, sl_tensor *t, struct slp_dist_what what);
/* The same for several of one type, in one exchange. */
bool slp_dist_sum_together(const char *at, sl_tensor *const *list, int n, struct slp_dist_what what);
bool slp_dist_broadcast(const char *at, sl_tensor *t, struct slp_dist_what what);
/* In the place of an exchange between others. */
void slp_dist_skip(void);
/* The same with memory of the caller, who waits. */
enum sl_status slp_dist_sum_now(const char *at, const char *name, void *data, size_t count, enum sl_dtype dtype);
enum sl_status slp_dist_broadcast_now(const char *at, const char *name, void *data, size_t bytes);
void slp_dist_meet_on_gpus(const char *at); /* once StarPU runs */
/* Every rank reports its problem ("": none): the first report, with its rank, becomes an error on all ranks. */
enum sl_status slp_dist_agree(const char *at, const char *function, const char *wrong);

enum sl_status slp_requests_start(const char *at, const struct slp_transport *transport, struct slp_place *place);
void slp_requests_end(void);
/* Until all are over: an exchange is not a task. */
void slp_requests_wait(void);

#endif
