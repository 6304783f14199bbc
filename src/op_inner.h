/* Interface of codelets/ for graph passes, the loader and tools: operations that users do not call, and the
 * capabilities of kernels on this machine. */
#ifndef SLP_OP_INNER_H
#define SLP_OP_INNER_H

#include "op.h"
#include "starling/primitives.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- operations that the tensor layer calls (codelets/move/) ------------------------------------------------------ */

struct slp_cast {
	int dtype;
};

/* Integers as another integer type: what it cannot hold loses its upper bits. */
sl_tensor *slp_wrap(const char *at, sl_tensor *x, enum sl_dtype dtype);

enum {
	SLP_MODULAR_ADD,
	SLP_MODULAR_SUB,
	SLP_MODULAR_MUL,
	SLP_MODULAR_AND,
	SLP_MODULAR_OR,
	SLP_MODULAR_XOR,
	SLP_MODULAR_LEFT,
	SLP_MODULAR_RIGHT,
	SLP_MODULAR_KINDS
};

/* a + b, a - b or a b modulo 2^64, or bits: of both, of one, of only one, shifted; int64 of one shape. */
sl_tensor *slp_modular(const char *at, sl_tensor *a, sl_tensor *b, int kind);
/* sl_cumsum of int64, modulo 2^64. */
sl_tensor *slp_cumsum_modular(const char *at, sl_tensor *x, int axis);

/* As in Python: negative ends count from the end of the axis, and parts outside are cut off. */
struct slp_slice_attrs {
	int axis;
	int64_t begin, end, step;
};

/* ---- several conversions at once (codelets/move/convert_all.c) ---------------------------------------------------- */

enum { SLP_CONVERT_ALL = SLP_MAX_OUTPUTS }; /* tensors of a call */

struct slp_convert_all_attrs {
	int dtype;              /* of the results: float32 or a half type */
	int to_nhwc, from_nhwc; /* bit i: tensor i, of four axes, is reordered into the layout nhwc, or out of it */
};

/* ---- mini-batches (codelets/move/batch.c) ------------------------------------------------------------------------ */

/* Samples order[begin], ..., order[begin + count - 1] of images (n, ...), uint8, times scale, as float32 (count, ...);
 * order is int32.  They run where order lives, if images live on `auto`. */
sl_tensor *slp_batch_images(const char *at, sl_tensor *images, sl_tensor *order, int64_t begin, int64_t count,
                            double scale);
/* The same of labels (n), uint8, as int32 (count). */
sl_tensor *slp_batch_labels(const char *at, sl_tensor *labels, sl_tensor *order, int64_t begin, int64_t count);

/* ---- moving averages of parameters (codelets/optim/average.c) ---------------------------------------------------- */

/* averages[i] = keep averages[i] + (1 - keep) params[i], in place; nothing is recorded. */
enum sl_status slp_average_update(const char *at, sl_tensor *const *averages, sl_tensor *const *params, int count,
                                  double keep);

/* ---- clipping by the norm (codelets/optim/clip_scale.c) ---------------------------------------------------------- */

/* rescale · min(1, clip_norm / norm of the rescaled gradients), a scalar of their type: the factor that an optimiser's
 * step applies to the same gradients.  count and clip_norm above 0; nothing is recorded. */
sl_tensor *slp_clip_scale(const char *at, sl_tensor *const *grads, int count, double rescale, double clip_norm);
/* The same without all gradients in memory at once, in parts of at most so many bytes; on GPUs, the same bits. */
sl_tensor *slp_clip_scale_in_parts(const char *at, sl_tensor *const *grads, int count, double rescale, double clip_norm,
                                   size_t most);

/* ---- expressions of elementwise functions (codelets/elementwise/fused.c) ----------------------------------------- */

enum {
	SLP_FUSED_STEPS = 12,  /* of an expression */
	SLP_FUSED_NUMBERS = 8, /* that it can hold */
	SLP_FUSED_INPUTS = 13, /* no expression can read more */
	SLP_FUSED_INPUT = 0,   /* operand: input i is this plus i ... */
	SLP_FUSED_RESULT = 16, /* ... the result of step i */
	SLP_FUSED_VALUES = SLP_FUSED_RESULT + SLP_FUSED_STEPS,
	SLP_FUSED_NUMBER = 32, /* ... number i */
};

/* The expression.  All zero: an empty one. */
struct slp_fused_attrs {
	double number[SLP_FUSED_NUMBERS];
	int step[SLP_FUSED_STEPS]; /* code + 256 first operand + 65536 second operand + 2^24 own (fused.h) */
};

