/* Copies between a gapless tensor and a strided one of the same elements: the work of transpose and slice. */
#ifndef SLP_STRIDED_H
#define SLP_STRIDED_H

#include <string.h>

#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(T): one for each size that elements have, since copies do not depend on their type. SLP_BY_SIZE(size, name) is
 * name_uint8_t, … for elements of so many bytes. */
#define SLP_SIZES(X) X(uint8_t) X(uint16_t) X(uint32_t) X(uint64_t)
#define SLP_BY_SIZE(size, name)                                                                                        \
	((size) == 1 ? name##_uint8_t : (size) == 2 ? name##_uint16_t : (size) == 4 ? name##_uint32_t : name##_uint64_t)

/* The source of output element (i0, i1, …), row-major over dim, is element base + i0 * stride[0] + i1 * stride[1] …
 * Strides may be negative. slp_strided_add keeps that no dim is 1 and no two neighbours can be merged. */
struct slp_strided {
	int ndim;
	int64_t dim[SL_MAX_NDIM], stride[SL_MAX_NDIM];
	int64_t base;
};

/* Appends an output axis, inside the earlier ones. */
static inline void slp_strided_add(struct slp_strided *p, int64_t dim, int64_t stride)
{
	int last = p->ndim - 1;
	if (dim == 1) return;
	if (last >= 0 && p->stride[last] == dim * stride) {
		p->dim[last] *= dim;
		p->stride[last] = stride;
		return;
	}
	p->dim[p->ndim] = dim;
	p->stride[p->ndim++] = stride;
}

/* The axis to swap with the last one tile by tile: neighbours along it are neighbours in the source.  -1: the last
 * axis itself is as good as any. */
static inline int slp_strided_tile_axis(const struct slp_strided *p)
{
	if (p->ndim < 2 || p->stride[p->ndim - 1] == 1) return -1;
	for (int i = p->ndim - 2; i >= 0; i--)
		if (p->stride[i] == 1) return i;
	return -1;
}

/* The axes of a transposition by tiles: out[o][b][a] = in[o'][a][b]. */
struct slp_tiling {
	int64_t na, nb;                  /* sizes of the last axis and of the tile axis */
	int64_t in_a, out_b;             /* their steps, in the source and in the result */
	struct slp_strided outer;        /* the other axes, in the source */
	int64_t out_stride[SL_MAX_NDIM]; /* ... and in the result */
	int64_t nouter;
};

static inline struct slp_tiling slp_tiling_of(const struct slp_strided *p, int axis)
{
	int last = p->ndim - 1;
	struct slp_tiling t = {p->dim[last], p->dim[axis], p->stride[last], 0, {0, {0}, {0}, p->base}, {0}, 1};
	int64_t out_stride = 1;
	for (int i = last; i >= 0; i--) {
		if (i == axis) t.out_b = out_stride;
		t.nouter *= i == axis || i == last ? 1 : p->dim[i];
		out_stride *= p->dim[i];
	}
	for (int i = 0; i < last; i++) {
		out_stride /= p->dim[i];
		if (i == axis) continue;
		t.outer.dim[t.outer.ndim] = p->dim[i];
		t.outer.stride[t.outer.ndim] = p->stride[i];
		t.out_stride[t.outer.ndim++] = out_stride;
	}
	return t;
}

/* Shorter runs are not worth a call of memcpy. */
static inline void slp_copy_run(char *to, const char *from, size_t bytes)
{
	if (bytes == 4) memcpy(to, from, 4);
	else if (bytes == 8) memcpy(to, from, 8);
	else memcpy(to, from, bytes);
}

/* A shape relative to one axis: sizes before it, of it, after it. */
struct slp_split {
	int64_t outer, n, inner;
};

static inline struct slp_split slp_split_at(sl_shape shape, int axis)
{
	struct slp_split s = {1, shape.dim[axis], 1};
	for (int i = 0; i < axis; i++) s.outer *= shape.dim[i];
	for (int i = axis + 1; i < shape.ndim; i++) s.inner *= shape.dim[i];
	return s;
}

/* out[0] of the kernel from in[0]: reference, on the team, on the GPU (strided.c, strided.cu). */
enum sl_status slp_strided_ref(const struct slp_kernel *k, const struct slp_strided *p);
enum sl_status slp_strided_cpu(const struct slp_kernel *k, const struct slp_strided *p);
enum sl_status slp_strided_cuda(const struct slp_kernel *k, const struct slp_strided *p);

#ifdef __cplusplus
}
#endif
#endif
