/* PNG images, through libpng. */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "data/dataset.h"
#include "data/image/image.h"

#ifdef HAVE_PNG

#include <png.h>
#include <stdlib.h>
#include <string.h>

/* The rest of the file, and the reason why it cannot be read. */
struct source {
	const uint8_t *bytes;
	size_t left;
	char why[128];
};

static void take(png_structp png, png_bytep to, size_t n)
{
	struct source *s = png_get_io_ptr(png);
	if (n > s->left) png_error(png, "it ends too early");
	memcpy(to, s->bytes, n);
	s->bytes += n;
	s->left -= n;
}

static __attribute__((noreturn)) void fail(png_structp png, const char *why)
{
	struct source *s = png_get_error_ptr(png);
	snprintf(s->why, sizeof s->why, "%s", why);
	png_longjmp(png, 1);
}

static void say_nothing(png_structp png, const char *what)
{
	(void)png, (void)what;
}

/* A byte cannot become more than 1032 bytes, of 8 pixels each. */
static int64_t most_pixels(size_t size)
{
	return ((int64_t)size + 1) * 1032 * 8;
}

/* The numbers of the file unchanged, whatever its gamma, in 8 bits and without a palette.  Transparency is dropped, not
 * mixed with a background. */
static void prepare(png_structp png, png_infop info, struct slp_image *image)
{
	png_read_info(png, info);
	png_set_expand(png);
	png_set_scale_16(png);
	png_set_strip_alpha(png);
	png_set_interlace_handling(png);
	png_read_update_info(png, info);
	image->height = png_get_image_height(png, info);
	image->width = png_get_image_width(png, info);
	image->channels = png_get_channels(png, info);
}

static bool read_rows(png_structp png, png_infop info, const char *path, const struct slp_image *image)
{
	int passes = png_get_interlace_type(png, info) == PNG_INTERLACE_NONE ? 1 : PNG_INTERLACE_ADAM7_PASSES;
	for (int pass = 0; pass < passes; pass++)
		for (int64_t i = 0; i < image->height; i++) {
			if (!slp_data_spend(path, (double)image->width)) return false;
			png_read_row(png, image->pixels + i * image->width * image->channels, NULL);
		}
	return true;
}

/* false: the source says why, or an error was recorded. */
static bool decode(png_structp png, png_infop info, const char *path, size_t size, struct slp_image *image)
{
	if (setjmp(png_jmpbuf(png))) return false;
	prepare(png, info, image);
	if (!slp_image_room(path, most_pixels(size), image)) return false;
	return read_rows(png, info, path, image);
}

bool slp_png_read(const char *path, const uint8_t *bytes, size_t size, struct slp_image *image)
{
	struct source s = {bytes, size, ""};
	png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &s, fail, say_nothing);
	png_infop info = png ? png_create_info_struct(png) : NULL;
	bool ok = false;
	if (info) {
		png_set_read_fn(png, &s, take);
		ok = decode(png, info, path, size, image);
		if (!ok && *s.why) slp_data_fail(SL_EFORMAT, "%s: damaged PNG image: %s", path, s.why);
	} else {
		slp_data_fail(SL_ENOMEM, "%s: no memory to read it", path);
	}
	png_destroy_read_struct(&png, &info, NULL);
	return ok;
}

#else

bool slp_png_read(const char *path, const uint8_t *bytes, size_t size, struct slp_image *image)
{
	(void)bytes, (void)size, (void)image;
	return slp_data_fail(SL_EUNSUPPORTED, "%s: Starling was built without libpng (Debian: libpng-dev)", path);
}

#endif
