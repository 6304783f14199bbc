/* Allocations of the library that fail, one at a time: each is an error that says where, nothing else happens, and
 * everything works afterwards.  A sample of them; with "all" as the first argument each one, with "all/7+3" each
 * seventh from the third on. */
#include "config.h"

#include <starling/own.h>

#include <limits.h>
#include <string.h>

#include "alloc_trials.h"
#include "check.h"
#include "folder.h"
#include "idx_files.h"

enum { IMAGES = 24, BATCH = 8 };
static long first = 1, step; /* of the allocations that fail; step 0: a sample */

/* ---- the programs ------------------------------------------------------------------------------------------------ */

static sl_block *network(void)
{
	return sl_sequential(sl_conv2d_layer(3, .kernel = {3}, .activation = SL_RELU), sl_batch_norm_layer(),
	                     sl_max_pool2d_layer(2), sl_flatten_layer(), sl_dense(6, .activation = SL_RELU),
	                     sl_dropout_layer(0.25), sl_dense(4));
}

static sl_tensor *image(void)
{
	float v[4 * 8 * 8];
	for (int i = 0; i < 4 * 8 * 8; i++) v[i] = (float)(i * 37 % 101) / 101;
	return sl_from(v, SL_SHAPE(4, 1, 8, 8));
}

static sl_tensor *labels(void)
{
	return sl_from(((int32_t[]){0, 1, 2, 3}), SL_SHAPE(4), .dtype = SL_INT32);
}

static bool read_result(sl_block *net, const char *path, sl_tensor *loss, struct slp_result *r, enum sl_status *status)
{
	float v[64];
	sl_tensor *w = sl_param_data(sl_block_find(net, path));
	if (!slp_there(w, status)) return false;
	if (!slp_told(sl_read(w, v, sl_tensor_bytes(w)), status)) return false;
	r->weight = v[1];
	r->loss = (float)sl_item(sl_sum(loss));
	return r->loss == r->loss || slp_told(sl_error(), status);
}

/* Two steps of training, call by call. */
static bool train(sl_block *net, sl_trainer *trainer, struct slp_result *r, enum sl_status *status)
{
	for (int i = 0; i < 2; i++) {
		sl_tensor *loss = NULL;
		SL_RECORD
			loss = sl_softmax_cross_entropy(sl_forward(net, image()), labels());
		if (!slp_there(loss, status) || !slp_told(sl_backward(loss), status)) return false;
		if (!slp_told(sl_trainer_step(trainer, 4), status)) return false;
		if (i && !read_result(net, "6.bias", loss, r, status)) return false;
	}
	return true;
}

static bool recompute_all(sl_block *net, enum sl_status *status)
{
	bool ok = true;
	for (int i = 0; ok && i < sl_block_children(net); i++)
		ok = slp_told(sl_block_recompute(sl_block_child(net, i), true), status);
	return ok;
}

static bool call_by_call(bool hybrid, bool recomputed, struct slp_result *r, enum sl_status *status)
{
	bool ok = false;
	sl_block *net = network();
	sl_trainer *trainer = NULL;
	SL_SCOPE {
		sl_seed(7);
		if (!slp_there(net, status) || !slp_told(sl_initialize(net), status)) break;
		if (hybrid && !slp_told(sl_hybridize(net), status)) break;
		if (recomputed && !recompute_all(net, status)) break;
		trainer = sl_trainer_new(net, sl_sgd(.lr = 0.1, .momentum = 0.9));
		ok = slp_there(trainer, status) && train(net, trainer, r, status);
	}
	sl_trainer_free(trainer);
	sl_block_free(net);
	return ok;
}

static bool eager(struct slp_result *r, enum sl_status *status)
{
	return call_by_call(false, false, r, status);
}

static bool hybrid(struct slp_result *r, enum sl_status *status)
{
	return call_by_call(true, false, r, status);
}

static bool recomputed(struct slp_result *r, enum sl_status *status)
{
	return call_by_call(false, true, r, status);
}

static bool compiled(struct slp_result *r, enum sl_status *status)
{
	bool ok = false;
	sl_block *net = network();
	sl_trainer *trainer = NULL;
	sl_step *step = NULL;
	SL_SCOPE {
		sl_seed(7);
		if (!slp_there(net, status) || !slp_told(sl_initialize(net), status)) break;
		if (!slp_there(trainer = sl_trainer_new(net, sl_adam()), status)) break;
		if (!slp_there(step = sl_step_compile(net, sl_softmax_cross_entropy_at, trainer), status)) break;
		sl_tensor *loss = sl_step_run(step, image(), labels(), NULL);
		if (loss) loss = sl_step_run(step, image(), labels(), NULL);
		ok = slp_there(loss, status) && read_result(net, "6.bias", loss, r, status);
	}
	sl_step_free(step);
	sl_trainer_free(trainer);
	sl_block_free(net);
	return ok;
}