/* Whether an operation of the library can be part of an expression; those of programs can, if they are by_parts. */
bool slp_fused_takes(const struct sl_op *op);

/* Adds a call of op, with its attributes, on operands a and, if it takes two tensors, b.  Returns the operand that
 * stands for its result; -1, and nothing is added, if op cannot be part of an expression or this one is full. */
int slp_fused_add(struct slp_fused_attrs *f, const struct sl_op *op, const void *attrs, int a, int b);

/* The attributes of fused_reduce (codelets/reduce/fused_reduce.c), for an expression of this type whose result only `op`
 * reads, a reduction or a softmax, with its attributes after infer; false: it is neither, or has no compiled kernel. */
bool slp_fused_reduce_of(const struct slp_fused_attrs *f, const struct slp_type *expression, const struct sl_op *op,
                         const void *attrs, struct slp_fused_attrs *to);

/* ---- batch normalisation with given statistics (codelets/norm/) --------------------------------------------------- */

/* norm_fold: weights and bias of the layer before it. */
struct slp_norm_fold_attrs {
	double eps;
};

/* norm_affine: coefficients of its channels, for images with so many axes behind these. */
struct slp_norm_affine_attrs {
	double eps;
	int behind;
};

/* ---- activations (codelets/common/activation.c) ------------------------------------------------------------------ */

/* The operation that computes each, NAME, and its gradient, NAME_grad; NULL: the identity. */
struct slp_activation_ops {
	const struct sl_op *op, *slope;
};
extern const struct slp_activation_ops slp_activations[SL_ACTIVATIONS];

/* ---- attention (codelets/attention/heads.c) ----------------------------------------------------------------------- */

/* Whether a GPU computes attention at least as fast where heads stay in their sources; widths of q and v. */
bool slp_attention_takes_heads(enum sl_dtype dtype, int64_t d, int64_t dv, bool masked);

/* ---- convolutions (codelets/conv/) ------------------------------------------------------------------------------- */

/* The result of a pass: y from x, w, b; x from y, w; w and b from x, y.  The last two are gradients. */
enum slp_conv_pass { SLP_CONV_FORWARD, SLP_CONV_DATA, SLP_CONV_WEIGHTS, SLP_CONV_PASSES };

/* Each pass has three operations: the public one, with the attributes of a convolution; the same with layouts of images
 * and types of parameters, which graph passes choose; the same with a pooling.  Their attributes are one structure. */
struct slp_conv_forms {
	const struct sl_op *plain, *lowered, *pooled;
};
extern const struct slp_conv_forms slp_conv_forms[SLP_CONV_PASSES];
/* The pass that an operation computes, in any form; SLP_CONV_PASSES: not a convolution. */
enum slp_conv_pass slp_conv_pass_of(const struct sl_op *op);

/* A pooling of 2 × 2 windows side by side, after a convolution or before its gradient.  A mask records for each element
 * of the unpooled y whether it gets the gradient: one bit per element, those of 16 images in two bytes, (n / 16,
 * channels, height, width, 2), declared as n / 8 images of uint8. */
enum slp_conv_pool { SLP_CONV_POOL_NONE, SLP_CONV_POOL_MAX, SLP_CONV_POOL_AVG };

/* Layouts of images, which graph passes choose (codelets/common/image_layout.h): X(NAME, name in the text of programs).
 * Attributes hold them as int; 0 is the plain layout. */
#define SLP_LAYOUT_LIST(X) X(PLAIN, "plain") X(N16, "n16") X(NC16, "nc16") X(NHWC, "nhwc")
enum slp_image_layout {
#define X(name, text) SLP_LAYOUT_##name,
	SLP_LAYOUT_LIST(X)
#undef X
	        SLP_LAYOUTS
};
enum { SLP_N16_IMAGES = 16, SLP_NC16_CHANNELS = 16 }; /* images of a group, channels of a block */

/* Bytes that a library may work in on a GPU, beside the operands of a call: a part of its memory (admission.c). */
size_t slp_gpu_workspace(void);

/* Whether this call of a convolution or of one of its gradients is fastest in the layout N16. */
bool slp_conv_prefers_n16(const struct slp_infer *call);
/* Whether convolutions in bfloat16 take images in the layout NC16 on this machine. */
bool slp_conv_takes_nc16(void);
/* Whether this processor has instructions for bfloat16; if not, says so once on standard error. */
bool slp_bf16_available(void);
/* Whether the processor has the instructions that convolutions in N16 need. */
bool slp_conv_has_n16(void);

/* Attributes of convolutions begin with the caller's options. */
/* Puts numbers in the place of zeros that mean defaults (conv2d_forms.c). */
void slp_conv_defaults(struct sl_conv2d_opts *o);

