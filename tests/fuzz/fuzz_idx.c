/* Feeds anything to the reader of IDX files, plain or compressed. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "data/idx.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct slp_idx idx;
	char path[64];
	int file = memfd_create("idx", MFD_CLOEXEC);
	if (file < 0 || write(file, data, size) != (ssize_t)size) abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	for (int ndim = 1; ndim <= 3; ndim += 2) {
		if (slp_idx_read("fuzz", "fuzz", path, ndim, &idx)) free(idx.data);
		sl_error_clear();
	}
	close(file);
	return 0;
}
