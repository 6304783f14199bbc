/* ONNX operators, computed: regions of images (RoiAlign), as products of interpolations along each axis.
 *
 * K. He et al., "Mask R-CNN", 2017: an element of the result is the mean of samples in its part of the region; a sample
 * is interpolated from the four pixels around it.  As that is a product of two linear interpolations, so is the mean:
 * of the rows, rows (regions, parts, height) · image · columns (regions, width, parts). */
#include <math.h>

#include "onnx/model/call.h"
#include "op.h"
#include "starling/arithmetic.h"
#include "starling/elementwise.h"
#include "starling/primitives.h"

/* How regions are cut along one axis. */
struct cut {
	const char *at;
	int64_t regions, parts, samples; /* of each part; 0: one a pixel, or a little more */
	int64_t size;                    /* of the images */
	double scale;
	bool half; /* pixels are at half numbers; else regions have a size of 1 at least */
};

/* Of (regions, parts, size), what is the same for some of these. */
static sl_tensor *seen(const char *at, sl_tensor *x, int64_t regions, int64_t parts, int64_t size)
{
	return x ? sl_reshape_at(at, x, SL_SHAPE(regions, parts, size)) : NULL;
}

static sl_tensor *counted(const struct cut *c, sl_tensor *like, int64_t n)
{
	return sl_arange_at(c->at, 0, (double)n, 1, (struct sl_make){sl_tensor_dtype(like), sl_tensor_device(like)});
}

/* Samples of a part: their number, their distance, the origin of each part's grid: (regions, 1, 1), (regions, parts,
 * 1). */
struct grid {
	sl_tensor *count, *step, *begin;
};

/* n for each region, as numbers that go with these. */
static sl_tensor *everywhere(const struct cut *c, sl_tensor *like, double n)
{
	struct sl_make make = {sl_tensor_dtype(like), sl_tensor_device(like)};
	return like ? sl_full_at(c->at, SL_SHAPE(c->regions, 1, 1), n, make) : NULL;
}

static struct grid grid_of(const struct cut *c, sl_tensor *low, sl_tensor *high)
{
	struct grid g = {0};
	double offset = c->half ? 0.5 : 0;
	low = sl_sub_scalar_at(c->at, sl_mul_scalar_at(c->at, seen(c->at, low, c->regions, 1, 1), c->scale), offset);
	high = sl_sub_scalar_at(c->at, sl_mul_scalar_at(c->at, seen(c->at, high, c->regions, 1, 1), c->scale), offset);
	sl_tensor *extent = sl_sub_at(c->at, high, low);
	if (!c->half) extent = sl_maximum_scalar_at(c->at, extent, 1);
	sl_tensor *part = sl_div_scalar_at(c->at, extent, (double)c->parts);
	g.count = c->samples ? everywhere(c, part, (double)c->samples) : sl_ceil_at(c->at, part);
	g.step = sl_div_at(c->at, part, sl_maximum_scalar_at(c->at, g.count, 1));
	sl_tensor *number = low ? seen(c->at, counted(c, low, c->parts), 1, c->parts, 1) : NULL;
	g.begin = sl_add_at(c->at, low, sl_mul_at(c->at, number, part));
	return g;
}

/* The weight of each pixel in sample number i of each part, (regions, parts, size): i is (…, 1) or one for each pixel.
 */
static sl_tensor *taken(const struct cut *c, const struct grid *g, sl_tensor *i)
{
	const char *at = c->at;
	sl_tensor *y = sl_add_at(at, g->begin, sl_mul_at(at, sl_add_scalar_at(at, i, 0.5), g->step));
	sl_tensor *there = sl_mul_at(at, sl_ge_scalar_at(at, y, -1), sl_le_scalar_at(at, y, (double)c->size));
	there = sl_mul_at(at, there, sl_mul_at(at, sl_ge_scalar_at(at, i, 0), sl_lt_at(at, i, g->count)));
	y = sl_minimum_scalar_at(at, sl_maximum_scalar_at(at, y, 0), (double)(c->size - 1));
	sl_tensor *pixel = y ? seen(at, counted(c, y, c->size), 1, 1, c->size) : NULL;
	sl_tensor *near = sl_rsub_scalar_at(at, sl_abs_at(at, sl_sub_at(at, y, pixel)), 1);
	return sl_mul_at(at, sl_relu_at(at, near), there);
}

/* The samples that may touch a pixel where they are half a pixel apart at least, and one more at each end. */
enum { NEAR = 6 };

static sl_tensor *nearest(const struct cut *c, const struct grid *g, int k)
{
	const char *at = c->at;
	sl_tensor *pixel = g->begin ? seen(at, counted(c, g->begin, c->size), 1, 1, c->size) : NULL;
	sl_tensor *first = sl_sub_at(at, sl_sub_scalar_at(at, pixel, 1), g->begin);
	first = sl_floor_at(at,
	                    sl_sub_scalar_at(at, sl_div_at(at, first, sl_maximum_scalar_at(at, g->step, 1e-6)), 0.5));
	/* One sample, whose step may be anything, is number 0. */
	first = sl_mul_at(at, first, sl_gt_scalar_at(at, g->count, 1));
	return sl_add_scalar_at(at, first, (double)k);
}

