/* Tracing blocks: from a forward function to programs. */
#ifndef SLP_NN_TRACE_H
#define SLP_NN_TRACE_H

#include "autograd/autograd.h"
#include "graph/plan.h"
#include "graph/symbol.h"
#include "nn/nn.h"
#include "nn/split.h"
#include "op.h"
#include "starling/nn.h"

/* The signature of a plan: types and devices of the inputs, modes. */
struct slp_signature {
	int nin;
	bool recording, training;
	enum sl_dtype autocast;
	int shard;
	uint64_t cache; /* its number; 0: none */
	sl_device device;
	struct slp_signature_input {
		struct slp_type type;
		bool wanted; /* gradients flow to it */
	} in[];
};
/* Whether all inputs are on one device, or on auto; else an error. */
bool slp_inputs_together(const char *at, const char *name, int nin, sl_tensor *const *in);
struct slp_signature *slp_signature_new(int nin, sl_tensor *const *in);
/* The same where some inputs, bits of `which`, have an element less along an axis.  malloc'd. */
struct slp_signature *slp_signature_shorter(const struct slp_signature *s, unsigned which, int axis);
bool slp_signature_matches(const struct slp_signature *s, int nin, sl_tensor *const *in);

/* Traces the block's forward for a signature; false with an error. */
bool slp_trace_block(const char *at, sl_block *block, const struct slp_signature *s, struct slp_traced *traced);
void slp_traced_clear(struct slp_traced *traced);
/* Symbols for the inputs of a signature, "data" or "data0", "data1", …; in the innermost scope; false with an error. */
bool slp_trace_inputs(const char *at, const struct slp_signature *s, sl_tensor **symbols);
/* Whether the trace met something it cannot take, or a mistake, though the result may be there; records the error. */
bool slp_trace_failed(const char *at, const sl_block *block, const sl_tensor *result);

#endif
