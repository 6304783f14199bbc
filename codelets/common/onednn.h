/* The part of oneDNN that convolutions need, for its releases 2 (from 2.6) and 3, whose C interfaces make and hold
 * descriptors in different ways. */
#ifndef SLP_ONEDNN_H
#define SLP_ONEDNN_H

#include <stdbool.h>

#include <dnnl.h>

#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t slp_dnn_md;        /* an owned description of a tensor */
typedef const_dnnl_memory_desc_t slp_dnn_ref; /* a reference to one */
#else
typedef dnnl_memory_desc_t slp_dnn_md;
typedef const dnnl_memory_desc_t *slp_dnn_ref;
#endif

enum slp_dnn_pass { SLP_DNN_FORWARD, SLP_DNN_DATA, SLP_DNN_WEIGHTS };

/* The steps after a convolution: adds the result to the previous contents, then applies relu, or limits it to
 * bounds. */
struct slp_dnn_after {
	int sum, relu, bounded;
	float low, high;
};

/* A convolution of bytes: y = scale (sum + bias) + y_zero, with a scale for each channel of y, or none (n is 0). */
struct slp_dnn_quant {
	float *scales;
	int64_t n;
	int32_t x_zero, y_zero;
};

/* A convolution; b may be absent.  dilates are 0 for a dense kernel. */
struct slp_dnn_conv {
	dnnl_alg_kind_t algorithm;
	slp_dnn_md x, w, b, y;
	bool bias, inference; /* inference: weights may have a form from which gradients cannot be computed */
	dnnl_dims_t strides, dilates, padding, padding_after;
	struct slp_dnn_after after;
	const struct slp_dnn_quant *quant; /* of bytes, or NULL */
};

bool slp_dnn_md_make(slp_dnn_md *md, int ndim, const dnnl_dims_t dims, dnnl_data_type_t type, dnnl_format_tag_t tag);
void slp_dnn_md_free(slp_dnn_md *md);
slp_dnn_ref slp_dnn_md_ref(const slp_dnn_md *md);

/* A matrix, by its strides in elements; the product c = a b of such. */
bool slp_dnn_md_matrix(slp_dnn_md *md, dnnl_data_type_t type, int64_t rows, int64_t columns, int64_t down,
                       int64_t along);
dnnl_status_t slp_dnn_matmul_describe(dnnl_primitive_desc_t *out, dnnl_engine_t engine, const slp_dnn_md *a,
                                      const slp_dnn_md *b, const slp_dnn_md *c);

/* The description of one pass; `forward` is that of the forward pass, which the others need.  The scratchpad is the
 * caller's. */
dnnl_status_t slp_dnn_conv_describe(dnnl_primitive_desc_t *out, dnnl_engine_t engine, const struct slp_dnn_conv *conv,
                                    enum slp_dnn_pass pass, const_dnnl_primitive_desc_t forward);

/* The operands of such a convolution that oneDNN 3 takes at each run; 2 has them in its code, so there are none.  They refer
 * to `quant`. */
enum { SLP_DNN_QUANT_OPERANDS = 3 };
bool slp_dnn_quant_operands(struct slp_dnn_quant *quant, dnnl_engine_t engine,
                            dnnl_exec_arg_t operands[SLP_DNN_QUANT_OPERANDS], int *count);

#endif
