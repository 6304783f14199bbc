/* Folders of images: PNG and JPEG files that libpng and libjpeg wrote, and broken ones. */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "check.h"
#include "folder.h"

#if defined HAVE_PNG && defined HAVE_JPEG

#include <jpeglib.h>
#include <png.h>

enum { H = 5, W = 7, MOST = H * W * 4 };

/* Byte b of an image, in which nothing is alike. */
static uint8_t byte_of(int b, int seed)
{
	return (uint8_t)(b * 37 + seed * 101 + b / 5);
}

static void fill(uint8_t *bytes, int count, int seed)
{
	for (int i = 0; i < count; i++) bytes[i] = byte_of(i, seed);
}

static void folder(const char *name)
{
	char path[PATH_MAX];
	mkdir(slp_scratch_path(name, path), 0777);
}

static void write_png(const char *name, png_uint_32 format, int channels, int height, int seed)
{
	char path[PATH_MAX];
	uint8_t bytes[MOST];
	png_image png = {.version = PNG_IMAGE_VERSION, .format = format, .height = (png_uint_32)height, .width = W};
	fill(bytes, height * W * channels, seed);
	CHECK(png_image_write_to_file(&png, slp_scratch_path(name, path), 0, bytes, 0, NULL));
}

/* How much light there is, or, without Adobe's marker, how much of each ink; of four components no black. */
static uint8_t jpeg_byte(int row, int column, int channel, bool inks)
{
	int light = channel == 3 ? 255 : 100 + 10 * row + 5 * column;
	return (uint8_t)(inks ? 255 - light : light);
}

/* Smooth, so that what JPEG leaves out is little. */
static void write_jpeg(const char *name, int channels, J_COLOR_SPACE space)
{
	char path[PATH_MAX];
	struct jpeg_compress_struct jpeg;
	struct jpeg_error_mgr errors;
	FILE *f = fopen(slp_scratch_path(name, path), "wb");
	jpeg.err = jpeg_std_error(&errors);
	jpeg_create_compress(&jpeg);
	jpeg_stdio_dest(&jpeg, f);
	jpeg.image_width = W;
	jpeg.image_height = H;
	jpeg.input_components = channels;
	jpeg.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_CMYK;
	jpeg_set_defaults(&jpeg);
	if (channels == 4) jpeg_set_colorspace(&jpeg, space == JCS_YCCK ? JCS_YCCK : JCS_CMYK);
	if (space == JCS_UNKNOWN) jpeg.write_Adobe_marker = FALSE;
	jpeg_set_quality(&jpeg, 100, TRUE);
	jpeg_start_compress(&jpeg, TRUE);
	for (int i = 0; i < H; i++) {
		uint8_t line[4 * W];
		for (int j = 0; j < W * channels; j++)
			line[j] = jpeg_byte(i, j / channels, j % channels, space == JCS_UNKNOWN);
		jpeg_write_scanlines(&jpeg, (JSAMPROW[]){line}, 1);
	}
	jpeg_finish_compress(&jpeg);
	jpeg_destroy_compress(&jpeg);
	fclose(f);
}

static sl_dataset *open_at(const char *at, const char *name, struct sl_images_opts opts)
{
	char path[PATH_MAX];
	return sl_dataset_images_at(at, slp_scratch_path(name, path), opts);
}
#define open_set(name, ...) open_at(SL_HERE, name, __VA_ARGS__)

/* Sample i is that of write_png; channels of the file, of the set. */
static void check_png(sl_dataset *d, int64_t i, int from, int to, int seed)
{
	float x[3 * H * W];
	int32_t y;
	int wrong = 0;
	if (!CHECK_SAYING(sl_dataset_read(d, i, x, &y) == SL_OK, "%s", sl_error_message())) return;
	for (int c = 0; c < to; c++)
		for (int p = 0; p < H * W; p++) {
			int colour = from == 3 || from == 4 ? c : 0;
			wrong += x[c * H * W + p] != (float)byte_of(p * from + colour, seed) * (float)(1 / 255.0);
		}
	CHECK_SAYING(!wrong, "sample %d: %d wrong values", (int)i, wrong);
}