/* ---- images in blocks of channels (codelets/common/blocks.h) ----------------------------------------------------- */

struct slp_blocks_attrs {
	int block;    /* channels in a block: 8 or 16 */
	int channels; /* of the images; the last block may have more */
	int depth;    /* from_blocks: of volumes; 0: images */
};

/* The block size of channels for fast kernels on this machine; 0: none. */
int slp_block_size(void);

/* What a convolution of volumes has beside that of images; all 0: images. */
struct slp_conv_depth {
	int kernel, stride, pad, dilation;
};

struct slp_conv3d_attrs {
	struct sl_conv2d_opts conv;
	struct slp_conv_depth depth; /* kernel: that of w, or 0 */
	int activation;
};

/* conv3d: the convolution of volumes x (n, channels, depth, height, width), without a gradient, of float32 on CPUs
 * (codelets/conv/conv3d.c). */
sl_tensor *slp_conv3d(const char *at, sl_tensor *x, sl_tensor *w, sl_tensor *b, struct sl_conv2d_opts opts,
                      struct slp_conv_depth depth);

struct slp_conv2d_blocked_attrs {
	struct sl_conv2d_opts conv;
	struct slp_conv_depth depth;
	int kernel[2];
	int channels[2]; /* of x, of y */
	int size[2];     /* of x, for conv2d_pack: height and width */
	int layers;      /* of x, of volumes: their depth */
	int images;      /* of x, for conv2d_pack */
	int block;       /* channels in a block */
	int packed;      /* floats of w packed by conv2d_pack; 0: w is in the plain order */
	bool x_plain;    /* x is in the plain order */
	bool winograd, relu;
	bool bounded; /* y is kept between these two */
	double low, high;
};

/* Whether there is a fast kernel for a convolution in blocks, on a team of `threads` threads; sets a->packed. */
bool slp_conv_blocked_plan(struct slp_conv2d_blocked_attrs *a, int threads);

struct slp_affine_attrs {
	bool relu;
};

/* ---- eight bits (codelets/quant/) --------------------------------------------------------------------------------- */

/* Quantised elements are uint8: a byte q is the real number scale (q - zero).  Files' int8 is held as uint8, its zero
 * point 128 larger.  Weights are bytes whose zero point is 128: what libraries take as int8.  Images are NHWC. */
enum { SLP_Q_WEIGHT_ZERO = 128 };

/* The result of a product: the sum in int32, that times a scale as a float, or this in whole steps from y_zero. */
enum slp_q_out { SLP_Q_UINT8, SLP_Q_INT32, SLP_Q_FLOAT32, SLP_Q_OUTS };

struct slp_quantize_attrs {
	int64_t inner; /* elements that have a scale and a zero point in common; 0: all */
};

struct slp_qconv_attrs {
	int stride[2], pad[4], dilation[2], groups, kernel[2]; /* pad: top, left, bottom, right */
	int channels[2];                                       /* of x, of y */
	int x_zero, y_zero, out;
	int size[2], images; /* of x, for qconv2d_pack */
	int64_t packed;      /* bytes of w as qconv2d_pack gives it; 0: w is in the plain order */
};

struct slp_qmatmul_attrs {
	int b_zero, y_zero, out;
	bool b_transposed;         /* b is (n, k) */
	int64_t rows, inner, cols; /* m, k, n, for qmatmul_pack */
	int64_t packed;            /* bytes of b as qmatmul_pack gives it; 0: b is in the plain order */
};

enum slp_q_binary { SLP_Q_ADD, SLP_Q_MUL };
struct slp_qbinary_attrs {
	int kind, zero[3];
	double scale[3]; /* of a, b, y */
};

struct slp_qpool_attrs {
	int max, kernel[2], stride[2], pad[4], include_pad, x_zero, y_zero; /* pad: top, left, bottom, right */
	int size[2];                                                        /* of y */
	double scale;                                                       /* of x, over that of y */
};

/* The size of packed weights on a team of so many threads, into a->packed; false if a library has no fast kernel for
 * weights that are packed. */
bool slp_qconv_plan(struct slp_qconv_attrs *a, int threads);
bool slp_qmatmul_plan(struct slp_qmatmul_attrs *a, int threads);

/* ---- products (codelets/common/gemm.c) --------------------------------------------------------------------------- */

/* The library that slp_sgemm uses: "oneDNN", "OpenBLAS" or "plain". */
const char *slp_sgemm_library(void);
/* Why that one, in words. */
const char *slp_sgemm_reason(void);

#ifdef __cplusplus
}
#endif
#endif
