/* Feeds anything to the readers of arrays.  The first byte tells which: 0x93 begins .npy, 0x12 MXNet's lists, and all
 * else is taken for safetensors. */
#include <stdlib.h>
#include <string.h>
#include <starling.h>

#include "fuzz.h"
#include "io/elements.h"
#include "io/params.h"

static const char *path_for(const unsigned char *data, size_t size)
{
	return size && data[0] == 0x93 ? "x.npy" : size && data[0] == 0x12 ? "x.params" : "x.safetensors";
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct slp_arrays list = {0};
	/* A copy of exactly that size, so that reading further is found. */
	struct slp_file f = {.at = "fuzz",
	                     .function = "fuzz",
	                     .path = path_for(data, size),
	                     .data = malloc(size + !size),
	                     .size = size};
	if (!f.data) abort();
	if (size) memcpy(f.data, data, size);
	if (!strcmp(f.path, "x.npy")) sl_release(slp_npy_parse(&f));
	else slp_arrays_parse(&f, &list);
	slp_arrays_free(list.names, list.tensors, list.count);
	free(f.data);
	sl_error_clear();
	return 0;
}