/* A chunk about gamma, which says how bright the numbers are meant, behind the first one of a file. */
static void add_gamma(const char *name)
{
	static const uint8_t chunk[] = {0, 0, 0, 4, 'g', 'A', 'M', 'A', 0, 1, 0x86, 0xa0, 0x31, 0xe8, 0x96, 0x5f};
	enum { HEAD = 8 + 25 };
	char path[PATH_MAX];
	uint8_t bytes[4096];
	FILE *f = fopen(slp_scratch_path(name, path), "rb");
	size_t n = f ? fread(bytes, 1, sizeof bytes, f) : 0;
	if (f) fclose(f);
	f = fopen(path, "wb");
	CHECK(f && n > HEAD && fwrite(bytes, 1, HEAD, f) == HEAD && fwrite(chunk, 1, sizeof chunk, f) == sizeof chunk &&
	      fwrite(bytes + HEAD, 1, n - HEAD, f) == n - HEAD);
	if (f) fclose(f);
}

static void test_gamma(void)
{
	folder("g");
	folder("g/one");
	write_png("g/one/a.png", PNG_FORMAT_RGB, 3, H, 2);
	add_gamma("g/one/a.png");
	sl_dataset *d = open_set("g", (struct sl_images_opts){0});
	if (!CHECK_SAYING(d != NULL, "%s", sl_error_message())) return;
	check_png(d, 0, 3, 3, 2);
	sl_dataset_free(d);
}

static void test_png(void)
{
	folder("a");
	folder("a/one");
	folder("a/two");
	folder("a/.hidden");
	write_png("a/two/2.png", PNG_FORMAT_RGBA, 4, H, 4);
	write_png("a/two/1.PNG", PNG_FORMAT_GRAY, 1, H, 3);
	write_png("a/one/b.png", PNG_FORMAT_RGB, 3, H, 2);
	write_png("a/one/a.png", PNG_FORMAT_GA, 2, H, 1);
	slp_write_scratch("a/one/notes.txt", "no image", 8);
	sl_dataset *d = open_set("a", (struct sl_images_opts){0});
	if (!CHECK_SAYING(d != NULL, "%s", sl_error_message())) return;
	CHECK(sl_dataset_size(d) == 4 && sl_dataset_classes(d) == 2 && !strcmp(sl_dataset_class_name(d, 1), "two"));
	CHECK(sl_shape_equal(sl_dataset_sample_shape(d), SL_SHAPE(3, H, W)));
	check_png(d, 0, 2, 3, 1);
	check_png(d, 1, 3, 3, 2);
	check_png(d, 2, 1, 3, 3);
	check_png(d, 3, 4, 3, 4);
	sl_dataset_free(d);
	d = open_set("a", (struct sl_images_opts){.channels = 1});
	float x[H * W];
	int32_t y;
	check_png(d, 2, 1, 1, 3);
	CHECK_OK(sl_dataset_read(d, 1, x, &y));
	double grey = .299 * byte_of(9, 2) + .587 * byte_of(10, 2) + .114 * byte_of(11, 2);
	CHECK(y == 0 && fabs(x[3] * 255 - grey) <= .51);
	sl_dataset_free(d);
}

static void test_jpeg(void)
{
	folder("j");
	folder("j/x");
	write_jpeg("j/x/a.jpg", 3, JCS_YCbCr);
	write_jpeg("j/x/b.JPEG", 1, JCS_GRAYSCALE);
	write_jpeg("j/x/c.jpg", 4, JCS_CMYK);
	write_jpeg("j/x/d.jpg", 4, JCS_YCCK);
	write_jpeg("j/x/e.jpg", 4, JCS_UNKNOWN);
	sl_dataset *d = open_set("j", (struct sl_images_opts){0});
	float x[3 * H * W];
	CHECK(sl_dataset_size(d) == 5);
	for (int i = 0; i < 5; i++) {
		CHECK_OK(sl_dataset_read(d, i, x, NULL));
		double most = 0;
		for (int p = 0; p < 3 * H * W; p++) {
			int row = p % (H * W) / W, column = p % W;
			double away = fabs(x[p] * 255 - (100 + 10 * row + 5 * column));
			if (away > most) most = away;
		}
		CHECK_SAYING(most < 4, "image %d: up to %g of 255 away", i, most);
	}
	sl_dataset_free(d);
}

