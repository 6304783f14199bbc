/* Common parts of the exporters: the traced program, attributes of its operations, errors. */
#ifndef SLP_EXPORT_PROGRAM_H
#define SLP_EXPORT_PROGRAM_H

#include "graph/graph.h"
#include "op.h"
#include "starling/io.h"

/* The block's program for these options, traced without being recorded; NULL with an error. */
sl_graph *slp_export_trace(const char *at, const char *function, sl_block *block, const struct sl_export_opts *opts);

/* Attribute `name`, element i, of an operation; it must have it. */
double slp_export_number(const struct slp_gnode *n, const char *name, unsigned i);
static inline int64_t slp_export_int(const struct slp_gnode *n, const char *name, unsigned i)
{
	return (int64_t)slp_export_number(n, name, i);
}
/* The number, or the default where it is 0. */
static inline double slp_export_or(const struct slp_gnode *n, const char *name, double otherwise)
{
	double v = slp_export_number(n, name, 0);
	return v != 0 ? v : otherwise;
}
/* Height and width; 0 for height means `otherwise`, 0 for width: as the height. */
void slp_export_pair(const struct slp_gnode *n, const char *name, const int64_t otherwise[2], int64_t pair[2]);
/* Window, step and border of a pooling. */
struct slp_pooling {
	int64_t kernel[2], stride[2], pad[2];
};
struct slp_pooling slp_export_pooling(const struct slp_gnode *n);
/* Axes of a reduction, all of them if none are given; returns their number. */
int slp_export_axes(const struct slp_gnode *n, int ndim, int axes[SL_MAX_NDIM]);
/* The permutation of a transpose. */
void slp_export_permutation(const struct slp_gnode *n, int ndim, int64_t axes[SL_MAX_NDIM]);
/* The shape of a reshape in codes that do not depend on the size of the batch: `keep` for a dim as x has it, -1 for one
 * that is computed. */
sl_shape slp_export_reshape(const struct slp_gnode *n, sl_shape x, sl_shape y, int64_t keep);

static inline const struct slp_type *slp_input_type(const sl_graph *g, const struct slp_gnode *n, int i)
{
	return slp_value_type(g, n->in[i]);
}

#endif
