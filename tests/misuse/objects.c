/* Tensors, blocks and the other objects that calls are given: whole ones, unfinished ones, spoilt ones, none. */
#include <stdlib.h>
#include <string.h>

#include "inner.h"
#include "pool.h"

/* ---- until the next call ----------------------------------------------------------------------------------------- */

enum { MOST_KEPT = 4096, SHARED = 24 };
static struct {
	void *object;
	void (*free)(void *);
} kept_list[MOST_KEPT];
static int nkept;

void *kept(void *object, void (*free)(void *))
{
	if (!object || nkept == MOST_KEPT) return object;
	kept_list[nkept].object = object;
	kept_list[nkept++].free = free;
	return object;
}

void pool_sweep(void)
{
	while (nkept) {
		nkept--;
		kept_list[nkept].free(kept_list[nkept].object);
	}
}

/* The last one of its kind, now and then, so that calls get the same object twice. */
static void *again(void (*free)(void *))
{
	for (int i = nkept - 1; i >= 0 && below(3) == 0; i--)
		if (kept_list[i].free == free) return kept_list[i].object;
	return NULL;
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

static sl_tensor *shared[SHARED];
static int nshared;
static const sl_op *op;

static enum sl_status copy_kernel(const struct sl_op_call *c)
{
	memcpy(c->out[0].data, c->in[0].data, (size_t)sl_shape_size(c->in[0].shape) * sizeof(float));
	return SL_OK;
}

static void share(sl_tensor *t)
{
	if (nshared < SHARED) shared[nshared++] = sl_retain(t);
}

static sl_tensor *spoilt(void)
{
	sl_tensor *i = sl_full(SL_SHAPE(2), 1000, .dtype = SL_INT32);
	return sl_gather(sl_ones(SL_SHAPE(3, 2)), i);
}

void pool_make(void)
{
	op = sl_op_register(.name = "misused", .args = "x", .nin = 1, .cpu = copy_kernel);
	SL_SCOPE {
		static const enum sl_dtype types[] = {SL_FLOAT64, SL_INT32, SL_UINT8, SL_BFLOAT16,
		                                      SL_FLOAT16, SL_INT64, SL_BOOL};
		for (int i = 0; i < 7; i++) share(sl_cast(sl_ones(SL_SHAPE(2, 3)), types[i]));
		for (int i = 0; i < 3; i++) share(sl_uniform(SL_SHAPE(2, 3), -1, 1));
		share(sl_uniform(SL_SHAPE(3), -1, 1));
		share(sl_uniform(SL_SHAPE(3, 2), -1, 1));
		share(sl_uniform(SL_SHAPE(4, 2, 5, 5), -1, 1));
		share(sl_uniform(SL_SHAPE(2, 2, 3, 3), -1, 1));
		share(sl_uniform(SL_SHAPE(2, 3, 4), -1, 1));
		share(sl_ones(SL_SCALAR));
		share(sl_zeros(SL_SHAPE(2), .dtype = SL_INT32));
		share(sl_full(SL_SHAPE(2, 3), 0.0 / 0.0));
		share(sl_reshape(shared[7], SL_SHAPE(3, 2)));
		sl_tensor *learnt = sl_uniform(SL_SHAPE(2, 3), -1, 1);
		sl_attach_grad(learnt);
		share(learnt);
		SL_RECORD
			share(sl_mul(learnt, learnt));
		share(spoilt());
		check_pending("while the pool was made");
	}
}

void pool_free(void)
{
	for (int i = 0; i < nshared; i++) sl_release(shared[i]);
	nshared = 0;
}

sl_tensor *any_tensor(void)
{
	static const sl_shape shapes[] = {{2, {2, 3}}, {1, {3}}, {4, {4, 2, 5, 5}}};
	int which = below(30);
	if (which < 2) return NULL;
	if (which == 2) return sl_var("v", .shape = &shapes[below(3)]);
	return nshared ? shared[below(nshared)] : NULL;
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

static void free_block(void *b)
{
	sl_block_free(b);
}
static sl_tensor *square(sl_tensor *x)
{
	return sl_mul(x, x);
}
static sl_block *new_block(void)
{
	switch (below(9)) {
	case 0: return sl_dense(4);
	case 1: return sl_conv2d_layer(3, .kernel = {3});
	case 2: return sl_sequential(sl_dense(3, .activation = SL_RELU), sl_dense(2));
	case 3: return sl_lambda("square", square);
	case 4: return sl_batch_norm_layer();
	case 5: return sl_embedding(5, 3);
	case 6: return sl_lstm(3);
	case 7: return sl_sequential(sl_dropout_layer(0.5), sl_dense(2, .in_units = 3));
	default: return sl_dense(2, .in_units = 3);
	}
}
sl_block *any_block(void)
{
	if (below(12) == 0) return NULL;
	sl_block *b = again(free_block);
	if (b) return b;
	b = kept(new_block(), free_block);
	if (b && below(3)) sl_initialize(b);
	if (b && below(3) == 0) sl_hybridize(b);
	return b;
}
sl_param *any_param(void)
{
	sl_param *list[8];
	sl_block *b = any_block();
	int n = b ? sl_block_params(b, list, 8) : 0;
	return n > 0 ? list[below(n)] : NULL;
}

static void free_trainer(void *t)
{
	sl_trainer_free(t);
}
sl_trainer *any_trainer(void)
{
	if (below(12) == 0) return NULL;
	sl_trainer *t = again(free_trainer);
	sl_block *b = t ? NULL : any_block();
	return t   ? t
	       : b ? kept(sl_trainer_new(b, below(2) ? sl_adam() : sl_sgd(.lr = 0.1, .momentum = 0.9)), free_trainer)
	           : NULL;
}
static void free_step(void *s)
{
	sl_step_free(s);
}
sl_step *any_step(void)
{
	sl_trainer *t = any_trainer();
	return t ? kept(sl_step_compile(any_block(), sl_softmax_cross_entropy_at, t), free_step) : NULL;
}
static void free_metric(void *m)
{
	sl_metric_free(m);
}
sl_metric *any_metric(void)
{
	return below(10) ? kept(below(2) ? sl_accuracy_new() : sl_mean_new(), free_metric) : NULL;
}
static void free_cache(void *c)
{
	sl_cache_free(c);
}
sl_cache *any_cache(void)
{
	sl_block *net = below(10) ? any_block() : NULL;
	return net ? kept(sl_cache_new(net, 1 + below(8)), free_cache) : NULL;
}
static void free_balance(void *b)
{
	sl_balance_free(b);
}
sl_balance *any_balance(void)
{
	return below(10) ? kept(sl_balance_new(SL_ARRAY(sl_device, {SL_DEVICE_CPU, 0}), 1), free_balance) : NULL;
}
static void free_autotune(void *t)
{
	sl_autotune_free(t);
}
sl_autotune *any_autotune(void)
{
	return below(10) ? kept(sl_autotune_new(2), free_autotune) : NULL;
}

/* ---- data -------------------------------------------------------------------------------------------------------- */

static void free_dataset(void *d)
{
	sl_dataset_free(d);
}
sl_dataset *any_dataset(void)
{
	static const float x[12] = {1, 2, 3, 4, 5};
	static const int32_t y[6] = {0, 1, 0, 1, 1, 0};
	if (below(10) == 0) return NULL;
	sl_dataset *d = again(free_dataset);
	return d ? d
	         : kept(sl_dataset_arrays(((struct sl_array){x, SL_SHAPE(6, 2), SL_FLOAT32}),
	                                  ((struct sl_array){y, SL_SHAPE(6), SL_INT32})),
	                free_dataset);
}
static void free_loader(void *l)
{
	sl_loader_free(l);
}
sl_loader *any_loader(void)
{
	sl_dataset *d = any_dataset();
	return d ? kept(sl_loader_new(d, .batch_size = 2, .shuffle = below(2), .workers = below(2)), free_loader)
	         : NULL;
}

/* ---- programs, files --------------------------------------------------------------------------------------------- */

static void free_graph(void *g)
{
	sl_graph_free(g);
}
sl_graph *any_graph(void)
{
	if (below(10) == 0) return NULL;
	return kept(sl_graph_parse(
	                    "input x: float32 (2,3)\nparam w: float32 (2,3)\ny = add(x, x)\nz = sum(y)\nreturn y, z"),
	            free_graph);
}
static void free_plan(void *p)
{
	sl_plan_free(p);
}
sl_plan *any_plan(void)
{
	if (below(10) == 0) return NULL;
	sl_graph *g =
	        kept(sl_graph_parse("input x: float32 (2,3)\ny = add(x, x)\nz = sum(y)\nreturn y, z"), free_graph);
	return g ? kept(sl_compile(g), free_plan) : NULL;
}
static void free_file(void *f)
{
	sl_file_discard(f);
}
sl_file *any_sl_file(void)
{
	return below(10) ? kept(sl_file_begin("written"), free_file) : NULL;
}
static void free_checkpoint(void *c)
{
	sl_checkpoint_close(c);
}
sl_checkpoint *any_checkpoint(void)
{
	return below(10) ? kept(sl_checkpoint_open("saved.safetensors"), free_checkpoint) : NULL;
}
static void free_job(void *j)
{
	sl_checkpoint_end(j);
}
sl_checkpoint_job *any_checkpoint_job(void)
{
	return below(10) ? kept(sl_checkpoint_begin("begun.safetensors"), free_job) : NULL;
}
const sl_op *any_op(void)
{
	return below(8) ? op : NULL;
}

void taken(const void *object)
{
	int to = 0;
	for (int i = 0; i < nkept; i++)
		if (kept_list[i].object != object) kept_list[to++] = kept_list[i];
	nkept = to;
}

void taken_some(void *const *objects, int count)
{
	for (int i = 0; objects && i < count && i < 4; i++) taken(objects[i]);
}

/* ---- what results are good for ----------------------------------------------------------------------------------- */

void try_tensor(sl_tensor *t)
{
	if (t && !sl_is_symbol(t)) sl_wait(t);
}
static void train(sl_block *b, sl_trainer *trainer)
{
	sl_tensor *x = any_tensor(), *y = NULL;
	if (!x) return;
	SL_RECORD {
		y = sl_forward(b, x);
		y = sl_sum(y);
	}
	if (y && !sl_is_symbol(y)) sl_backward(y);
	if (trainer) sl_trainer_step(trainer, 2);
}
void try_block(sl_block *b)
{
	if (!kept(b, free_block)) return;
	sl_initialize(b);
	sl_error_clear();
	for (int i = 0; i < 4; i++) train(b, NULL), check_pending("when it ran");
}
void try_trainer(sl_trainer *t)
{
	if (!kept(t, free_trainer)) return;
	sl_block *b = again(free_block);
	if (b) train(b, t);
}
void try_dataset(sl_dataset *d)
{
	if (!kept(d, free_dataset)) return;
	struct sl_array x = sl_dataset_x(d);
	if (sl_shape_size(x.shape) > 1000 || sl_shape_size(x.shape) < 0) return;
	void *to = kept(malloc(MEMORY), free), *labels = kept(malloc(MEMORY), free);
	sl_dataset_read(d, 0, to, labels);
	sl_error_clear();
	try_loader(sl_loader_new(d, .batch_size = 2, .workers = below(2)));
}
void try_loader(sl_loader *l)
{
	struct sl_batch b;
	if (!kept(l, free_loader)) return;
	for (int i = 0; i < 2 && sl_loader_next(l, &b); i++) sl_wait(b.x);
}
void try_metric(sl_metric *m)
{
	if (!kept(m, free_metric)) return;
	sl_metric_add(m, any_tensor(), any_tensor());
	sl_metric_get(m);
}
void try_cache(sl_cache *c)
{
	if (!kept(c, free_cache)) return;
	sl_cache_forward(c, any_tensor());
	sl_cache_cut(c, 0);
}
void try_graph(sl_graph *g)
{
	if (kept(g, free_graph)) try_plan(sl_compile(g));
}
void try_plan(sl_plan *p)
{
	sl_tensor *out[ARRAY], *in = any_tensor();
	if (kept(p, free_plan)) sl_plan_run(p, &in, 1, out);
}
void try_step(sl_step *s)
{
	if (kept(s, free_step)) sl_step_run(s, any_tensor(), any_tensor(), NULL);
}
void try_balance(sl_balance *b)
{
	if (kept(b, free_balance)) sl_balance_update(b);
}
void try_autotune(sl_autotune *t)
{
	if (kept(t, free_autotune)) sl_autotune_next(t);
}
void try_file(sl_file *f)
{
	kept(f, free_file);
}
void try_checkpoint(sl_checkpoint *c)
{
	kept(c, free_checkpoint);
}
void try_checkpoint_job(sl_checkpoint_job *j)
{
	kept(j, free_job);
}
