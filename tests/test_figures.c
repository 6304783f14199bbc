/* Options that are figures: what is no number, not finite or, where that makes no sense, negative is SL_EINVAL at the
 * call, which names the figure; what makes sense is taken. */
#include <math.h>
#include <string.h>

#include "check.h"

static sl_tensor *w, *g, *m, *v, *x, *rows, *channels, *labels, *words, *target;
static sl_block *net;

#define ROW(id, call)                                                                                                  \
	static void id(double f)                                                                                       \
	{                                                                                                              \
		call;                                                                                                  \
	}
/* clang-format off */
#define ONE(t) (sl_tensor *[]){t}
/* clang-format on */
#define LAYER(id, call) ROW(id, sl_block_free(call))
#define TRAINER(id, ...) ROW(id, sl_trainer_free(sl_trainer_new(net, __VA_ARGS__)))

ROW(sgd_lr, sl_sgd_update(ONE(w), ONE(g), NULL, 1, .lr = f))
ROW(sgd_decay, sl_sgd_update(ONE(w), ONE(g), NULL, 1, .lr = 0.1, .weight_decay = f))
ROW(sgd_rescale, sl_sgd_update(ONE(w), ONE(g), NULL, 1, .lr = 0.1, .rescale = f))
ROW(sgd_clip_norm, sl_sgd_update(ONE(w), ONE(g), NULL, 1, .lr = 0.1, .clip_norm = f))
ROW(sgd_clip_value, sl_sgd_update(ONE(w), ONE(g), NULL, 1, .lr = 0.1, .clip_value = f))
ROW(sgd_momentum, sl_sgd_update(ONE(w), ONE(g), ONE(m), 1, .lr = 0.1, .momentum = f))
ROW(adam_lr, sl_adam_update(ONE(w), ONE(g), ONE(m), ONE(v), 1, .step = 1, .lr = f))
ROW(adam_beta1, sl_adam_update(ONE(w), ONE(g), ONE(m), ONE(v), 1, .step = 1, .lr = 0.1, .beta1 = f))
ROW(adam_beta2, sl_adam_update(ONE(w), ONE(g), ONE(m), ONE(v), 1, .step = 1, .lr = 0.1, .beta2 = f))
ROW(adam_eps, sl_adam_update(ONE(w), ONE(g), ONE(m), ONE(v), 1, .step = 1, .lr = 0.1, .eps = f))
ROW(adam_decay, sl_adam_update(ONE(w), ONE(g), ONE(m), ONE(v), 1, .step = 1, .lr = 0.1, .weight_decay = f))
ROW(rms_lr, sl_rmsprop_update(ONE(w), ONE(g), ONE(v), NULL, 1, .lr = f))
ROW(rms_alpha, sl_rmsprop_update(ONE(w), ONE(g), ONE(v), NULL, 1, .lr = 0.1, .alpha = f))
ROW(rms_eps, sl_rmsprop_update(ONE(w), ONE(g), ONE(v), NULL, 1, .lr = 0.1, .eps = f))
ROW(rms_momentum, sl_rmsprop_update(ONE(w), ONE(g), ONE(v), ONE(m), 1, .lr = 0.1, .momentum = f))

TRAINER(trainer_lr, sl_sgd(.lr = f))
TRAINER(trainer_momentum, sl_sgd(.momentum = f))
TRAINER(trainer_decay, sl_sgd(.weight_decay = f))
TRAINER(trainer_clip_norm, sl_sgd(.clip_norm = f))
TRAINER(trainer_clip_value, sl_sgd(.clip_value = f))
TRAINER(trainer_beta1, sl_adam(.beta1 = f))
TRAINER(trainer_beta2, sl_adamw(.beta2 = f))
TRAINER(trainer_eps, sl_adam(.eps = f))
TRAINER(trainer_alpha, sl_rmsprop(.alpha = f))
TRAINER(trainer_factor, sl_sgd(.schedule = {SL_STEPS, .every = 1, .factor = f}))
TRAINER(trainer_final, sl_sgd(.schedule = {SL_COSINE, .total = 5, .final_lr = f}))
TRAINER(trainer_power, sl_sgd(.schedule = {SL_POLYNOMIAL, .total = 5, .power = f}))

LAYER(batch_norm_layer_eps, sl_batch_norm_layer(.eps = f))
LAYER(batch_norm_layer_momentum, sl_batch_norm_layer(.momentum = f))
LAYER(layer_norm_layer_eps, sl_layer_norm_layer(.eps = f))
LAYER(dropout_layer, sl_dropout_layer(f))
LAYER(rnn_dropout, sl_rnn(4, .layers = 2, .dropout = f))
LAYER(lstm_dropout, sl_lstm(4, .layers = 2, .dropout = f))
LAYER(gru_dropout, sl_gru(4, .layers = 2, .dropout = f))

