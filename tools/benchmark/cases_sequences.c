/* Cases of layers over sequences, forward and back: a recurrent layer, attention. */
#include <stdlib.h>

#include "bench.h"

static struct {
	sl_block *net;
	sl_tensor *in[3];
	int nin;
} sequence;

static bool make(const struct bench_case *c, sl_block *net, int nin, sl_shape shape)
{
	sequence.net = net;
	sequence.nin = nin;
	if (sl_initialize(net) != SL_OK || sl_hybridize(net) != SL_OK) return false;
	for (int i = 0; i < nin; i++) {
		SL_SCOPE
			sequence.in[i] = sl_retain(sl_cast(sl_normal(shape, 0, 1), bench_autocast(c)));
		if (!sequence.in[i] || sl_attach_grad(sequence.in[i]) != SL_OK) return false;
	}
	return sl_wait_all() == SL_OK;
}

bool bench_lstm_setup(const struct bench_case *c)
{
	return make(c, sl_lstm(256), 1, SL_SHAPE(35, 32, 256));
}

static sl_tensor *attend(sl_block *self, sl_tensor *const *in, int nin)
{
	(void)self, (void)nin;
	return sl_scaled_dot_product_attention(in[0], in[1], in[2]);
}

static sl_tensor *attend_before(sl_block *self, sl_tensor *const *in, int nin)
{
	(void)self, (void)nin;
	return sl_scaled_dot_product_attention(in[0], in[1], in[2], .causal = true);
}

static bool make_attention(const struct bench_case *c, sl_tensor *(*forward)(sl_block *, sl_tensor *const *, int))
{
	sl_block *net = calloc(1, sizeof *net);
	if (!net || sl_block_init(net, "Attention", forward, NULL) != SL_OK) return false;
	return make(c, net, 3, SL_SHAPE(4, 12, 1024, 64));
}

bool bench_attention_setup(const struct bench_case *c)
{
	return make_attention(c, attend);
}

bool bench_causal_attention_setup(const struct bench_case *c)
{
	return make_attention(c, attend_before);
}

double bench_sequence_run(const struct bench_case *c, int64_t times)
{
	(void)c;
	double start = bench_now();
	for (int64_t i = 0; i < times; i++)
		SL_SCOPE {
			sl_tensor *sum;
			SL_RECORD
				sum = sl_sum(sl_forward_at(SL_HERE, sequence.net, sequence.in, sequence.nin));
			bench_must(sl_backward(sum));
		}
	bench_must(sl_wait_all());
	return (bench_now() - start) / (double)times;
}

void bench_sequence_teardown(void)
{
	sl_block_free(sequence.net);
	for (int i = 0; i < sequence.nin; i++) sl_release(sequence.in[i]);
}
