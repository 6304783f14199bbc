/* A small training run with everything that a checkpoint has to keep. */
#include <limits.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <starling.h>

#include "../../models/driver/networks.h"
#include "io/crc32c.h"
#include "nn/nn.h"
#include "run.h"

enum { SIDE = 12, CLASSES = 10, TOTAL = 60 };

/* ---- data -------------------------------------------------------------------------------------------------------- */

/* D. Knuth, "The Art of Computer Programming", volume 2, section 3.3.4, for the multiplier. */
static unsigned char draw(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned char)(*state >> 56);
}

static void put_number(FILE *f, uint32_t n)
{
	for (int shift = 24; shift >= 0; shift -= 8) fputc((int)(n >> shift & 255), f);
}

static bool write_idx(const char *path, int samples, int ndim, uint64_t *state)
{
	FILE *f = fopen(path, "wb");
	if (!f) return false;
	put_number(f, 0x800u + (unsigned)ndim);
	put_number(f, (uint32_t)samples);
	for (int i = 1; i < ndim; i++) put_number(f, SIDE);
	for (int i = 0; i < samples * (ndim > 1 ? SIDE * SIDE : 1); i++)
		fputc(ndim > 1 ? draw(state) : draw(state) % CLASSES, f);
	return fclose(f) == 0;
}

sl_dataset *run_data(const char *folder, int samples, unsigned seed)
{
	char images[PATH_MAX], labels[PATH_MAX];
	uint64_t state = seed;
	snprintf(images, sizeof images, "%s/images-%d", folder, (int)getpid());
	snprintf(labels, sizeof labels, "%s/labels-%d", folder, (int)getpid());
	bool ok = write_idx(images, samples, 3, &state) && write_idx(labels, samples, 1, &state);
	sl_dataset *d = ok ? sl_dataset_idx(images, labels, CLASSES) : NULL;
	unlink(images);
	unlink(labels);
	return d;
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

static sl_block *network(enum run_net net)
{
	if (net == RUN_RESNET) return net_resnet18_of(2, false);
	return sl_sequential(sl_conv2d_layer(4, .kernel = {3}, .activation = SL_RELU), sl_avg_pool2d_layer(2),
	                     sl_conv2d_layer(6, .kernel = {3}, .activation = SL_RELU),
	                     sl_dense(16, .activation = SL_RELU), sl_dropout_layer(0.5), sl_dense(CLASSES));
}

static struct sl_optimizer optimizer(enum run_net net)
{
	if (net == RUN_RESNET) return sl_sgd(.lr = 0.05, .momentum = 0.9);
	return sl_adam(.lr = 0.01, .schedule = {SL_COSINE, .warmup = 3, .total = TOTAL});
}

bool run_start(struct run *r, struct run_options o, sl_dataset *data)
{
	o.shards = o.shards ? o.shards : 1;
	o.devices = o.devices ? o.devices : 1;
	*r = (struct run){.options = o, .net = network(o.net), .loss = sl_mean_new()};
	sl_initialize(r->net, .init = sl_xavier_init());
	r->trainer = sl_trainer_new(r->net, optimizer(o.net));
	if (!o.eager) r->step = sl_step_compile(r->net, sl_softmax_cross_entropy_at, r->trainer);
	r->loader = sl_loader_new(data, .batch_size = o.batch ? o.batch : RUN_BATCH, .shuffle = true, .seed = 7);
	return sl_error() == SL_OK;
}

struct parts {
	sl_tensor *x[RUN_MAX_SHARDS], *y[RUN_MAX_SHARDS], *losses[RUN_MAX_SHARDS], *outputs[RUN_MAX_SHARDS];
};

static void compute_eagerly(struct run *r, struct parts *p, int n, int64_t rows)
{
	SL_RECORD {
		sl_forward_shards(r->net, n, p->x, p->outputs);
		for (int i = 0; i < n; i++) p->losses[i] = sl_softmax_cross_entropy(p->outputs[i], p->y[i]);
	}
	sl_backward_heads(p->losses, n);
	sl_trainer_step(r->trainer, rows);
}

static bool compute(struct run *r, const struct sl_batch *b)
{
	struct parts p;
	sl_device devices[RUN_MAX_SHARDS];
	int n = r->options.shards;
	for (int i = 0; i < n; i++) devices[i] = sl_cpu(i % r->options.devices);
	sl_split_and_load(b->x, devices, n, p.x, .uneven = true);
	sl_split_and_load(b->y, devices, n, p.y, .uneven = true);
	if (sl_error() != SL_OK) return false;
	if (r->step)
		sl_step_run(r->step, .output = p.outputs, .in = p.x, .targets = p.y, .losses = p.losses, .shards = n);
	else compute_eagerly(r, &p, n, sl_tensor_shape(b->x).dim[0]);
	for (int i = 0; i < n && sl_error() == SL_OK; i++) sl_metric_add(r->loss, p.losses[i], NULL);
	return sl_error() == SL_OK;
}

bool run_steps(struct run *r, int steps)
{
	bool ok = true;
	for (int done = 0; ok && done < steps;)
		SL_SCOPE {
			struct sl_batch b;
			if (sl_loader_next(r->loader, &b)) {
				ok = compute(r, &b);
				done++;
				r->steps++;
			} else {
				ok = sl_error() == SL_OK;
				r->epoch++;
			}
		}
	return ok;
}

uint32_t run_bits(struct run *r)
{
	int count;
	uint32_t bits = 0;
	sl_param **params = slp_block_all_params(SL_HERE, r->net, &count);
	for (int i = 0; params && i < count; i++) {
		sl_tensor *t = params[i]->data;
		const void *p = t ? slp_host_begin(SL_HERE, "run_bits", t, false) : NULL;
		if (!p) continue;
		bits = slp_crc32c(bits, p, sl_tensor_bytes(t));
		slp_host_end(t);
	}
	free(params);
	double loss = sl_metric_get(r->loss);
	return slp_crc32c(bits, &loss, sizeof loss);
}

void run_stop(struct run *r)
{
	sl_step_free(r->step);
	sl_trainer_free(r->trainer);
	sl_block_free(r->net);
	sl_loader_free(r->loader);
	sl_metric_free(r->loss);
	*r = (struct run){0};
}
