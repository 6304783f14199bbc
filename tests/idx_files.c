/* IDX files as tests make them. */
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "check.h"
#include "idx_files.h"

void idx_remove(const char *name)
{
	char path[PATH_MAX];
	CHECK(remove(slp_scratch_path(name, path)) == 0);
}

void idx_put(struct idx_bytes *b, const void *data, size_t size)
{
	memcpy(b->data + b->size, data, size);
	b->size += size;
}

static void put_number(struct idx_bytes *b, uint32_t n)
{
	unsigned char big[] = {(unsigned char)(n >> 24), (unsigned char)(n >> 16), (unsigned char)(n >> 8),
	                       (unsigned char)n};
	idx_put(b, big, sizeof big);
}

struct idx_bytes idx_header(int ndim, const uint32_t *dims)
{
	struct idx_bytes b = {{0}, 0};
	put_number(&b, 0x800u + (unsigned)ndim);
	for (int i = 0; i < ndim; i++) put_number(&b, dims[i]);
	return b;
}

int idx_pixel(int i, int p)
{
	return (i * 7 + p) % 256;
}

int idx_label(int i)
{
	return i % 10;
}

struct idx_bytes idx_images(int n)
{
	struct idx_bytes b = idx_header(3, (uint32_t[]){(uint32_t)n, IDX_HEIGHT, IDX_WIDTH});
	for (int i = 0; i < n * IDX_PIXELS; i++)
		b.data[b.size++] = (unsigned char)idx_pixel(i / IDX_PIXELS, i % IDX_PIXELS);
	return b;
}

struct idx_bytes idx_labels(int n)
{
	struct idx_bytes b = idx_header(1, (uint32_t[]){(uint32_t)n});
	for (int i = 0; i < n; i++) b.data[b.size++] = (unsigned char)idx_label(i);
	return b;
}

struct idx_bytes idx_gzipped(const struct idx_bytes *plain)
{
	struct idx_bytes b = {{0}, 0};
	z_stream z = {.next_in = (unsigned char *)plain->data,
	              .avail_in = (uInt)plain->size,
	              .next_out = b.data,
	              .avail_out = IDX_MAX_FILE};
	CHECK(deflateInit2(&z, 9, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
	CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END);
	b.size = z.total_out;
	deflateEnd(&z);
	return b;
}

sl_dataset *idx_open_pair(const struct idx_bytes *x, const struct idx_bytes *y, int classes)
{
	char a[PATH_MAX], b[PATH_MAX];
	slp_write_scratch("x", x->data, x->size);
	slp_write_scratch("y", y->data, y->size);
	sl_dataset *d = sl_dataset_idx(slp_scratch_path("x", a), slp_scratch_path("y", b), classes);
	idx_remove("x");
	idx_remove("y");
	return d;
}

sl_dataset *idx_sample_set(int n)
{
	struct idx_bytes x = idx_images(n), y = idx_labels(n);
	sl_dataset *d = idx_open_pair(&x, &y, 10);
	CHECK(d != NULL);
	return d;
}