ROW(dropout, sl_dropout(x, f))
ROW(uniform_low, sl_uniform(SL_SHAPE(2), f, 1))
ROW(uniform_high, sl_uniform(SL_SHAPE(2), -2, f))
ROW(normal_mean, sl_normal(SL_SHAPE(2), f, 1))
ROW(normal_sigma, sl_normal(SL_SHAPE(2), 0, f))
ROW(arange_start, sl_arange(f, 1, 1))
ROW(arange_stop, sl_arange(0, f, 1))
ROW(arange_step, sl_arange(0, 1, f))
ROW(leaky_relu, sl_leaky_relu(x, f))
ROW(elu, sl_elu(x, f))
ROW(batch_norm_eps, sl_batch_norm(x, channels, channels, channels, channels, .eps = f))
ROW(batch_norm_momentum, sl_batch_norm(x, channels, channels, channels, channels, .momentum = f))
ROW(layer_norm_eps, sl_layer_norm(x, channels, channels, .eps = f))
ROW(group_norm_eps, sl_group_norm(x, 1, channels, channels, .eps = f))
ROW(instance_norm_eps, sl_instance_norm(rows, labels, labels, .eps = f))
ROW(rms_norm_eps, sl_rms_norm(x, NULL, .eps = f))
ROW(huber_delta, sl_huber_loss(x, x, .delta = f))
ROW(label_smoothing, sl_cross_entropy(x, words, .label_smoothing = f))
ROW(cosine_margin, sl_cosine_embedding_loss(x, x, target, f))
ROW(attention_scale, sl_scaled_dot_product_attention(x, x, x, .scale = f))
static void split_weights(double f)
{
	sl_tensor *parts[2];
	sl_device here[] = {sl_cpu(0), sl_cpu(0)};
	sl_split_and_load(x, here, 2, parts, .weights = (double[]){1, f});
}

static const struct row {
	const char *name;
	void (*call)(double);
	const char *said;
	bool may_be_negative;
} table[] = {
/* clang-format off */
#define R(id, ...) {#id, id, __VA_ARGS__}
        /* clang-format on */
        R(sgd_lr, "lr", false),
        R(sgd_decay, "weight_decay", false),
        R(sgd_rescale, "rescale", true),
        R(sgd_clip_norm, "clip_norm", false),
        R(sgd_clip_value, "clip_value", false),
        R(sgd_momentum, "momentum", false),
        R(adam_lr, "lr", false),
        R(adam_beta1, "beta1", false),
        R(adam_beta2, "beta2", false),
        R(adam_eps, "eps", false),
        R(adam_decay, "weight_decay", false),
        R(rms_lr, "lr", false),
        R(rms_alpha, "alpha", false),
        R(rms_eps, "eps", false),
        R(rms_momentum, "momentum", false),
        R(trainer_lr, ".lr", false),
        R(trainer_momentum, ".momentum", false),
        R(trainer_decay, ".weight_decay", false),
        R(trainer_clip_norm, ".clip_norm", false),
        R(trainer_clip_value, ".clip_value", false),
        R(trainer_beta1, ".beta1", false),
        R(trainer_beta2, ".beta2", false),
        R(trainer_eps, ".eps", false),
        R(trainer_alpha, ".alpha", false),
        R(trainer_factor, ".factor", false),
        R(trainer_final, ".final_lr", false),
        R(trainer_power, ".power", false),
        R(batch_norm_layer_eps, "eps", false),
        R(batch_norm_layer_momentum, "momentum", false),
        R(layer_norm_layer_eps, "eps", false),
        R(dropout_layer, "probability", false),
        R(rnn_dropout, "dropout", false),
        R(lstm_dropout, "dropout", false),
        R(gru_dropout, "dropout", false),
        R(dropout, "probability", false),
        R(uniform_low, "uniform", true),
        R(uniform_high, "uniform", true),
        R(normal_mean, "normal", true),
        R(normal_sigma, "normal", false),
        R(arange_start, "sl_arange", true),
        R(arange_stop, "sl_arange", true),
        R(arange_step, "sl_arange", true),
        R(leaky_relu, "slope", true),
        R(elu, "alpha", true),
        R(batch_norm_eps, "eps", false),
        R(batch_norm_momentum, "momentum", false),
        R(layer_norm_eps, "eps", false),
        R(group_norm_eps, "eps", false),
        R(instance_norm_eps, "eps", false),
        R(rms_norm_eps, "eps", false),
        R(huber_delta, "delta", false),
        R(label_smoothing, "label_smoothing", false),
        R(cosine_margin, "margin", true),
        R(attention_scale, "scale", true),
        R(split_weights, ".weights", false),
};

static void make_arguments(void)
{
	w = sl_ones(SL_SHAPE(2));
	g = sl_ones(SL_SHAPE(2));
	m = sl_ones(SL_SHAPE(2));
	v = sl_ones(SL_SHAPE(2));
	x = sl_ones(SL_SHAPE(4, 4));
	channels = sl_ones(SL_SHAPE(4));
	labels = sl_ones(SL_SHAPE(2));
	rows = sl_ones(SL_SHAPE(3, 2, 5));
	words = sl_zeros(SL_SHAPE(4), .dtype = SL_INT32);
	target = sl_ones(SL_SHAPE(4));
	net = sl_sequential(sl_dense(2));
}

static void check_refused(const struct row *row, double f)
{
	row->call(f);
	CHECK_SAYING(sl_error() == SL_EINVAL && strstr(sl_error_message(), row->said) &&
	                     strstr(sl_error_message(), "test_figures.c:"),
	             "%s = %g: %s", row->name, f, sl_error() == SL_OK ? "taken" : sl_error_message());
	sl_error_clear();
}

static void test_figures(void)
{
	slp_begin((struct sl_config){.teams = 1});
	SL_SCOPE {
		make_arguments();
		for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
			check_refused(&table[i], NAN);
			check_refused(&table[i], INFINITY);
			check_refused(&table[i], -INFINITY);
			if (!table[i].may_be_negative) check_refused(&table[i], -1);
			table[i].call(0.5);
			CHECK_SAYING(sl_wait_all() == SL_OK, "%s = 0.5: %s", table[i].name, sl_error_message());
		}
	}
	sl_block_free(net);
	slp_end_well();
}

static const struct slp_test tests[] = {{"figures", test_figures}, {0}};

int main(int argc, char **argv)
{
	return slp_test_main(argc, argv,
	                     (const struct slp_suite[]){{.name = "figures", .tests = tests, .after = slp_end}, {0}});
}