static void test_sizes(void)
{
	folder("s");
	folder("s/x");
	write_png("s/x/1.png", PNG_FORMAT_RGB, 3, H, 1);
	write_png("s/x/2.png", PNG_FORMAT_RGB, 3, H - 1, 1);
	sl_dataset *d = open_set("s", (struct sl_images_opts){0});
	float x[3 * H * W];
	CHECK_STATUS(sl_dataset_read(d, 1, x, NULL), SL_ESHAPE, "x/2.png",
	             "has 4 × 7 pixels, the first image has 5 × 7");
	sl_error_clear();
	sl_dataset_free(d);
	d = open_set("s", (struct sl_images_opts){.height = H, .width = W});
	check_png(d, 0, 3, 3, 1);
	CHECK_OK(sl_dataset_read(d, 1, x, NULL));
	CHECK(fabsf(x[0] - (float)byte_of(0, 1) / 255) < 1e-6f); /* the corner stays */
	sl_dataset_free(d);
	CHECK_NULL(open_set("s", (struct sl_images_opts){.height = 3}), SL_EINVAL, "3 × 0");
	CHECK_NULL(open_set("s", (struct sl_images_opts){.channels = 2}), SL_EINVAL, "channels is 2");
	CHECK_NULL(open_set("nowhere", (struct sl_images_opts){0}), SL_EIO, "nowhere");
	CHECK_NULL(open_set("s/x", (struct sl_images_opts){0}), SL_EFORMAT, "has no folders with images");
}

/* Each prefix of a file, and each byte changed: an error that names the file, or an image; never more. */
static void try_broken(const char *name, const char *bytes, size_t size, bool must_fail)
{
	float x[3 * H * W];
	slp_write_scratch(name, bytes, size);
	sl_dataset *d = open_set("broken", (struct sl_images_opts){.height = H, .width = W});
	enum sl_status s = d ? sl_dataset_read(d, 0, x, NULL) : sl_error();
	CHECK_SAYING(s == SL_EFORMAT || (s == SL_OK && !must_fail), "%s of %zu bytes: %s", name, size,
	             sl_status_name(s));
	if (s != SL_OK)
		CHECK_SAYING(strstr(sl_error_message(), name) != NULL, "%s is not in: %s", name, sl_error_message());
	sl_error_clear();
	sl_dataset_free(d);
}

static void break_file(const char *name, bool detected)
{
	char path[PATH_MAX];
	size_t size;
	char *bytes = slp_read_file(slp_scratch_path(name, path), &size);
	if (!CHECK(bytes != NULL)) return;
	for (size_t cut = 0; cut + 16 < size; cut += 1 + cut / 8) try_broken(name, bytes, cut, true);
	for (size_t at = 0; at < size; at += 1 + at / 32) {
		bytes[at] ^= 0x41;
		try_broken(name, bytes, size, detected && at > 60 && at + 20 < size); /* in the compressed pixels */
		bytes[at] ^= 0x41;
	}
	remove(path);
	free(bytes);
}

static void test_broken(void)
{
	folder("broken");
	folder("broken/x");
	write_png("broken/x/a.png", PNG_FORMAT_RGB, 3, H, 1);
	break_file("broken/x/a.png", true);
	write_jpeg("broken/x/b.jpg", 3, JCS_YCbCr);
	break_file("broken/x/b.jpg", false);
}

/* A header that claims more pixels than anybody has: no memory is asked for them. */
static void test_huge(void)
{
	static const uint8_t head[] = {0x89, 'P', 'N', 'G',  13,   10, 26, 10,   0,    0, 0, 13, 'I', 'H', 'D',
	                               'R',  0,   0,   0xf4, 0x24, 0,  0,  0xf4, 0x24, 8, 2, 0,  0,   0};
	uint8_t file[64];
	unsigned long crc = 0xffffffff;
	memcpy(file, head, sizeof head);
	for (size_t i = 12; i < sizeof head; i++) { /* of PNG's specification */
		crc ^= file[i];
		for (int k = 0; k < 8; k++) crc = crc & 1 ? 0xedb88320 ^ crc >> 1 : crc >> 1;
	}
	crc ^= 0xffffffff;
	for (int i = 0; i < 4; i++) file[sizeof head + (size_t)i] = (uint8_t)(crc >> (24 - 8 * i));
	memcpy(file + sizeof head + 4, "\0\0\0\0IDAT", 8);
	folder("huge");
	folder("huge/x");
	slp_write_scratch("huge/x/a.png", file, sizeof head + 12);
	CHECK_NULL(open_set("huge", (struct sl_images_opts){0}), SL_EFORMAT,
	           "huge/x/a.png: has the impossible size of 62500 × 62500");
}

