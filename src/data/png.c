/* PNG images, through libpng. */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "data/dataset.h"
#include "data/image.h"
#include "op.h"

#ifdef HAVE_PNG

#include <png.h>
#include <stdlib.h>
#include <string.h>

static bool failed(const char *path, png_image *png)
{
	slp_data_fail(SL_EFORMAT, "%s: damaged PNG image: %s", path, png->message);
	png_image_free(png);
	return false;
}

/* Transparency is left out, not mixed with a background. */
static void drop_alpha(struct slp_image *image)
{
	int64_t n = image->height * image->width;
	int from = image->channels, to = from - 1;
	for (int64_t i = 0; i < n; i++)
		for (int c = 0; c < to; c++) image->pixels[i * to + c] = image->pixels[i * from + c];
	image->channels = to;
}

/* A byte cannot become more than 1032 bytes, of 8 pixels each. */
static int64_t most_pixels(size_t size)
{
	return ((int64_t)size + 1) * 1032 * 8;
}

bool slp_png_read(const char *path, const uint8_t *bytes, size_t size, struct slp_image *image)
{
	png_image png = {.version = PNG_IMAGE_VERSION};
	if (!png_image_begin_read_from_memory(&png, bytes, size)) return failed(path, &png);
	png.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;                      /* 16 bits are 8 bits made finer */
	png.format &= PNG_FORMAT_FLAG_COLOR | PNG_FORMAT_FLAG_ALPHA; /* 8 bits, no palette, no other order */
	image->height = png.height;
	image->width = png.width;
	image->channels = (int)PNG_IMAGE_SAMPLE_CHANNELS(png.format);
	if (!slp_image_room(path, most_pixels(size), image)) {
		png_image_free(&png);
		return false;
	}
	if (!png_image_finish_read(&png, NULL, image->pixels, 0, NULL)) return failed(path, &png);
	if (png.format & PNG_FORMAT_FLAG_ALPHA) drop_alpha(image);
	return true;
}

#else

bool slp_png_read(const char *path, const uint8_t *bytes, size_t size, struct slp_image *image)
{
	(void)bytes, (void)size, (void)image;
	return slp_data_fail(SL_EUNSUPPORTED, "%s: Starling was built without libpng (Debian: libpng-dev)", path);
}

#endif
