/* What calls are given in tests/sharing: objects that all threads share, and values that make sense most of the time. */
#include "pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "inner.h"
#include "shared.h"

enum { TENSORS = 16, BLOCKS = 6, CHANGING = 5, PARAMS = 16, KEPT = 256 };

static struct {
	sl_tensor *tensors[TENSORS];
	int ntensors;
	sl_block *blocks[BLOCKS];
	sl_param *params[PARAMS];
	int nparams;
	sl_trainer *trainers[2];
	sl_step *step;
	sl_dataset *dataset;
	sl_loader *loaders[2];
	sl_metric *metrics[2];
	sl_cache *cache;
	sl_graph *graph;
	sl_plan *plan;
	sl_balance *balance;
	sl_autotune *autotune;
	sl_checkpoint *checkpoint;
	const sl_op *op;
} all;

/* ---- the objects --------------------------------------------------------------------------------------------------- */

static enum sl_status copy_kernel(const struct sl_op_call *c)
{
	memcpy(c->out[0].data, c->in[0].data, (size_t)sl_shape_size(c->in[0].shape) * sizeof(float));
	return SL_OK;
}

static void share(sl_tensor *t)
{
	if (all.ntensors < TENSORS) all.tensors[all.ntensors++] = sl_retain(t);
}

static void make_tensors(void)
{
	SL_SCOPE {
		for (int i = 0; i < 4; i++) share(sl_uniform(SL_SHAPE(2, 3), -1, 1));
		share(sl_uniform(SL_SHAPE(3), -1, 1));
		share(sl_uniform(SL_SHAPE(3, 2), -1, 1));
		share(sl_uniform(SL_SHAPE(4, 2, 5, 5), -1, 1));
		share(sl_uniform(SL_SHAPE(2, 2, 3, 3), -1, 1));
		share(sl_ones(SL_SCALAR));
		share(sl_zeros(SL_SHAPE(2), .dtype = SL_INT32));
		share(sl_cast(sl_ones(SL_SHAPE(2, 3)), SL_BFLOAT16));
		for (int i = 0; i < 3; i++) {
			sl_tensor *t = sl_uniform(SL_SHAPE(2, 3), -1, 1);
			sl_attach_grad(t);
			share(t);
		}
	}
}

static void make_blocks(void)
{
	all.blocks[0] = sl_dense(2, .in_units = 3);
	all.blocks[1] = sl_sequential(sl_dense(3, .in_units = 3, .activation = SL_RELU), sl_dense(2, .in_units = 3));
	all.blocks[2] = sl_sequential(sl_dense(3, .in_units = 3), sl_batch_norm_layer(.in_channels = 3));
	all.blocks[3] = sl_sequential(sl_dropout_layer(0.5), sl_dense(2));
	all.blocks[4] = sl_embedding(5, 3);
	all.blocks[CHANGING] = sl_sequential(sl_dense(3, .in_units = 3), sl_dense(2, .in_units = 3));
	sl_initialize(all.blocks[CHANGING]);
	for (int i = 0; i < CHANGING; i++) { /* its parameters go with its children */
		sl_initialize(all.blocks[i]);
		int n = sl_block_params(all.blocks[i], all.params + all.nparams, PARAMS - all.nparams);
		all.nparams += n < PARAMS - all.nparams ? n : PARAMS - all.nparams;
	}
	sl_hybridize(all.blocks[1]);
}

void pool_make(void)
{
	static const float x[24] = {1, 2, 3, 4, 5};
	static const int32_t y[8] = {0, 1, 0, 1, 1, 0};
	const char *program = "input x: float32 (2,3)\ny = add(x, x)\nz = sum(y)\nreturn y, z";
	pool_sensible = true;
	all.op = sl_op_find("shared_copy");
	if (!all.op) all.op = sl_op_register(.name = "shared_copy", .args = "x", .nin = 1, .cpu = copy_kernel);
	make_tensors();
	make_blocks();
	all.trainers[0] = sl_trainer_new(all.blocks[1], sl_sgd(.lr = 0.01, .momentum = 0.9));
	all.trainers[1] = sl_trainer_new(all.blocks[0], sl_adam(.average = 0.5));
	all.step = sl_step_compile(all.blocks[1], sl_l2_loss_at, all.trainers[0]);
	all.dataset = sl_dataset_arrays(((struct sl_array){x, SL_SHAPE(8, 3), SL_FLOAT32}),
	                                ((struct sl_array){y, SL_SHAPE(8), SL_INT32}));
	for (int i = 0; i < 2; i++)
		all.loaders[i] = sl_loader_new(all.dataset, .batch_size = 2, .shuffle = true, .workers = i);
	all.metrics[0] = sl_mean_new();
	all.metrics[1] = sl_accuracy_new();
	all.cache = sl_cache_new(all.blocks[0], 8);
	all.graph = sl_graph_parse(program);
	all.plan = sl_compile(sl_graph_parse(program));
	all.balance = sl_balance_new(SL_ARRAY(sl_device, {SL_DEVICE_CPU, 0}), 1);
	all.autotune = sl_autotune_new(2);
	sl_checkpoint_save("saved.safetensors", .trainer = all.trainers[0]);
	all.checkpoint = sl_checkpoint_open("saved.safetensors");
}

