/* Trains a network of blocks on one device, or in shards on several. */
#ifndef MODELS_DRIVER_BLOCK_TRAINING_H
#define MODELS_DRIVER_BLOCK_TRAINING_H

#include "training.h"

/* Modes: call by call; forward and backward compiled; each step as one program. */
#define DRV_MODES(X)                                                                                                   \
	X(EAGER, "eager", "call by call")                                                                              \
	X(HYBRID, "hybrid", "forward and backward as programs")                                                        \
	X(STEP, "step", "a whole step as one program")
enum drv_mode {
#define X(NAME, name, doc) DRV_##NAME,
	DRV_MODES(X)
#undef X
	        DRV_MODE_COUNT
};
extern const char *const drv_mode_names[DRV_MODE_COUNT];

struct drv_block_training {
	sl_block *(*network)(void);
	sl_block *(*build)(struct drv_block_training *how); /* instead of network, if that is NULL */
	bool (*open)(struct drv_training *t, sl_dataset *sets[2]);
	const char *params; /* the file with first values; NULL: they are drawn */
	struct sl_initializer init;
	enum drv_mode mode;
	enum sl_optimizer_kind optimizer; /* by default SGD */
	int shards;                       /* of a batch; 0: one a device */
	bool by_speed;                    /* rows in proportion to the devices' measured speed */
	/* Set by training. */
	sl_block *net;
	sl_trainer *trainer;
	sl_step *step;
	sl_device *where; /* of each shard */
	sl_balance *balance;
	int64_t batches;
	int64_t rows[DRV_MAX_DEVICES]; /* of each shard, as last printed */
};

enum drv_mode drv_mode_parse(struct argp_state *state, const char *text);
/* --optimizer, for a driver's options; its parser gets the kind by drv_optimizer_parse. */
#define DRV_OPTIMIZER_OPTION(key, group)                                                                               \
	{                                                                                                              \
		"optimizer", key, "NAME", 0,                                                                           \
		        "The optimiser (default: sgd); a wrong name lists them.  Without --lr, others than sgd use "   \
		        "their own learning rate",                                                                     \
		        group                                                                                          \
	}
enum sl_optimizer_kind drv_optimizer_parse(struct argp_state *state, const char *text);
int drv_train_block(const char *program, const char *title, const struct drv_options *common,
                    const struct drv_train_options *options, struct drv_block_training *how);

#endif
