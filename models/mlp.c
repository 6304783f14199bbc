/* A perceptron of five layers, 784–512–512–512–512–10, trained on Fashion-MNIST: operations so small that the
 * price of a call dominates.  It runs imperatively, hybridised, or with each step as one program: compare the times and
 * the tasks of a batch. */
#include "driver/block_training.h"
#include "driver/networks.h"

struct options {
	struct drv_options common;
	struct drv_train_options train;
	struct drv_block_training how;
};

enum { KEY_OPTIMIZER = 'M' + 256 };

/* ---- the command line -------------------------------------------------------------------------------------------- */

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &o->common;
		state->child_inputs[1] = &o->train;
		return 0;
	case 'm': o->how.mode = drv_mode_parse(state, arg); return 0;
	case KEY_OPTIMIZER: o->how.optimizer = drv_optimizer_parse(state, arg); return 0;
	case ARGP_KEY_END:
		if (o->common.ndevices > 1) argp_error(state, "--device: name one device only");
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option options[] = {
        {"mode", 'm', "MODE", 0,
         "How to run (default: step): eager, call by call; hybrid, forward and backward as programs; step, a whole "
         "step as one program",
         1},
        DRV_OPTIMIZER_OPTION(KEY_OPTIMIZER, 1),
        {0},
};

static const struct argp argp = {
        .options = options,
        .parser = parse_option,
        .children = drv_train_children,
        .doc = "Trains a perceptron of five layers, 784-512-512-512-512-10, on Fashion-MNIST: imperatively, "
               "hybridised, "
               "or with each step as one program.\v" DRV_TRAIN_EXIT_STATUS "\n\n"
               "Example, the price of a step in tasks and time:\n  mlp --mode eager --batch-size 64 --epochs 1\n  "
               "mlp --mode step --batch-size 64 --epochs 1",
};

int main(int argc, char **argv)
{
	struct options o = {.how = {.network = net_mlp5, .init = sl_xavier_init(), .mode = DRV_STEP}};
	drv_parse(&argp, argc, argv, &o);
	bool ready = drv_train_ready(&o.common, &o.train);
	return drv_stop(&o.common, ready ? drv_train_block("mlp", "MLP", &o.common, &o.train, &o.how) : DRV_ERROR);
}