/* ---- on two teams ------------------------------------------------------------------------------------------------ */

static const sl_device teams[] = {{SL_DEVICE_CPU, 0}, {SL_DEVICE_CPU, 1}};

static bool shards_eager(sl_block *net, sl_trainer *trainer, sl_tensor **x, sl_tensor **y, sl_tensor **losses,
                         enum sl_status *status)
{
	sl_tensor *out[2] = {NULL};
	losses[0] = losses[1] = NULL;
	SL_RECORD
		if (sl_forward_shards(net, 2, x, out) == SL_OK)
			for (int i = 0; i < 2; i++) losses[i] = sl_softmax_cross_entropy(out[i], y[i]);
	return slp_there(losses[0], status) && slp_there(losses[1], status) &&
	       slp_told(sl_backward_heads(losses, 2), status) && slp_told(sl_trainer_step(trainer, 4), status);
}

static bool on_shards(bool eagerly, struct slp_result *r, enum sl_status *status)
{
	bool ok = false;
	sl_block *net = network();
	sl_trainer *trainer = NULL;
	sl_step *step = NULL;
	SL_SCOPE {
		sl_tensor *x[2], *y[2], *losses[2] = {NULL};
		sl_seed(7);
		if (!slp_there(net, status)) break;
		if (!slp_told(sl_initialize(net, .devices = teams, .ndevices = 2), status)) break;
		if (!slp_there(trainer = sl_trainer_new(net, sl_adam()), status)) break;
		if (!eagerly && !slp_there(step = sl_step_compile(net, sl_softmax_cross_entropy_at, trainer), status))
			break;
		ok = true;
		for (int i = 0; ok && i < 2; i++) {
			ok = slp_told(sl_split_and_load(image(), teams, 2, x), status) &&
			     slp_told(sl_split_and_load(labels(), teams, 2, y), status);
			if (ok && eagerly) ok = shards_eager(net, trainer, x, y, losses, status);
			else if (ok) ok = slp_told(sl_step_run_shards(step, 2, x, y, losses, NULL), status);
		}
		ok = ok && read_result(net, "6.bias", losses[0], r, status);
	}
	sl_step_free(step);
	sl_trainer_free(trainer);
	sl_block_free(net);
	return ok;
}

static bool shards(struct slp_result *r, enum sl_status *status)
{
	return on_shards(false, r, status);
}

