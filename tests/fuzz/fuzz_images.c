/* Feeds anything to the reader of images, PNG or JPEG as the first bytes tell, and makes colours and greys of the
 * pixels. */
#include <stdlib.h>

#include <starling.h>

#include "data/image/image.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct slp_image image;
	slp_image_most_pixels = 1 << 16; /* more take longer than all else */
	bool ok = slp_image_read(fuzz_file(data, size), &image);
	if (!ok && sl_error() == SL_OK) abort();
	int64_t pixels = ok ? image.height * image.width : 0;
	float *to = malloc((size_t)pixels * 3 * sizeof *to + 1);
	if (!to) abort();
	for (int channels = 1; ok && channels <= 3; channels += 2) slp_image_planes(&image, channels, to);
	free(to);
	if (ok) free(image.pixels);
	sl_error_clear();
	return 0;
}