void pool_free(void)
{
	sl_checkpoint_close(all.checkpoint);
	sl_autotune_free(all.autotune);
	sl_balance_free(all.balance);
	sl_plan_free(all.plan);
	sl_graph_free(all.graph);
	sl_cache_free(all.cache);
	for (int i = 0; i < 2; i++) {
		sl_metric_free(all.metrics[i]);
		sl_loader_free(all.loaders[i]);
	}
	sl_dataset_free(all.dataset);
	sl_step_free(all.step);
	for (int i = 0; i < 2; i++) sl_trainer_free(all.trainers[i]);
	for (int i = 0; i < BLOCKS; i++) sl_block_free(all.blocks[i]);
	for (int i = 0; i < all.ntensors; i++) sl_release(all.tensors[i]);
	memset(&all, 0, sizeof all);
}

sl_tensor *any_tensor(void)
{
	return all.tensors[below(all.ntensors)];
}
sl_block *any_block(void)
{
	return all.blocks[below(BLOCKS)];
}
sl_block *changing_block(void)
{
	return all.blocks[CHANGING];
}
sl_param *any_param(void)
{
	return all.params[below(all.nparams)];
}
sl_trainer *any_trainer(void)
{
	return all.trainers[below(2)];
}
sl_step *any_step(void)
{
	return all.step;
}
sl_dataset *any_dataset(void)
{
	return all.dataset;
}
sl_loader *any_loader(void)
{
	return all.loaders[below(2)];
}
sl_metric *any_metric(void)
{
	return all.metrics[below(2)];
}
sl_cache *any_cache(void)
{
	return all.cache;
}
sl_graph *any_graph(void)
{
	return all.graph;
}
sl_plan *any_plan(void)
{
	return all.plan;
}
sl_balance *any_balance(void)
{
	return all.balance;
}
sl_autotune *any_autotune(void)
{
	return all.autotune;
}
sl_checkpoint *any_checkpoint(void)
{
	return all.checkpoint;
}
const sl_op *any_op(void)
{
	return all.op;
}

/* ---- what one thread has to itself ---------------------------------------------------------------------------------- */

static _Thread_local struct {
	void *object;
	void (*free)(void *);
} mine[KEPT];
static _Thread_local int nmine;

void *kept(void *object, void (*free)(void *))
{
	if (!object || nmine == KEPT) return object;
	mine[nmine].object = object;
	mine[nmine++].free = free;
	return object;
}

void pool_sweep(void)
{
	while (nmine) {
		nmine--;
		mine[nmine].free(mine[nmine].object);
	}
}

void taken(const void *object)
{
	int to = 0;
	for (int i = 0; i < nmine; i++)
		if (mine[i].object != object) mine[to++] = mine[i];
	nmine = to;
}

void taken_some(void *const *objects, int count)
{
	for (int i = 0; objects && i < count && i < 4; i++) taken(objects[i]);
}

static void end_file(void *f)
{
	sl_file_discard(f);
}
sl_file *any_sl_file(void)
{
	return kept(sl_file_begin(own_path("written")), end_file);
}
static void end_job(void *j)
{
	sl_checkpoint_end(j);
}
sl_checkpoint_job *any_checkpoint_job(void)
{
	return kept(sl_checkpoint_begin(own_path("begun.safetensors"), .trainer = any_trainer()), end_job);
}

/* Results belong to the thread: they are freed. */
#define FREE_RESULT(kind, free)                                                                                        \
	void try_##kind(sl_##kind *x)                                                                                  \
	{                                                                                                              \
		free(x);                                                                                               \
	}
FREE_RESULT(block, sl_block_free)
FREE_RESULT(trainer, sl_trainer_free)
FREE_RESULT(dataset, sl_dataset_free)
FREE_RESULT(loader, sl_loader_free)
FREE_RESULT(metric, sl_metric_free)
FREE_RESULT(cache, sl_cache_free)
FREE_RESULT(graph, sl_graph_free)
FREE_RESULT(plan, sl_plan_free)
FREE_RESULT(step, sl_step_free)
FREE_RESULT(balance, sl_balance_free)
FREE_RESULT(autotune, sl_autotune_free)
FREE_RESULT(file, sl_file_discard)
FREE_RESULT(checkpoint, sl_checkpoint_close)
void try_tensor(sl_tensor *t)
{
	(void)t; /* its scope has it */
}
void try_checkpoint_job(sl_checkpoint_job *j)
{
	if (j) sl_checkpoint_end(j);
}
