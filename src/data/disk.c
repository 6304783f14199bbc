/* Files from which samples read their part on demand. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "alloc.h"
#include "data/dataset.h"
#include "data/disk.h"
#include "io/crc32c.h"
#include "io/regular.h"
#include "tensor/tensor.h"

bool slp_disk_open(struct slp_disk *k, const char *path)
{
	char why[SLP_WHY];
	*k = (struct slp_disk){.file = -1, .path = slp_strdup(path)};
	if (!k->path) return false;
	k->file = slp_regular_open(path, &k->size, why);
	if (k->file >= 0) return true;
	slp_data_fail(SL_EIO, "%s: %s", path, why);
	slp_disk_close(k);
	return false;
}

bool slp_disk_read(const struct slp_disk *k, int64_t from, void *to, size_t bytes)
{
	for (size_t got = 0; got < bytes;) {
		ssize_t n = pread(k->file, (char *)to + got, bytes - got, from + (int64_t)got);
		if (n < 0 && errno == EINTR) continue;
		if (n < 0) return slp_data_fail(SL_EIO, "%s: cannot be read: %s", k->path, strerror(errno));
		if (n == 0)
			return slp_data_fail(SL_EIO, "%s: became shorter: it ends before byte %lld", k->path,
			                     (long long)from + (long long)bytes);
		got += (size_t)n;
	}
	return true;
}

bool slp_disk_sum(const struct slp_disk *k, uint32_t *sum)
{
	enum { PARTS = 64, PART = 4096 };
	char part[PART];
	size_t bytes = k->size < PART ? (size_t)k->size : PART;
	int64_t last = k->size - (int64_t)bytes;
	*sum = slp_crc32c(0, &k->size, sizeof k->size);
	for (int i = 0; i <= PARTS; i++) {
		if (!slp_disk_read(k, i < PARTS ? last / PARTS * i : last, part, bytes)) return false;
		*sum = slp_crc32c(*sum, part, bytes);
	}
	return true;
}

void slp_disk_close(struct slp_disk *k)
{
	if (k->file > 0) close(k->file);
	free(k->path);
	*k = (struct slp_disk){.file = -1};
}
