/* Feeds anything to the reader of CSV files.  The first byte tells the options. */
#include <stdlib.h>

#include <starling.h>

#include "fuzz.h"

static struct sl_csv_opts options(unsigned char c)
{
	static const char separators[] = {0, ';', '\t', ' '};
	return (struct sl_csv_opts){.header = c & 1,
	                            .regression = c & 2,
	                            .missing = c & 4,
	                            .label = (c >> 3 & 3) - 1,
	                            .separator = separators[c >> 5 & 3]};
}

/* What is taken has samples, and all can be read. */
static void read_ends(const sl_dataset *d)
{
	struct sl_array y = sl_dataset_y(d);
	int64_t n = sl_dataset_size(d), width = sl_shape_size(sl_dataset_sample_shape(d));
	float *row = malloc(((size_t)width + 1) * sizeof *row), label;
	if (!row || n < 1 || sl_dataset_read(d, 0, row, y.dtype ? &label : NULL) != SL_OK ||
	    sl_dataset_read(d, n - 1, row, y.dtype ? &label : NULL) != SL_OK)
		abort();
	free(row);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	const char *path = fuzz_file(data + !!size, size - !!size);
	sl_dataset *d = sl_dataset_csv_at("fuzz", path, options(size ? data[0] : 0));
	if (d) read_ends(d);
	else if (sl_error() == SL_OK) abort();
	sl_dataset_free(d);
	sl_error_clear();
	return 0;
}
