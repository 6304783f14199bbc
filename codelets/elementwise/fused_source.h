/* The CUDA source of one expression of fused.h for operands of certain shapes, to be compiled at run time (compiled.h). */
#ifndef SLP_FUSED_SOURCE_H
#define SLP_FUSED_SOURCE_H

#include "compiled.h"
#include "fused.h"
#include "reduce/reduce_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a thread reads an input: with the index of the result, by one access or element by element; along a row, by one
 * access; a single element for all; element by element. */
enum slp_fused_reading {
	SLP_FUSED_GAPLESS,
	SLP_FUSED_GAPLESS_SINGLE,
	SLP_FUSED_ROW,
	SLP_FUSED_SPLAT,
	SLP_FUSED_SINGLE
};

/* The operands: axes of the result, merged where all inputs allow it, and the inputs' steps along them. */
struct slp_fused_plan {
	enum sl_dtype dtype;
	int width; /* elements that a thread computes at once: as many as 16 bytes hold, or 1 */
	int nin, ndim;
	bool aligned; /* the result, for all elements of a thread at once */
	enum slp_fused_reading how[SLP_FUSED_INPUTS];
	bool wide[SLP_FUSED_INPUTS]; /* of float32 beside a half type */
	int64_t n, dim[SL_MAX_NDIM], stride[SLP_FUSED_INPUTS][SL_MAX_NDIM];
};

/* The argument of the kernel, which is called `kernel`: pointers first.  parts: of a reduction. */
struct slp_fused_call {
	const void *in[SLP_FUSED_INPUTS];
	void *out;
	double *parts;
	double number[SLP_FUSED_NUMBERS];
	int64_t n;
};
enum { SLP_FUSED_POINTERS = SLP_FUSED_INPUTS + 2 };

/* The elements that a thread computes at once: 16 bytes. */
static inline int slp_fused_width(enum sl_dtype dtype)
{
	return 16 / (int)sl_dtype_size(dtype);
}

/* Writes the source; false if it does not fit, or a step has no source (a program's own operation). */
bool slp_fused_source(const struct slp_fused_attrs *f, const struct slp_fused_plan *p, char *to, size_t size);

/* A reduction of the expression as kernels `rows` and `columns` of reduce.cu compute it: blocks of `block` threads; of rows,
 * groups of `lanes`, `across` of which go along a row; of columns, `across` groups of columns a block. */
struct slp_fused_reduction {
	int reduction; /* enum slp_reduction */
	int lanes, block, across;
	int width;     /* elements of a thread at once */
	int64_t tasks; /* of groups; of columns, of blocks */
	struct slp_reduce_plan plan;
};
bool slp_fused_reduce_source(const struct slp_fused_attrs *f, const struct slp_fused_plan *p,
                             const struct slp_fused_reduction *r, char *to, size_t size);

/* A softmax, or its logarithm, of the expression's `rows` rows of n elements, as kernel held_rows of softmax.cu computes
 * it. */
struct slp_fused_rows {
	int64_t n, rows;
	int lanes, block;
	bool logs;
};
bool slp_fused_softmax_source(const struct slp_fused_attrs *f, const struct slp_fused_plan *p,
                              const struct slp_fused_rows *r, char *to, size_t size);

/* The files that sources include, by name; ends with NULL. */
extern const struct slp_compiled_header slp_fused_headers[];

#ifdef __cplusplus
}
#endif
#endif