/* A small JPEG whose header claims 16000 × 16000 pixels: it has not the bits for so many blocks. */
static void test_short(void)
{
	uint8_t file[4096];
	char path[PATH_MAX];
	folder("short");
	folder("short/x");
	write_jpeg("short/x/a.jpg", 3, JCS_YCbCr);
	FILE *f = fopen(slp_scratch_path("short/x/a.jpg", path), "rb");
	CHECK(f != NULL);
	size_t size = f ? fread(file, 1, sizeof file, f) : 0, sof = 0;
	if (f) fclose(f);
	while (sof + 9 < size && (file[sof] != 0xff || file[sof + 1] != 0xc0)) sof++;
	CHECK(sof + 9 < size);
	memcpy(file + sof + 5, "\x3e\x80\x3e\x80", 4);
	slp_write_scratch("short/x/a.jpg", file, size);
	CHECK_NULL(open_set("short", (struct sl_images_opts){0}), SL_EFORMAT,
	           "short/x/a.jpg: is too short for 16000 × 16000 pixels");
}

/* The file in memory, as a tensor of its bytes. */
static void test_decode(void)
{
	static uint8_t file[4096], read[3 * H * W];
	char path[PATH_MAX];
	write_png("whole.png", PNG_FORMAT_RGB, 3, H, 4);
	FILE *f = fopen(slp_scratch_path("whole.png", path), "rb");
	size_t size = f ? fread(file, 1, sizeof file, f) : 0;
	if (f) fclose(f);
	sl_tensor *t = sl_image_decode(file, size);
	if (!CHECK_SAYING(t != NULL, "%s", sl_error_message())) return;
	sl_shape shape = sl_tensor_shape(t);
	CHECK(shape.ndim == 3 && shape.dim[0] == H && shape.dim[1] == W && shape.dim[2] == 3);
	CHECK(sl_tensor_dtype(t) == SL_UINT8 && sl_read(t, read, sizeof read) == SL_OK);
	int wrong = 0;
	for (int i = 0; i < 3 * H * W; i++) wrong += read[i] != byte_of(i, 4);
	CHECK_SAYING(!wrong, "%d wrong bytes", wrong);
	sl_release(t);
	CHECK_NULL(sl_image_decode(file, size / 2), SL_EFORMAT, "image: ");
	CHECK_NULL(sl_image_decode("text", 4), SL_EFORMAT, "image: begins neither like a PNG nor like a JPEG image");
	CHECK_NULL(sl_image_decode(NULL, 4), SL_EINVAL, "bytes");
}

#elif !defined HAVE_PNG

static void test_absent(void)
{
	char path[PATH_MAX];
	mkdir(slp_scratch_path("x", path), 0777);
	slp_write_scratch("x/a.png", "\x89PNG\r\n\x1a\n", 8);
	CHECK_NULL(sl_dataset_images(slp_scratch_path("", path)), SL_EUNSUPPORTED,
	           "x/a.png: Starling was built without libpng");
}

#endif

int main(int argc, char **argv)
{
	static const struct slp_test tests[] = {
#if defined HAVE_PNG && defined HAVE_JPEG
		{"png", test_png},
		{"gamma", test_gamma},
		{"jpeg", test_jpeg},
		{"sizes", test_sizes},
		{"broken", test_broken},
		{"huge", test_huge},
		{"too short", test_short},
		{"decode", test_decode},
#elif !defined HAVE_PNG
		{"absent", test_absent},
#endif
		{NULL, NULL},
	};
	static const struct slp_suite suites[] = {
	        {.name = "images", .tests = tests, .start = slp_scratch_make, .stop = slp_scratch_remove},
	        {0},
	};
	return slp_test_main(argc, argv, suites);
}