static bool shards_by_call(struct slp_result *r, enum sl_status *status)
{
	return on_shards(true, r, status);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static bool files(struct slp_result *r, enum sl_status *status)
{
	char prefix[PATH_MAX], symbol[PATH_MAX], params[PATH_MAX];
	bool ok = false;
	sl_block *net = network(), *read = NULL;
	slp_scratch_path("net", prefix);
	slp_scratch_path("net-symbol.json", symbol);
	slp_scratch_path("net-0000.params", params);
	SL_SCOPE {
		sl_seed(7);
		if (!slp_there(net, status) || !slp_told(sl_initialize(net), status)) break;
		if (!slp_told(sl_export(net, prefix, SL_SHAPES(SL_SHAPE(4, 1, 8, 8))), status)) break;
		if (!slp_there(read = sl_import(symbol, SL_NAMES("data"), params), status)) break;
		r->loss = (float)sl_item(sl_sum(sl_forward(read, image())));
		ok = r->loss == r->loss || slp_told(sl_error(), status);
	}
	sl_block_free(read);
	sl_block_free(net);
	return ok;
}

static bool epoch(sl_loader *loader, sl_block *net, sl_trainer *trainer, sl_metric *metric, struct slp_result *r,
                  enum sl_status *status)
{
	bool ok = true;
	for (bool more = true; ok && more;)
		SL_SCOPE {
			struct sl_batch b;
			if (!(more = sl_loader_next(loader, &b))) break;
			sl_tensor *y = NULL, *loss = NULL;
			SL_RECORD {
				y = sl_forward(net, b.x);
				loss = sl_softmax_cross_entropy(y, b.y);
			}
			ok = slp_there(loss, status) && slp_told(sl_backward(loss), status) &&
			     slp_told(sl_trainer_step(trainer, BATCH), status) &&
			     slp_told(sl_metric_add(metric, y, b.y), status);
			if (ok) r->loss = (float)sl_item(sl_mean(loss));
		}
	if (ok) r->weight = (float)sl_metric_get(metric);
	return ok && slp_told(sl_error(), status);
}

static bool driver(struct slp_result *r, enum sl_status *status)
{
	char x[PATH_MAX], y[PATH_MAX], path[PATH_MAX];
	sl_dataset *set = sl_dataset_idx(slp_scratch_path("x", x), slp_scratch_path("y", y), 10);
	sl_loader *loader = slp_there(set, status) ? sl_loader_new(set, .batch_size = BATCH, .shuffle = true) : NULL;
	sl_block *net = sl_sequential(sl_flatten_layer(), sl_dense(8, .activation = SL_TANH), sl_dense(10));
	sl_trainer *trainer = NULL;
	sl_metric *metric = sl_accuracy_new();
	slp_scratch_path("net.safetensors", path);
	bool ok = false;
	SL_SCOPE {
		sl_seed(7);
		if (!slp_there(loader, status) || !slp_there(net, status) || !slp_there(metric, status)) break;
		if (!slp_told(sl_initialize(net), status)) break;
		if (!slp_there(trainer = sl_trainer_new(net, sl_adam()), status)) break;
		ok = epoch(loader, net, trainer, metric, r, status) && slp_told(sl_save_params(net, path), status) &&
		     slp_told(sl_trainer_save(trainer, path), status) &&
		     slp_told(sl_trainer_load(trainer, path), status);
	}
	sl_metric_free(metric);
	sl_trainer_free(trainer);
	sl_block_free(net);
	sl_loader_free(loader);
	sl_dataset_free(set);
	return ok;
}

/* ---- other files ----------------------------------------------------------------------------------------------- */

#ifdef HAVE_ONNX
static bool onnx(struct slp_result *r, enum sl_status *status)
{
	char path[PATH_MAX];
	bool ok = false;
	sl_block *net = network(), *read = NULL;
	slp_scratch_path("net.onnx", path);
	SL_SCOPE {
		sl_seed(7);
		if (!slp_there(net, status) || !slp_told(sl_initialize(net), status)) break;
		if (!slp_told(sl_export_onnx(net, path, SL_SHAPES(SL_SHAPE(4, 1, 8, 8))), status)) break;
		if (!slp_there(read = sl_import_onnx(path), status)) break;
		r->loss = (float)sl_item(sl_sum(sl_forward(read, image())));
		ok = r->loss == r->loss || slp_told(sl_error(), status);
	}
	sl_block_free(read);
	sl_block_free(net);
	return ok;
}
#endif

/* Written at once, written beside, and read again. */
static bool write_and_read(sl_trainer *trainer, sl_metric *metric, enum sl_status *status)
{
	char path[PATH_MAX], folder[PATH_MAX];
	int64_t step = 3;
	slp_scratch_path("run.safetensors", path);
	slp_scratch_path("runs", folder);
	if (!slp_told(sl_checkpoint_save(path, .trainer = trainer, SL_METRICS(metric), .step = &step), status))
		return false;
	sl_checkpoint_job *job = sl_checkpoint_begin(folder, .keep = 1, .trainer = trainer, .note = "n");
	if (!slp_there(job, status) || !slp_told(sl_checkpoint_end(job), status)) return false;
	/* Copies that fail are reported by the next wait, before they are overwritten. */
	return slp_told(sl_checkpoint_load(folder, .trainer = trainer), status) && slp_told(sl_wait_all(), status) &&
	       slp_told(sl_checkpoint_load(path, .trainer = trainer, SL_METRICS(metric), .step = &step), status);
}

static bool checkpoints(struct slp_result *r, enum sl_status *status)
{
	bool ok = false;
	sl_block *net = network();
	sl_trainer *trainer = NULL;
	sl_metric *metric = sl_mean_new();
	SL_SCOPE {
		sl_seed(7);
		if (!slp_there(net, status) || !slp_there(metric, status) || !slp_told(sl_initialize(net), status))
			break;
		if (!slp_there(trainer = sl_trainer_new(net, sl_adam(.average = 0.5)), status)) break;
		ok = train(net, trainer, r, status) && write_and_read(trainer, metric, status) &&
		     train(net, trainer, r, status);
	}
	sl_metric_free(metric);
	sl_trainer_free(trainer);
	sl_block_free(net);
	return ok;
}

/* ---- an operation of the program's own --------------------------------------------------------------------------- */

static enum sl_status square_kernel(const struct sl_op_call *c)
{
	const float *x = c->in[0].data;
	float *y = c->out[0].data;
	for (int64_t i = 0; i < sl_shape_size(c->in[0].shape); i++) y[i] = x[i] * x[i];
	return SL_OK;
}

static enum sl_status square_gradient(const struct sl_op_gradient *g)
{
	g->din[0] = sl_mul_at(g->at, g->dout[0], sl_mul_scalar_at(g->at, g->in[0], 2));
	return g->din[0] ? SL_OK : sl_error();
}

static const sl_op *square_op;

static sl_tensor *squared(sl_tensor *x)
{
	return sl_op_apply(square_op, &x, 1);
}

/* test_own has each allocation of sl_op_register fail. */
static void register_square(void)
{
	square_op = sl_op_register(.name = "alloc_square", .args = "x", .nin = 1, .saves = SL_SAVE_IN(0),
	                           .cpu = square_kernel, .gradient = square_gradient);
	CHECK(square_op != NULL);
}

static bool own_operation(struct slp_result *r, enum sl_status *status)
{
	bool ok = false;
	sl_block *net = sl_sequential(sl_lambda("square", squared), sl_dense(2, .in_units = 3));
	SL_SCOPE {
		sl_tensor *x = sl_arange(0, 6, 1), *loss = NULL, *gradient = NULL;
		sl_seed(7);
		if (!slp_there(net, status) || !slp_told(sl_initialize(net), status)) break;
		if (!slp_told(sl_hybridize(net), status)) break;
		x = sl_reshape(x, SL_SHAPE(2, 3));
		if (!slp_there(x, status) || !slp_told(sl_attach_grad(x), status)) break;
		SL_RECORD
			loss = sl_sum(sl_add(sl_sum(sl_forward(net, x)), sl_sum(squared(x))));
		if (!slp_there(loss, status) || !slp_told(sl_backward(loss), status)) break;
		if (!slp_there(gradient = sl_grad(x), status)) break;
		r->loss = (float)sl_item(loss);
		r->weight = (float)sl_item(sl_sum(gradient));
		ok = (r->loss == r->loss && r->weight == r->weight) || slp_told(sl_error(), status);
	}
	sl_block_free(net);
	return ok;
}

/* What is printed about a network and a run. */
static bool texts(struct slp_result *r, enum sl_status *status)
{
	bool ok = false;
	FILE *f = fopen("/dev/null", "w");
	sl_block *net = network();
	sl_profile_start();
	SL_SCOPE {
		sl_seed(7);
		if (!slp_there(net, status) || !slp_told(sl_initialize(net), status)) break;
		if (!slp_told(sl_summary(f, net, SL_SHAPE(4, 1, 8, 8)), status)) break;
		sl_tensor *y = sl_forward(net, image());
		if (!slp_there(y, status) || !slp_told(sl_fprint(f, y), status)) break;
		r->loss = (float)sl_item(sl_sum(y));
		ok = r->loss == r->loss || slp_told(sl_error(), status);
		sl_profile_print(f);
		ok = ok && slp_told(sl_error(), status);
	}
	sl_profile_stop();
	sl_block_free(net);
	if (f) fclose(f);
	return ok;
}

/* ---- suite ------------------------------------------------------------------------------------------------------- */

static void write_images(void)
{
	if (!square_op) register_square();
	struct idx_bytes x = idx_images(IMAGES), y = idx_labels(IMAGES);
	slp_write_scratch("x", x.data, x.size);
	slp_write_scratch("y", y.data, y.size);
}

#ifdef HAVE_ONNX
#define ONNX(X) X(onnx, 1)
#else
#define ONNX(X)
#endif
/* Name, teams. */
/* clang-format off */
#define PROGRAMS(X)                                                                                                    \
	X(eager, 1) X(hybrid, 1) X(compiled, 1) X(files, 1) X(driver, 1) X(recomputed, 1) X(shards, 2) X(shards_by_call, 2)             \
	X(checkpoints, 1) X(own_operation, 1) X(texts, 1) ONNX(X)
/* clang-format on */
#define X(name, teams)                                                                                                 \
	static void test_##name(void)                                                                                  \
	{                                                                                                              \
		slp_fail_allocations(&(struct slp_program){#name, name, teams}, first, step);                          \
	}
PROGRAMS(X)
#undef X

static const struct slp_test tests[] = {
#define X(name, teams) {#name, test_##name},
        PROGRAMS(X)
#undef X
                {NULL, NULL}};
static const struct slp_suite suites[] = {{"alloc", tests, slp_scratch_make, slp_scratch_remove, write_images, slp_end},
                                          {0}};

int main(int argc, char **argv)
{
	bool all = argc > 1 && !strncmp(argv[1], "all", 3);
	if (all) step = 1, sscanf(argv[1], "all/%ld+%ld", &step, &first);
	if (first < 1 || step < 0) return 2;
	return slp_test_main(all ? argc - 1 : argc, all ? argv + 1 : argv, suites);
}
