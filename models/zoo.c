/* The networks of Gluon's model zoo: trained on images of several kinds, or with trained parameters, to classify an
 * image or to be exported. */
#include <string.h>

#include <starling/io.h>

#include "driver/block_training.h"
#include "zoo_data.h"
#include "zoo_networks.h"

enum { IMAGENET_CLASSES = 1000, SAID = 5 };

struct options {
	struct drv_block_training how; /* first: the argument of build */
	struct drv_options common;
	struct drv_train_options train;
	const struct zoo_network *network;
	const char *image, *save, *export, *labels;
	int64_t classes;
	struct zoo_data data;
	sl_block *trained; /* the network after training */
	bool list;
};

/* ---- the command line -------------------------------------------------------------------------------------------- */

enum {
	KEY_NETWORK = 0x200,
	KEY_LIST,
	KEY_PARAMS,
	KEY_SAVE,
	KEY_EXPORT,
	KEY_IMAGE,
	KEY_LABELS,
	KEY_CLASSES,
	KEY_SIZE,
	KEY_OPTIMIZER
};

static const struct argp_option options[] = {
        {"network", KEY_NETWORK, "NAME", 0, "The network, by its name in Gluon's model zoo (default: resnet18_v1)", 1},
        {"list", KEY_LIST, NULL, 0, "Print the names of all networks and the sizes of images they take, and exit", 1},
        {"mode", 'm', "MODE", 0,
         "How to train (default: step): eager, call by call; hybrid, forward and backward as programs; step, a whole "
         "step as one program",
         1},
        DRV_OPTIMIZER_OPTION(KEY_OPTIMIZER, 1),
        {"size", KEY_SIZE, "N", 0,
         "Resize images to N x N (default: that of Fashion-MNIST and CIFAR-10, or the smallest that the network takes; "
         "of others, the size that it was made for)",
         1},
        {"params", KEY_PARAMS, "FILE", 0,
         "Start with the parameters in this file: .safetensors, or .params as Gluon's save_parameters writes it", 3},
        {"save", KEY_SAVE, "FILE", 0, "Write the parameters to this file after training: .params or .safetensors", 3},
        {"image", KEY_IMAGE, "FILE", 0, "Do not train, print the most likely classes of this PNG or JPEG image", 3},
        {"labels", KEY_LABELS, "FILE", 0, "Names of the classes, a line each, for --image (default: numbers)", 3},
        {"export", KEY_EXPORT, "PREFIX", 0,
         "Do not train, write PREFIX-symbol.json and PREFIX-0000.params, for sl-run and MXNet", 3},
        {"classes", KEY_CLASSES, "N", 0, "Number of classes without data to train with (default: 1000)", 3},
        {0},
};

static void complete(struct argp_state *state, const struct options *o)
{
	if (o->image && !o->how.params) argp_error(state, "--image: needs --params FILE");
	if (o->labels && !o->image) argp_error(state, "--labels: needs --image FILE");
	if (o->data.size && o->data.size < o->network->smallest)
		argp_error(state, "--size: %s takes images of at least %d x %d", o->network->name, o->network->smallest,
		           o->network->smallest);
}

static void choose(struct argp_state *state, struct options *o, const char *name)
{
	o->network = zoo_find(name);
	if (!o->network) argp_error(state, "--network: there is no \"%s\"; --list prints all names", name);
}

static error_t parse_files(int key, char *arg, struct options *o)
{
	switch (key) {
	case KEY_PARAMS: o->how.params = arg; return 0;
	case KEY_SAVE: o->save = arg; return 0;
	case KEY_EXPORT: o->export = arg; return 0;
	case KEY_IMAGE: o->image = arg; return 0;
	case KEY_LABELS: o->labels = arg; return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &o->common;
		state->child_inputs[1] = &o->train;
		return 0;
	case KEY_NETWORK: choose(state, o, arg); return 0;
	case KEY_LIST: o->list = true; return 0;
	case 'm': o->how.mode = drv_mode_parse(state, arg); return 0;
	case KEY_OPTIMIZER: o->how.optimizer = drv_optimizer_parse(state, arg); return 0;
	case KEY_SIZE: o->data.size = drv_int(state, "--size", arg, 1, 1 << 13); return 0;
	case KEY_CLASSES: o->classes = drv_int(state, "--classes", arg, 1, 1 << 20); return 0;
	case ARGP_KEY_END: complete(state, o); return 0;
	default: return parse_files(key, arg, o);
	}
}

static const struct argp argp = {
        .options = options,
        .parser = parse_option,
        .children = drv_train_children,
        .doc = "Trains a network of Gluon's model zoo on Fashion-MNIST, on CIFAR-10 (--data names the folder of its "
               "binary version), or on a folder of images: DIR/train and DIR/test, with a folder for each "
               "class.\v" DRV_TRAIN_EXIT_STATUS "\n\n"
               "Examples:\n  zoo --network mobilenet0.25 --epochs 1 --limit 6000\n"
               "  zoo --network resnet50_v1 --data cifar-10-batches-bin --save net.params\n"
               "  zoo --network resnet50_v2 --params net.params --image cat.jpg",
};

