/* oneDNN's objects for products of bytes, kept by each thread for its most recent sizes. */
#ifndef SLP_QDNN_H
#define SLP_QDNN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/onednn.h"

enum { SLP_QDNN_NUMBERS = 28, SLP_QDNN_X = 0, SLP_QDNN_W, SLP_QDNN_B, SLP_QDNN_Y, SLP_QDNN_SCRATCH, SLP_QDNN_MEMORIES };

/* The sizes of a product, and all else that its code depends on. */
struct slp_qdnn_key {
	int64_t v[SLP_QDNN_NUMBERS];
};

/* A product: its code, its operands, and the reorder of weights from the plain order. */
struct slp_qdnn {
	struct slp_qdnn_key key;
	struct slp_dnn_quant quant; /* its own copy of the scales */
	uint64_t used;
	dnnl_primitive_t product, reorder;
	dnnl_memory_t memory[SLP_QDNN_MEMORIES], plain;
	dnnl_exec_arg_t operands[SLP_DNN_QUANT_OPERANDS];
	int noperands;
	size_t weight_bytes, scratch_bytes;
};

/* Describes a product; false: oneDNN has no fast one. */
typedef bool slp_qdnn_describe(const struct slp_qdnn_key *key, const struct slp_dnn_quant *quant, dnnl_engine_t engine,
                               dnnl_primitive_desc_t *pd, slp_dnn_md *plain_weights);

/* The product of these sizes and scales, made now if necessary; NULL: there is none. */
struct slp_qdnn *slp_qdnn_find(const struct slp_qdnn_key *key, const struct slp_dnn_quant *quant,
                               slp_qdnn_describe *describe);
/* Bytes of the weights as it takes them; 0: there is none. */
size_t slp_qdnn_packed(const struct slp_qdnn_key *key, const struct slp_dnn_quant *quant, slp_qdnn_describe *describe);
/* Weights, int8 in the plain order, as the product takes them. */
bool slp_qdnn_pack(struct slp_qdnn *m, void *plain, void *packed);
/* b and scratch may be NULL where there is none. */
bool slp_qdnn_run(struct slp_qdnn *m, const void *x, const void *w, const void *b, void *y, void *scratch);

#endif
