/* Feeds anything to the reader of IDX files, plain or compressed. */
#include <stdlib.h>
#include <starling.h>

#include "data/image/idx.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct slp_idx idx;
	const char *path = fuzz_file(data, size);
	for (int ndim = 1; ndim <= 3; ndim += 2) {
		if (slp_idx_read("fuzz", "fuzz", path, ndim, &idx)) free(idx.data);
		sl_error_clear();
	}
	return 0;
}
