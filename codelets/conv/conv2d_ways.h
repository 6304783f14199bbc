/* The alternatives for a call of a convolution on a GPU, and the choice for each call. */
#ifndef SLP_CONV2D_WAYS_H
#define SLP_CONV2D_WAYS_H

#include "conv2d_graph.h"
#include "tune.h"

/* X(NAME, text) */
#define SLP_CONV_WAYS(X)                                                                                               \
	X(GRAPH, "graph") /* cuDNN's graph API */                                                                      \
	X(OLDER, "older") /* its older interface */                                                                    \
	X(FEW, "few")     /* conv2d_few.cu */                                                                          \
	X(HEURISTICS, "heuristics")

enum slp_conv_by {
#define X(name, text) SLP_BY_##name,
	SLP_CONV_WAYS(X)
#undef X
};

struct slp_conv_way {
	enum slp_conv_by by;
	int option; /* of the interface */
	bool nhwc;  /* on images in NHWC; else plain */
};

/* Everything that the time of a call depends on; compared as bytes. */
struct slp_conv_call {
	struct slp_conv_graph f; /* in the layout of the program's images */
	int64_t how;             /* bits: copies of operands, steps after cuDNN */
};

#ifdef __cplusplus
extern "C" {
#endif

/* The calling thread's choice; NULL: none yet. */
struct slp_conv_way *slp_conv_known(const struct slp_conv_call *call);
/* Sets the choice. NULL: no memory. */
struct slp_conv_way *slp_conv_note(const struct slp_conv_call *call, const struct slp_conv_way *way);
/* Called before handles are destroyed. */
void slp_conv_ways_forget(void);

void slp_conv_key_text(const struct slp_conv_call *call, char to[SLP_TUNE_KEY]);
/* `option` is the name that its interface gives it. */
void slp_conv_way_text(const struct slp_conv_way *way, const char *option, char to[SLP_TUNE_TEXT]);

#ifdef __cplusplus
}
#endif

#endif