/* The mean of a part's samples, as shares of the pixels of an axis: (regions, parts, size). */
static sl_tensor *shares(const struct cut *c, sl_tensor *low, sl_tensor *high)
{
	struct grid g = grid_of(c, low, high);
	sl_tensor *sum = NULL;
	int64_t n = c->samples ? c->samples : NEAR;
	for (int64_t k = 0; k < n && g.begin; k++) {
		sl_tensor *i = c->samples ? everywhere(c, g.count, (double)k) : nearest(c, &g, (int)k);
		sl_tensor *part = taken(c, &g, i);
		sum = k ? sl_add_at(c->at, sum, part) : part;
	}
	return sum ? sl_div_at(c->at, sum, sl_maximum_scalar_at(c->at, g.count, 1)) : NULL;
}

/* ---- the node ---------------------------------------------------------------------------------------------------- */

static bool read_cut(struct slp_onnx_call *c, struct cut *y, struct cut *x)
{
	sl_shape s = slp_onnx_shape(c, 0), r = slp_onnx_shape(c, 1), b = slp_onnx_shape(c, 2);
	const char *places = "coordinate_transformation_mode";
	const char *usual = c->opset < 16 ? "output_half_pixel" : "half_pixel";
	if (!c->failed && (s.ndim != 4 || r.ndim != 2 || r.dim[1] != 4 || b.ndim != 1 || b.dim[0] != r.dim[0] ||
	                   sl_shape_size(s) < 1))
		slp_onnx_call_fail(c, SL_ESHAPE, "regions that do not fit the images");
	if (!slp_onnx_attr_is(c, "mode", "avg", "avg"))
		slp_onnx_call_fail(c, SL_EUNSUPPORTED, "its mode is not supported: only \"avg\" is");
	*y = (struct cut){.at = c->at, .regions = r.dim[0], .scale = slp_onnx_attr_float(c, "spatial_scale", 1)};
	y->samples = slp_onnx_attr_small(c, "sampling_ratio", 0, 0, 1024);
	y->half = slp_onnx_attr_is(c, places, usual, "half_pixel");
	if (!y->half && !slp_onnx_attr_is(c, places, usual, "output_half_pixel"))
		slp_onnx_call_fail(c, SL_EUNSUPPORTED, "its coordinate_transformation_mode is not supported");
	*x = *y;
	y->parts = slp_onnx_attr_small(c, "output_height", 1, 1, INT32_MAX);
	x->parts = slp_onnx_attr_small(c, "output_width", 1, 1, INT32_MAX);
	y->size = s.dim[2];
	x->size = s.dim[3];
	return !c->failed;
}

/* The image of each region, (regions, channels, height, width); a single image serves all. */
static sl_tensor *images_of(struct slp_onnx_call *c)
{
	sl_tensor *t = slp_onnx_tensor(c, 0);
	int64_t n = slp_onnx_shape(c, 0).dim[0];
	sl_tensor *i = t && n > 1 ? slp_onnx_indices(c, c->in[2], n) : NULL;
	return n > 1 ? (i ? sl_gather_at(c->at, t, i) : NULL) : t;
}

void slp_onnx_import_roi_align(struct slp_onnx_call *c)
{
	struct cut y, x;
	if (!read_cut(c, &y, &x)) return;
	const char *at = c->at;
	sl_tensor *t = images_of(c), *rois = slp_onnx_tensor(c, 1), *edge[4];
	enum sl_dtype dtype = t ? sl_tensor_dtype(t) : SL_FLOAT32, wide = slp_promoted(dtype);
	if (t && dtype != wide) t = sl_cast_at(at, t, wide);
	if (rois && sl_tensor_dtype(rois) != wide) rois = sl_cast_at(at, rois, wide);
	for (int i = 0; i < 4; i++) edge[i] = rois ? sl_slice_at(at, rois, 1, i, i + 1, 1) : NULL;
	sl_tensor *rows = shares(&y, edge[1], edge[3]), *columns = shares(&x, edge[0], edge[2]);
	if (rows) rows = sl_reshape_at(at, rows, SL_SHAPE(y.regions, 1, y.parts, y.size));
	if (columns) columns = sl_reshape_at(at, columns, SL_SHAPE(x.regions, 1, x.parts, x.size));
	t = t && rows ? sl_matmul_at(at, rows, t, (struct sl_dot_opts){0}) : NULL;
	t = t && columns ? sl_matmul_at(at, t, columns, (struct sl_dot_opts){.tb = true}) : NULL;
	slp_onnx_set_output(c, 0, t && dtype != wide ? sl_cast_at(at, t, dtype) : t);
}
