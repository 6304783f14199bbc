/* Feeds anything to the reader of images, PNG or JPEG as the first bytes tell, and makes colours and greys of the pixels. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <starling.h>

#include "data/image.h"
#include "fuzz.h"

enum { MOST = 1 << 16 }; /* pixels that are looked at: more take longer than all else */

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct slp_image image;
	char path[64];
	int file = memfd_create("image", MFD_CLOEXEC);
	if (file < 0 || write(file, data, size) != (ssize_t)size) abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	bool ok = slp_image_read(path, &image);
	if (!ok && sl_error() == SL_OK) abort();
	int64_t pixels = ok ? image.height * image.width : 0;
	float *to = malloc((size_t)(pixels < MOST ? pixels : 0) * 3 * sizeof *to + 1);
	if (!to) abort();
	for (int channels = 1; ok && pixels < MOST && channels <= 3; channels += 2)
		slp_image_planes(&image, channels, to);
	free(to);
	if (ok) free(image.pixels);
	sl_error_clear();
	close(file);
	return 0;
}
