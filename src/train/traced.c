/* What a trace shows of training: steps as StarPU's iterations, and what StarPU's tools call parameters and batches.  Memory
 * that another value takes over later keeps the name until that has one. */
#include <stdio.h>

#include "nn/nn.h"
#include "runtime/compat.h"
#include "runtime/engine.h"
#include "runtime/observe/fxt.h"
#include "runtime/task/buffer.h"
#include "runtime/task/storage.h"
#include "tensor/tensor.h"
#include "train/traced.h"

static void name_data(const sl_tensor *t, const char *name)
{
	slp_lock();
	const struct slp_storage *s = t ? t->storage : NULL;
	if (s && s->buffer && s->generation == slp_engine.generation) starpu_data_set_name(s->buffer->handle, name);
	slp_unlock();
}

void slp_traced_batch(const struct slp_step_run *r)
{
	char name[32];
	int each = r->nin + r->ntargets;
	for (int i = 0; slp_fxt_on && i < r->n * each; i++) {
		int k = i % each, target = k - r->nin;
		snprintf(name, sizeof name, "%s%d", target < 0 ? "input" : "target", target < 0 ? k : target);
		name_data(slp_step_shard(r, i / each)[k], name);
	}
}

void slp_traced_step_done(const sl_trainer *t)
{
	for (int i = 0; slp_fxt_on && i < t->count; i++) name_data(t->params[i]->data, sl_param_name(t->params[i]));
	slp_fxt_step_done();
}
