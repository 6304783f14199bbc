/* The contents of large compressed IDX files, kept unpacked for the next start: as IDX files in the folder SL_CACHE,
 * or in the folder starling in the user's cache.  The name contains path, size and checksum of the compressed file,
 * and the contents must have the checksum at the end of the compressed file; so a cached file equals the unpacked
 * one. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "alloc.h"
#include "data/image/idx_cache.h"
#include "io/crc32c.h"
#include "io/durable.h"
#include "runtime/fault.h"
#include "starling/tensor.h"
#include "tensor/tensor.h"

enum { HEADER = 4, MOST_HEADER = HEADER + 4 * SL_MAX_NDIM, SMALLEST = 1 << 20 };

/* The end of a gzip file: CRC-32 and length of the contents, modulo 2³². */
struct trailer {
	uint32_t crc, length;
};

static bool read_at(int file, int64_t from, void *to, int64_t bytes)
{
	for (int64_t got = 0; got < bytes;) {
		ssize_t n = pread(file, (char *)to + got, (size_t)(bytes - got), from + got);
		if (n <= 0 && !(n < 0 && errno == EINTR)) return false;
		if (n > 0) got += n;
	}
	return true;
}

/* The folder that files are kept in; false: none. */
static bool cache_folder(char folder[PATH_MAX])
{
	const char *own = getenv("SL_CACHE"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int n = own                      ? snprintf(folder, PATH_MAX, "%s", own)
	        : xdg && xdg[0] == '/'   ? snprintf(folder, PATH_MAX, "%s/starling", xdg)
	        : home && home[0] == '/' ? snprintf(folder, PATH_MAX, "%s/.cache/starling", home)
	                                 : 0;
	return n > 0 && n < PATH_MAX;
}

/* Where the contents of a compressed file would be; false: it is not compressed, or there is no place. */
static bool place(const char *path, char kept[PATH_MAX], struct trailer *t)
{
	char folder[PATH_MAX], whole[PATH_MAX];
	struct stat st;
	int file = open(path, O_RDONLY | O_CLOEXEC);
	bool ok = file >= 0 && !fstat(file, &st) && st.st_size > (int64_t)sizeof *t &&
	          read_at(file, st.st_size - (int64_t)sizeof *t, t, sizeof *t);
	if (file >= 0) close(file);
	if (!ok || t->length < SMALLEST || !cache_folder(folder) || !realpath(path, whole)) return false;
	uint32_t name = slp_crc32c(slp_crc32c(0, &st.st_size, sizeof st.st_size), whole, strlen(whole));
	return snprintf(kept, PATH_MAX, "%s/idx-%08x-%08x", folder, name, t->crc) < PATH_MAX;
}

static int64_t make_header(const struct slp_idx *idx, unsigned char h[MOST_HEADER])
{
	memcpy(h, (unsigned char[]){0, 0, 8, (unsigned char)idx->shape.ndim}, HEADER);
	for (int i = 0; i < idx->shape.ndim && i < SL_MAX_NDIM; i++)
		for (int k = 0; k < 4; k++) h[HEADER + 4 * i + k] = (unsigned char)(idx->shape.dim[i] >> (24 - 8 * k));
	return HEADER + 4 * idx->shape.ndim;
}

static uint32_t checksum(const unsigned char *header, int64_t size, const struct slp_idx *idx)
{
	uLong crc = crc32_z(0, header, (size_t)size);
	return (uint32_t)crc32_z(crc, idx->data, (size_t)idx->bytes);
}

/* ---- finding ---------------------------------------------------------------------------------------------------- */

static bool parse_header(const unsigned char *h, int ndim, struct slp_idx *idx)
{
	if (h[0] || h[1] || h[2] != 8 || h[3] != ndim) return false;
	idx->shape.ndim = ndim;
	idx->bytes = 1;
	for (int i = 0; i < ndim; i++) {
		const unsigned char *b = h + HEADER + 4 * i;
		idx->shape.dim[i] = (int64_t)b[0] << 24 | b[1] << 16 | b[2] << 8 | b[3];
		if (__builtin_mul_overflow(idx->bytes, idx->shape.dim[i], &idx->bytes)) return false;
	}
	return true;
}

static bool read_kept(int file, int ndim, const struct trailer *t, struct slp_idx *idx)
{
	unsigned char header[MOST_HEADER];
	int64_t size = HEADER + 4 * ndim;
	struct stat st;
	if (fstat(file, &st) || !read_at(file, 0, header, size) || !parse_header(header, ndim, idx) ||
	    st.st_size - size != idx->bytes)
		return false;
	idx->data = slp_try_malloc((size_t)idx->bytes + 1);
	return idx->data && read_at(file, size, idx->data, idx->bytes) && checksum(header, size, idx) == t->crc;
}

bool slp_idx_find(const char *path, int ndim, struct slp_idx *idx)
{
	char kept[PATH_MAX];
	struct trailer t;
	int file = place(path, kept, &t) ? open(kept, O_RDONLY | O_CLOEXEC) : -1;
	if (file < 0) return false;
	bool ok = read_kept(file, ndim, &t, idx);
	close(file);
	if (ok) return true;
	free(idx->data);
	*idx = (struct slp_idx){0};
	return false;
}

/* ---- keeping ---------------------------------------------------------------------------------------------------- */

/* The folder that the file will be in, and the one around it. */
static void make_folders(const char *kept)
{
	char folder[PATH_MAX];
	snprintf(folder, sizeof folder, "%s", kept);
	*strrchr(folder, '/') = '\0';
	char *last = strrchr(folder, '/');
	if (last && last > folder) {
		*last = '\0';
		mkdir(folder, 0700);
		*last = '/';
	}
	mkdir(folder, 0700);
}

static void write_kept(const char *kept, const unsigned char *header, int64_t size, const struct slp_idx *idx)
{
	struct slp_durable d, *const all[] = {&d};
	make_folders(kept);
	if (!slp_durable_open(&d, kept)) return;
	if (fwrite(header, 1, (size_t)size, d.stream) == (size_t)size &&
	    fwrite(idx->data, 1, (size_t)idx->bytes, d.stream) == (size_t)idx->bytes)
		slp_durable_commit(all, 1);
	else slp_durable_discard(&d);
}

void slp_idx_keep(const char *path, const struct slp_idx *idx)
{
	char kept[PATH_MAX];
	unsigned char header[MOST_HEADER];
	struct trailer t;
	struct slp_pending before;
	if (idx->bytes < SMALLEST || !place(path, kept, &t)) return;
	int64_t size = make_header(idx, header);
	if (checksum(header, size, idx) != t.crc) return; /* of several gzip files one after the other */
	slp_error_set_aside(&before);
	write_kept(kept, header, size, idx);
	sl_error_clear();
	slp_error_rejoin(&before);
}
