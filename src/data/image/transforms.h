/* The computations of transforms, on float32 images (channels, height, width). */
#ifndef SLP_TRANSFORMS_H
#define SLP_TRANSFORMS_H

#include "data/dataset.h"
#include "starling/data.h"

struct slp_transform_rule {
	const char *name;
	/* The shape that comes of another one; false with an error recorded. */
	bool (*shape)(const struct sl_transform *t, sl_shape in, sl_shape *out);
	/* Writes the transformed `from` to `to`; without it, change works in place. */
	bool (*make)(const struct sl_transform *t, sl_shape in, const float *from, float *to, struct sl_sample *s);
	bool (*change)(const struct sl_transform *t, sl_shape in, float *x, struct sl_sample *s);
};
/* NULL: there is no such kind. */
const struct slp_transform_rule *slp_transform_rule(enum sl_transform_kind kind);

/* Resizes by triangles as wide as a pixel of the coarser image, as PIL's and PyTorch's antialiased bilinear; false: no
 * memory, which is recorded. */
bool slp_resize(const float *from, sl_shape in, float *to, int64_t height, int64_t width);

#endif
