/* Padding of inputs to the sizes of buckets (struct sl_buckets), so that batches of many sizes share programs. */
#ifndef SLP_NN_FILLING_H
#define SLP_NN_FILLING_H

#include "graph/prefix.h"
#include "starling/nn.h"

/* The padding of the inputs of one call. */
struct slp_padding {
	unsigned which; /* of them follow the size; 0: nothing is done */
	int axis;
	int64_t length, size; /* before, and filled up */
};

/* Whether these can be options; records an error if not. */
bool slp_buckets_usable(const char *at, const char *function, const struct sl_buckets *buckets);
/* Chooses the bucket.  Inputs without elements along the axis, and those beyond the largest bucket, are taken as they
 * are.  what: for messages; false with an error. */
bool slp_padding_of(const char *at, const char *what, const struct sl_buckets *buckets, int nin, sl_tensor *const *in,
                    struct slp_padding *f);
/* Pads inputs to the bucket's size by repeating their last elements; the new tensors are in the innermost scope.  False
 * with an error. */
bool slp_pad(const char *at, const struct slp_padding *f, int nin, sl_tensor *const *in, sl_tensor **out);
/* The part of a result that belongs to the inputs before padding; in the innermost scope. */
sl_tensor *slp_unpad(const char *at, const struct slp_padding *f, struct slp_follows follows, sl_tensor *y);

/* How the first nout results of a program for the bucket's size follow it; less: the program for the shorter inputs. */
bool slp_padding_follows(const char *at, const char *what, const struct slp_padding *f, const sl_graph *more,
                         const sl_graph *less, int nout, struct slp_follows *out);

#endif
