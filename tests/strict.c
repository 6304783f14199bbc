/* The public headers in C programs whose compilers warn about much: each kind of macro, with options and without.
 * headers.sh compiles it by several standards; it is not run. */
#include <starling.h>
#include <starling/dist.h>
#include <starling/own.h>

static bool darker(void *arg, struct sl_sample *s)
{
	(void)arg;
	*(float *)s->x /= 2;
	return true;
}

static sl_dataset *data(void)
{
	static float values[] = {1, 2, 3, 4, 5, 6};
	const struct sl_array x = {values, SL_SHAPE(3, 2), SL_FLOAT32}, none = {NULL, SL_SCALAR, SL_DTYPE_DEFAULT};
	sl_dataset *d = sl_dataset_concat(sl_dataset_arrays(x, none), sl_dataset_csv("a.csv", .regression = true));
	return sl_dataset_transform(d, sl_random_flip(), sl_random_crop(.height = 2, .width = 2),
	                            sl_map(.map = darker));
}

static sl_block *network(void)
{
	sl_block *net = sl_sequential(sl_dense(4, .activation = SL_RELU), sl_dropout_layer(0.5), sl_dense(1));
	sl_initialize(net);
	sl_hybridize(net, .static_shape = true);
	sl_load_params(net, "a.params");
	sl_load_params(net, "a.safetensors", .lenient = true,
	               SL_PARAM_NAMES({"fc1.*", "0.*"}, {"fc2.*", "1.*", .transposed = true}, {"*.batches"}));
	sl_export(net, "net", SL_SHAPES(SL_SHAPE(1, 2)));
	sl_block_free(sl_import("net-symbol.json", SL_NAMES("data"), "net-0000.params"));
	sl_block_free(sl_import_onnx("net.onnx", SL_INPUTS("a", "b"), SL_OUTPUTS("y")));
	return net;
}

static void train(sl_block *net, sl_dataset *d)
{
	sl_trainer *trainer = sl_trainer_new(net, sl_adam(.lr = 0.01, .schedule = {.kind = SL_COSINE, .total = 9}));
	sl_loader *loader = sl_loader_new(d, .batch_size = 2, .shuffle = true);
	struct sl_batch b;
	while (sl_loader_next(loader, &b))
		SL_SCOPE {
			sl_tensor *loss = NULL;
			SL_RECORD
				loss = sl_l2_loss(sl_forward(net, b.x), b.y);
			sl_backward(loss);
			sl_trainer_step(trainer, 2);
			SL_AUTOCAST(SL_BFLOAT16)
			sl_max(loss, SL_AXES(0), .keepdims = true);
			SL_INFERENCE
				sl_sum(sl_concat(SL_ARRAY(sl_tensor *, b.x, b.x), 2, 0));
		}
	sl_checkpoint_save("a.safetensors", .net = net, .trainer = trainer);
	sl_loader_free(loader);
	sl_trainer_free(trainer);
}

static void define(void)
{
	sl_tensor *a = sl_var("a", SL_VAR_SHAPE(2, 2)), *b = sl_var("b");
	sl_graph *graph = sl_graph_define(sl_add(a, b), sl_dot(a, b, .ta = true));
	sl_plan_free(sl_compile(graph));
	sl_graph_free(graph);
}

int main(void)
{
	if (sl_init(&(struct sl_config){.teams = 1}) != SL_OK) sl_error_raise(SL_EINVAL, "no engine");
	sl_block *net = network();
	sl_dataset *d = data();
	train(net, d);
	define();
	sl_dataset_free(d);
	sl_block_free(net);
	sl_shutdown();
	return sl_dist_rank() || !sl_op_find("add");
}
