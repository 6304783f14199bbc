/* Feeds anything to the reader of checkpoints, and gives a small run what comes out.  Checksums would refuse nearly
 * all: the header's is made right before. */
#include <stdlib.h>
#include <string.h>
#include <starling.h>

#include "fuzz.h"
#include "io/params.h"
#include "checkpoint/state.h"

static struct {
	sl_block *net;
	sl_trainer *trainer;
	sl_metric *metric;
	sl_tensor *average;
	int64_t epoch, step;
} mine;

static void make_run(void)
{
	if (mine.net) return;
	mine.net = sl_sequential(sl_dense(2, .in_units = 3));
	sl_initialize(mine.net);
	mine.trainer = sl_trainer_new(mine.net, sl_adam(.lr = 0.1));
	mine.metric = sl_mean_new();
	mine.average = sl_zeros(SL_SHAPE(4));
}

static void make_sealed(unsigned char *data, size_t size)
{
	uint64_t length;
	if (size < 8) return;
	memcpy(&length, data, 8);
	if (length <= size - 8 && slp_seal_is_there((char *)data + 8, (size_t)length))
		slp_seal_close((char *)data + 8, (size_t)length);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct slp_file f = {.at = "fuzz", .function = "fuzz", .path = "x", .data = malloc(size + !size), .size = size};
	if (!f.data) abort();
	if (size) memcpy(f.data, data, size);
	make_sealed(f.data, size);
	make_run();
	sl_checkpoint *c = slp_checkpoint_parse(&f);
	if (c)
		sl_checkpoint_restore(c, .trainer = mine.trainer, SL_METRICS(mine.metric),
		                      .names = (const char *[]){"average"}, .tensors = &mine.average, .ntensors = 1,
		                      .epoch = &mine.epoch, .step = &mine.step);
	sl_checkpoint_close(c);
	free(f.data);
	sl_error_clear();
	return 0;
}
