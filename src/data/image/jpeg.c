/* JPEG images, through libjpeg. */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "data/dataset.h"
#include "data/image/image.h"
#include "runtime/budget.h"
#include "starling/base.h"

#ifdef HAVE_JPEG

#include <setjmp.h>
#include <stdio.h>
#include <jpeglib.h>
#include <jerror.h>

/* libjpeg returns by longjmp; faults that it warns of are repaired, except missing data. */
struct reading {
	struct jpeg_decompress_struct jpeg;
	struct jpeg_error_mgr errors;
	struct jpeg_progress_mgr progress;
	jmp_buf back;
	enum sl_status status;
	char text[JMSG_LENGTH_MAX > 256 ? JMSG_LENGTH_MAX : 256];
};

static void fail(j_common_ptr jpeg)
{
	struct reading *r = jpeg->client_data;
	r->errors.format_message(jpeg, r->text);
	longjmp(r->back, 1);
}

static void warn(j_common_ptr jpeg, int level)
{
	int code = jpeg->err->msg_code;
	if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE)) fail(jpeg);
}

/* A progressive image has ten scans or so.  Each goes over all coefficients, even if it has no bytes: thousands of them
 * take seconds. It is called for each row of blocks. */
static void limit_scans(j_common_ptr jpeg)
{
	enum { MOST_SCANS = 100, BLOCK = 8 };
	struct reading *r = jpeg->client_data;
	bool goes_on = slp_budget_spend((double)r->jpeg.image_width * BLOCK * r->jpeg.num_components, r->text);
	if (goes_on && r->jpeg.input_scan_number <= MOST_SCANS) return;
	r->status = goes_on ? SL_EFORMAT : SL_ETIME;
	if (goes_on) snprintf(r->text, sizeof r->text, "it has more than %d scans", MOST_SCANS);
	longjmp(r->back, 1);
}

/* Huffman codes have a bit or more for each block of a component, which has 32 × 32 pixels at most (8 × 8, one of 4 × 4
 * in each direction); arithmetic codes may have less. */
static int64_t most_pixels(const struct reading *r, size_t size)
{
	return r->jpeg.arith_code ? INT64_MAX : ((int64_t)size + 1) * 8 * 32 * 32;
}

/* Images for printing, four components, which libjpeg does not turn into red, green and blue. */
static bool in_inks(const struct reading *r)
{
	return r->jpeg.jpeg_color_space == JCS_CMYK || r->jpeg.jpeg_color_space == JCS_YCCK;
}

/* The light that four inks leave; Adobe's programs write inverted inks. */
static void mix(const uint8_t *inks, uint8_t *pixels, int64_t n, bool inverted)
{
	const int flip = inverted ? 255 : 0;
	for (int64_t i = 0; i < n; i++, inks += 4)
		for (int k = 0; k < 3; k++) {
			int light = 255 - (inks[3] ^ flip);
			*pixels++ = (uint8_t)((light * (255 - (inks[k] ^ flip)) + 127) / 255);
		}
}

static bool start(struct reading *r, const char *path, size_t size, struct slp_image *image)
{
	jpeg_read_header(&r->jpeg, TRUE);
	bool grey = r->jpeg.jpeg_color_space == JCS_GRAYSCALE, inks = in_inks(r);
	r->jpeg.out_color_space = grey ? JCS_GRAYSCALE : inks ? JCS_CMYK : JCS_RGB;
	image->height = r->jpeg.image_height;
	image->width = r->jpeg.image_width;
	image->channels = grey ? 1 : 3;
	return slp_image_room(path, most_pixels(r, size), image);
}

static void read_lines(struct reading *r, struct slp_image *image)
{
	struct jpeg_memory_mgr *mem = r->jpeg.mem;
	bool inks = in_inks(r);
	jpeg_start_decompress(&r->jpeg);
	JSAMPROW line =
	        inks ? mem->alloc_sarray((j_common_ptr)&r->jpeg, JPOOL_IMAGE, r->jpeg.output_width * 4, 1)[0] : NULL;
	while (r->jpeg.output_scanline < r->jpeg.output_height) {
		uint8_t *pixels = image->pixels + (int64_t)r->jpeg.output_scanline * image->width * image->channels;
		JSAMPROW row = inks ? line : pixels;
		jpeg_read_scanlines(&r->jpeg, &row, 1);
		if (inks) mix(line, pixels, image->width, r->jpeg.saw_Adobe_marker);
	}
	jpeg_finish_decompress(&r->jpeg);
}

bool slp_jpeg_read(const char *path, const uint8_t *bytes, size_t size, struct slp_image *image)
{
	struct reading r = {.status = SL_EFORMAT};
	volatile bool ok = false;
	r.jpeg.err = jpeg_std_error(&r.errors);
	r.errors.error_exit = fail;
	r.errors.emit_message = warn;
	r.jpeg.client_data = &r;
	r.progress.progress_monitor = limit_scans;
	if (setjmp(r.back)) {
		ok = slp_data_fail(r.status, "%s: %s%s", path,
		                   r.status == SL_ETIME ? "" : "damaged JPEG image: ", r.text);
	} else {
		jpeg_create_decompress(&r.jpeg);
		r.jpeg.progress = &r.progress;
		/* Of a progressive image libjpeg keeps all coefficients; there are no more of them than the bytes can
		 * hold. */
		r.jpeg.mem->max_memory_to_use = (64L << 20) + 1000 * (long)size;
		jpeg_mem_src(&r.jpeg, bytes, size);
		if (start(&r, path, size, image)) {
			read_lines(&r, image);
			ok = true;
		}
	}
	jpeg_destroy_decompress(&r.jpeg);
	return ok;
}

#else

bool slp_jpeg_read(const char *path, const uint8_t *bytes, size_t size, struct slp_image *image)
{
	(void)bytes, (void)size, (void)image;
	return slp_data_fail(SL_EUNSUPPORTED, "%s: Starling was built without libjpeg (Debian: libjpeg-dev)", path);
}

#endif
