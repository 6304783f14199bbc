/* Images in files: recognises the format, allocates memory, converts pixels for networks. */
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "data/dataset.h"
#include "data/disk.h"
#include "data/image/image.h"
#include "runtime/budget.h"

int64_t slp_image_most_pixels = 1 << 28;

bool slp_image_room(const char *path, int64_t there, struct slp_image *image)
{
	int64_t pixels;
	if (image->height < 1 || image->width < 1 || __builtin_mul_overflow(image->height, image->width, &pixels) ||
	    pixels > slp_image_most_pixels)
		return slp_data_fail(SL_EFORMAT, "%s: has the impossible size of %lld × %lld pixels", path,
		                     (long long)image->height, (long long)image->width);
	if (pixels > there)
		return slp_data_fail(SL_EFORMAT, "%s: is too short for %lld × %lld pixels", path,
		                     (long long)image->height, (long long)image->width);
	if (!slp_data_spend(path, (double)pixels * image->channels)) return false;
	image->pixels = slp_try_malloc((size_t)pixels * (size_t)image->channels);
	return image->pixels || slp_data_fail(SL_ENOMEM, "%s: no memory for %lld × %lld pixels", path,
	                                      (long long)image->height, (long long)image->width);
}

bool slp_image_decode(const char *path, const uint8_t *bytes, size_t size, struct slp_image *image)
{
	static const uint8_t png[] = {0x89, 'P', 'N', 'G'}, jpeg[] = {0xff, 0xd8, 0xff};
	if (size >= sizeof png && !memcmp(bytes, png, sizeof png)) return slp_png_read(path, bytes, size, image);
	if (size >= sizeof jpeg && !memcmp(bytes, jpeg, sizeof jpeg)) return slp_jpeg_read(path, bytes, size, image);
	return slp_data_fail(SL_EFORMAT, "%s: begins neither like a PNG nor like a JPEG image", path);
}

bool slp_image_read(const char *path, struct slp_image *image)
{
	enum { LARGEST = 1 << 29 };
	struct slp_disk k;
	SLP_BUDGET(path);
	*image = (struct slp_image){0};
	if (!slp_disk_open(&k, path)) return false;
	bool ok = k.size <= LARGEST || slp_data_fail(SL_EFORMAT, "%s: is larger than %d bytes", path, LARGEST);
	uint8_t *bytes = ok ? slp_try_malloc((size_t)k.size + 1) : NULL;
	if (ok && !bytes) ok = slp_data_fail(SL_ENOMEM, "%s: no memory for its %lld bytes", path, (long long)k.size);
	ok = ok && slp_disk_read(&k, 0, bytes, (size_t)k.size) && slp_image_decode(path, bytes, (size_t)k.size, image);
	free(bytes);
	slp_disk_close(&k);
	if (ok) return true;
	free(image->pixels);
	image->pixels = NULL;
	return false;
}

/* As PIL's convert("L"). */
static uint8_t grey(const uint8_t *p)
{
	return (uint8_t)((p[0] * 19595 + p[1] * 38470 + p[2] * 7471 + 0x8000) >> 16);
}

void slp_image_planes(const struct slp_image *image, int channels, float *to)
{
	const float scale = (float)(1 / 255.0);
	int64_t n = image->height * image->width;
	int step = image->channels;
	for (int c = 0; c < channels; c++)
		for (int64_t i = 0; i < n; i++) {
			const uint8_t *p = image->pixels + i * step;
			*to++ = (float)(step == channels ? p[c] : step == 1 ? p[0] : grey(p)) * scale;
		}
}