/* ---- without training -------------------------------------------------------------------------------------------- */

static int list(void)
{
	printf("%-18s %6s %9s  %s\n", "network", "images", "at least", "paper");
	for (int i = 0; zoo_network(i); i++) {
		const struct zoo_network *n = zoo_network(i);
		printf("%-18s %6d %9d  %s\n", n->name, n->size, n->smallest, n->paper);
	}
	return DRV_OK;
}

static sl_block *ready(const struct options *o)
{
	sl_block *net = zoo_build(o->network, o->classes);
	bool ok = net && sl_initialize(net, .init = sl_he_init(), .devices = o->common.devices,
	                               .ndevices = o->common.ndevices) == SL_OK;
	ok = ok && (!o->how.params || sl_load_params(net, o->how.params) == SL_OK) && sl_hybridize(net) == SL_OK;
	if (ok) return net;
	sl_block_free(net);
	return NULL;
}

/* The name of a class: its line of the file, or its number. */
static void print_class(const struct options *o, int64_t class, double probability)
{
	char line[256] = "";
	FILE *f = o->labels ? fopen(o->labels, "r") : NULL;
	for (int64_t i = 0; f && i <= class; i++)
		if (!fgets(line, sizeof line, f)) *line = 0;
	if (f) fclose(f);
	line[strcspn(line, "\r\n")] = 0;
	if (*line) drv_print(&o->common, "%.4f  %s\n", probability, line);
	else drv_print(&o->common, "%.4f  class %lld\n", probability, (long long)class);
}

static bool classify(const struct options *o, sl_block *net, json_t *results)
{
	int64_t size = o->data.size ? o->data.size : o->network->size;
	sl_tensor *x = zoo_image(o->image, size), *order;
	if (!x) return false;
	sl_tensor *p = sl_softmax(sl_forward(net, sl_place(x, o->common.devices[0])), 1);
	int said = o->classes < SAID ? (int)o->classes : SAID;
	float probability[SAID];
	int32_t class[SAID];
	sl_tensor *best = sl_topk(p, said, 1, &order);
	if (!best || sl_read(best, probability, (size_t)said * sizeof *probability) != SL_OK) return false;
	if (sl_read(sl_cast(order, SL_INT32), class, (size_t)said * sizeof *class) != SL_OK) return false;
	json_t *all = json_array();
	for (int i = 0; i < said; i++) {
		print_class(o, class[i], probability[i]);
		json_array_append_new(all, json_pack("{s:i, s:f}", "class", class[i], "probability", probability[i]));
	}
	json_object_set_new(results, "classes", all);
	return true;
}

static int use(const struct options *o)
{
	json_t *results = drv_json_new("zoo", &o->common);
	bool ok = false;
	SL_SCOPE {
		int64_t size = o->data.size ? o->data.size : o->network->size;
		sl_block *net = ready(o);
		ok = net && (!o->image || classify(o, net, results));
		if (ok && o->export) ok = sl_export(net, o->export, SL_SHAPES(SL_SHAPE(1, 3, size, size))) == SL_OK;
		ok = drv_settle(ok);
		sl_block_free(net);
	}
	json_object_set_new(results, "network", json_string(o->network->name));
	return drv_finish(&o->common, results, ok);
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

static bool open_data(struct drv_training *t, sl_dataset *sets[2])
{
	struct options *o = t->model;
	if (!zoo_open(t, &o->data, o->network, sets)) return false;
	o->classes = sl_dataset_classes(sets[0]);
	return true;
}

static sl_block *build(struct drv_block_training *how)
{
	struct options *o = (struct options *)how;
	return o->trained = sl_block_retain(zoo_build(o->network, o->classes));
}

static int train(struct options *o)
{
	int status = drv_train_block("zoo", o->network->name, &o->common, &o->train, &o->how);
	if (status == DRV_OK && o->save && sl_save_params(o->trained, o->save) != SL_OK) status = DRV_ERROR;
	sl_block_free(o->trained);
	return drv_sync() ? status : DRV_ERROR;
}

static int run(struct options *o)
{
	if (!drv_train_ready(&o->common, &o->train)) return DRV_ERROR;
	return o->image || o->export ? use(o) : train(o);
}

int main(int argc, char **argv)
{
	struct options o = {.train = {.lr = 0.05},
	                    .how = {.build = build, .open = open_data, .init = sl_he_init(), .mode = DRV_STEP},
	                    .network = zoo_find("resnet18_v1"),
	                    .classes = IMAGENET_CLASSES};
	drv_parse(&argp, argc, argv, &o);
	return o.list ? list() : drv_stop(&o.common, run(&o));
}
