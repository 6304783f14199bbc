/* Images in files, PNG and JPEG. */
#ifndef SLP_IMAGE_H
#define SLP_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes, row by row, channels together; free() them. */
struct slp_image {
	int64_t height, width;
	int channels; /* 1: grey, 3: colours */
	uint8_t *pixels;
};

/* Reads a file of either format, which its first bytes identify; false with an error that names it (slp_data_fail). */
bool slp_image_read(const char *path, struct slp_image *image);
/* The same with the bytes of a file; path names it in errors.  The pixels may be there even if it fails. */
bool slp_image_decode(const char *path, const uint8_t *bytes, size_t size, struct slp_image *image);
/* The pixels as float32 (channels, height, width) in [0, 1]; colours become grey as in PIL, grey all three colours. */
void slp_image_planes(const struct slp_image *image, int channels, float *to);

extern int64_t slp_image_most_pixels; /* larger ones are refused; tests lower it */

/* Memory for its pixels, once height, width and channels are known; false: absurd, more than `there`, which a file of
 * its size can hold at most, or no memory. */
bool slp_image_room(const char *path, int64_t there, struct slp_image *image);
bool slp_png_read(const char *path, const uint8_t *bytes, size_t size, struct slp_image *image);
bool slp_jpeg_read(const char *path, const uint8_t *bytes, size_t size, struct slp_image *image);

#endif
