/* Loaders from the inside: where one stands. */
#ifndef SLP_LOADER_H
#define SLP_LOADER_H

#include <starling/data.h>

/* X(name, text) for what a run that goes on must have as it was, with the saved and the present number. */
#define SLP_LOADER_SAME(X)                                                                                             \
	X(samples, "samples: %lld in the file, %lld here")                                                             \
	X(batch_size, "batch size: %lld in the file, %lld here")                                                       \
	X(shuffle, "shuffled: %lld in the file, %lld here")                                                            \
	X(last, "treatment of the last batch: %lld in the file, %lld here")                                            \
	X(images, "data set: images with checksum %llx in the file, %llx here")                                        \
	X(labels, "data set: labels with checksum %llx in the file, %llx here")
/* X(name, ) for what it goes on with: the seed of its orders, the epoch, how many batches of it were handed out. */
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
/* Puts it there; the position is one that it can have. */
void slp_loader_set(sl_loader *loader, const struct slp_loader_state *state);

#endif
