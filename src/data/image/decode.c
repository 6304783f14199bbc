/* Single images: the bytes of a file as a tensor. */
#include <stdlib.h>

#include "data/dataset.h"
#include "data/image/image.h"
#include "op.h"
#include "runtime/budget.h"
#include "starling/data.h"
#include "starling/tensor.h"

/* The image in the bytes of a PNG or JPEG file: uint8 (height, width, channels) on the default device, with 1 channel
 * for grey and 3 for colours.  Transparency is ignored.  The bytes may be freed after the call.  NULL with SL_EINVAL:
 * there are no bytes; SL_EFORMAT: they are no such file, or a damaged one; SL_EUNSUPPORTED: Starling was built without
 * libpng or libjpeg; SL_ETIME: it exceeds a limit of untrusted files (struct sl_untrusted).
 *
 *     sl_tensor *pixels = sl_image_decode(bytes, size); */
sl_tensor *sl_image_decode_at(const char *at, const void *bytes, size_t size)
{
	SLP_CALL("sl_image_decode", at);
	struct slp_image image = {0};
	sl_tensor *t = NULL;
	SLP_BUDGET("image");
	if (!slp_given(at, "sl_image_decode", "bytes", bytes)) return NULL;
	if (slp_image_decode("image", bytes, size, &image))
		t = sl_from_at(at, image.pixels, SL_SHAPE(image.height, image.width, image.channels),
		               (struct sl_make){.dtype = SL_UINT8});
	free(image.pixels);
	return t;
}
