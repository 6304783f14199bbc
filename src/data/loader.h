/* Internals of loaders: the position of one. */
#ifndef SLP_LOADER_H
#define SLP_LOADER_H

#include <starling/data.h>

/* X(name, text) for each property that a resumed run must share with the saved one, with the saved and the current
 * number. */
#define SLP_LOADER_SAME(X)                                                                                             \
	X(samples, "samples: %lld in the file, %lld here")                                                             \
	X(batch_size, "batch size: %lld in the file, %lld here")                                                       \
	X(shuffle, "shuffled: %lld in the file, %lld here")                                                            \
	X(last, "treatment of the last batch: %lld in the file, %lld here")                                            \
	X(images, "data set: images with checksum %llx in the file, %llx here")                                        \
	X(labels, "data set: labels with checksum %llx in the file, %llx here")
/* X(name, ) for each number that a resumed run continues from: the seed of its orders, the epoch, the batches returned.
 */
#define SLP_LOADER_MOVES(X)                                                                                            \
	X(seed, )                                                                                                      \
	X(epoch, )                                                                                                     \
	X(taken, )

struct slp_loader_state {
#define X(name, text) int64_t name;
	SLP_LOADER_SAME(X)
	SLP_LOADER_MOVES(X)
#undef X
};

/* Where it stands, with checksums of its data set; false with an error recorded. */
bool slp_loader_get(const char *at, sl_loader *loader, struct slp_loader_state *state);
/* Moves the state on to where it stands now, unless another thread is working with it. */
void slp_loader_look(sl_loader *loader, struct slp_loader_state *state);
/* Sets the loader to a position, which must be valid. */
void slp_loader_set(sl_loader *loader, const struct slp_loader_state *state);

#endif
