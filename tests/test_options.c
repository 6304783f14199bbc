/* Options of functions, layers, optimisers, training and data: each field of SL_DEFAULTS_… is given 0, a number next to
 * it, a negative one, NaN and the largest.  Each has the effect of its value, or is refused by name; what is left out,
 * and 0 in a structure that a program fills itself, have the default of the list. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <starling.h>

#include "check.h"
#include "optimizer.h"
#include "options.h"

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#ifdef HAVE_PNG
#include <png.h>
#endif

static sl_tensor *w, *g, *m, *v, *x, *image, *kernel, *row, *row_kernel, *gamma_, *beta;
static char csv[64], folder[64], tokens[64];

static void make_arguments(void)
{
	w = sl_from(SL_ARRAY(double, 1, 2, 3), SL_SHAPE(3), .dtype = SL_FLOAT64);
	g = sl_from(SL_ARRAY(double, 0.5, -4, 0.25), SL_SHAPE(3), .dtype = SL_FLOAT64);
	m = sl_full(SL_SHAPE(3), 0.3, .dtype = SL_FLOAT64);
	v = sl_full(SL_SHAPE(3), 0.2, .dtype = SL_FLOAT64);
	x = sl_reshape(sl_arange(0, 12, 1, .dtype = SL_FLOAT64), SL_SHAPE(3, 4));
	image = sl_reshape(sl_sin(sl_arange(0, 144, 1, .dtype = SL_FLOAT64)), SL_SHAPE(1, 4, 6, 6));
	kernel = sl_reshape(sl_sin(sl_arange(3, 75, 1, .dtype = SL_FLOAT64)), SL_SHAPE(4, 2, 3, 3));
	row = sl_reshape(image, SL_SHAPE(1, 4, 36));
	row_kernel = sl_reshape(sl_sin(sl_arange(3, 27, 1, .dtype = SL_FLOAT64)), SL_SHAPE(4, 2, 3));
	gamma_ = sl_full(SL_SHAPE(4), 1.5, .dtype = SL_FLOAT64);
	beta = sl_full(SL_SHAPE(4), 0.25, .dtype = SL_FLOAT64);
}

/* One number of all elements, in which none cancels another; NaN after a mistake. */
static double figure(sl_tensor *t)
{
	sl_tensor *flat = t ? sl_reshape(t, SL_SHAPE(-1)) : NULL;
	if (!flat) return NAN;
	sl_tensor *weights =
	        sl_add_scalar(sl_arange(0, (double)sl_tensor_size(t), 1, .dtype = sl_tensor_dtype(t)), 1.5);
	return sl_item(sl_sum(sl_mul(flat, weights)));
}

/* ---- a row for each field: what it makes of a value, of all that is needed for the field to matter -------------- */

static double sgd(struct sl_sgd_opts o)
{
	sl_tensor *p = sl_clone(w);
	o.lr = 0.1;
	return sl_sgd_update_at(SL_HERE, &p, &g, NULL, 1, o) == SL_OK ? figure(p) : NAN;
}
static double adam(struct sl_adam_opts o)
{
	sl_tensor *p = sl_clone(w), *a = sl_clone(m), *b = sl_clone(v);
	o.lr = 0.1;
	o.step = 2;
	return sl_adam_update_at(SL_HERE, &p, &g, &a, &b, 1, o) == SL_OK ? figure(p) : NAN;
}
/* Of gradients so small that eps matters. */
static double adam_eps(struct sl_adam_opts o)
{
	sl_tensor *p = sl_clone(w), *a = sl_clone(m), *b = sl_mul_scalar(v, 1e-12), *small = sl_mul_scalar(g, 1e-8);
	o.lr = 0.1;
	o.step = 2;
	return sl_adam_update_at(SL_HERE, &p, &small, &a, &b, 1, o) == SL_OK ? figure(p) : NAN;
}
static double rmsprop(struct sl_rmsprop_opts o)
{
	sl_tensor *p = sl_clone(w), *a = sl_clone(v);
	o.lr = 0.1;
	return sl_rmsprop_update_at(SL_HERE, &p, &g, &a, NULL, 1, o) == SL_OK ? figure(p) : NAN;
}
static double rmsprop_eps(struct sl_rmsprop_opts o)
{
	sl_tensor *p = sl_clone(w), *a = sl_mul_scalar(v, 1e-12), *small = sl_mul_scalar(g, 1e-8);
	o.lr = 100;
	return sl_rmsprop_update_at(SL_HERE, &p, &small, &a, NULL, 1, o) == SL_OK ? figure(p) : NAN;
}
#define OPTIMISER_FIELDS(X, type, call)                                                                                \
	X(type, rescale, call) X(type, clip_norm, call) X(type, clip_value, call) X(type, lr_scale, call)

static double conv(struct sl_conv2d_opts o)
{
	if (o.groups == 1 || !o.as_written) o.groups = 2; /* the kernel is of two */
	return figure(sl_conv2d_at(SL_HERE, image, kernel, NULL, o));
}
static double pool(struct sl_pool2d_opts o)
{
	o.kernel[0] = 2;
	return figure(sl_pool2d_at(SL_HERE, image, o));
}
static double huber(struct sl_huber_loss_opts o)
{
	return figure(sl_huber_loss_at(SL_HERE, x, sl_mul_scalar(x, 3), o));
}
/* The running mean, too. */
static double batch_norm(struct sl_batch_norm_opts o)
{
	sl_tensor *mean = sl_clone(beta), *var = sl_clone(gamma_), *y = NULL;
	SL_TRAINING
		y = sl_batch_norm_at(SL_HERE, sl_mul_scalar(x, 1e-3), gamma_, beta, mean, var, o);
	return figure(y) + figure(mean);
}
static double layer_norm(struct sl_layer_norm_opts o)
{
	return figure(sl_layer_norm_at(SL_HERE, sl_mul_scalar(x, 1e-3), gamma_, beta, o));
}
static double rms_norm(struct sl_rms_norm_opts o)
{
	return figure(sl_rms_norm_at(SL_HERE, sl_mul_scalar(x, 1e-3), gamma_, o));
}
static double attention(struct sl_attention_opts o)
{
	return figure(sl_scaled_dot_product_attention_at(SL_HERE, sl_sin(x), sl_cos(x), x, o));
}
static double cached_attention(struct sl_cached_attention_opts o)
{
	sl_shape one = SL_SHAPE(1, 1, 3, 4), all = SL_SHAPE(1, 1, 8, 4);
	sl_tensor *keys = sl_zeros(all, .dtype = SL_FLOAT64), *values = sl_zeros(all, .dtype = SL_FLOAT64);
	sl_tensor *q = sl_reshape(sl_sin(x), one), *k = sl_reshape(sl_cos(x), one),
	          *place = sl_zeros(SL_SCALAR, .dtype = SL_INT32);
	return figure(sl_cached_attention_at(SL_HERE, q, k, sl_reshape(x, one), keys, values, place, o));
}
static double conv1d(struct sl_conv1d_opts o)
{
	if (o.groups == 1 || !o.as_written) o.groups = 2;
	return figure(sl_conv1d_at(SL_HERE, row, row_kernel, NULL, o));
}
static double conv_transpose(struct sl_conv_transpose2d_opts o)
{
	return figure(sl_conv_transpose2d_at(SL_HERE, image, kernel, NULL, o));
}
/* A gradient that is a little wrong: how far, which is refused with the same status as a wrong option. */
static sl_tensor *cube(void *context, sl_tensor *const *in, int nin)
{
	(void)context, (void)nin;
	return sl_sum(sl_mul(sl_square(in[0]), in[0]));
}
static double gradcheck(struct sl_gradcheck_opts o)
{
	struct sl_gradcheck_worst worst = {0};
	o.worst = &worst;
	enum sl_status s = sl_gradcheck_at(SL_HERE, cube, NULL, &x, 1, o);
	if (s != SL_OK && !strstr(sl_error_message(), ".step must") && !strstr(sl_error_message(), ".elements is 0"))
		sl_error_clear();
	return s == SL_OK ? worst.error + 1 : sl_error() == SL_OK ? -1 : NAN;
}
static double forward(sl_block *net, sl_tensor *in, bool training)
{
	double result = NAN;
	sl_seed(5);
	if (net && sl_initialize(net, .init = sl_normal_init(0.5), .dtype = SL_FLOAT64) == SL_OK) {
		sl_tensor *y = NULL;
		if (training)
			SL_TRAINING
				y = sl_forward(net, in);
		y = sl_forward(net, in);
		result = figure(y);
	}
	sl_block_free(net);
	return result;
}
static double conv_layer(struct sl_conv2d_layer_opts o)
{
	o.kernel[0] = 2;
	return forward(sl_conv2d_layer_at(SL_HERE, 4, o), image, false);
}
static double norm_layer(struct sl_batch_norm_layer_opts o)
{
	return forward(sl_batch_norm_layer_at(SL_HERE, o), sl_mul_scalar(x, 1e-3), true);
}
static double layer_norm_layer(struct sl_layer_norm_layer_opts o)
{
	return forward(sl_layer_norm_layer_at(SL_HERE, o), sl_mul_scalar(x, 1e-3), false);
}
static double recurrent_layer(struct sl_recurrent_layer_opts o)
{
	return forward(sl_rnn_at(SL_HERE, 3, o), sl_reshape(x, SL_SHAPE(3, 1, 4)), false);
}
static double schedule(struct sl_schedule o, enum sl_schedule_kind kind)
{
	sl_block *net = sl_dense(1, .in_units = 1);
	o.kind = kind;
	if (kind == SL_STEPS) o.every = 1;
	else o.total = 4;
	sl_trainer *t = sl_trainer_new(net, sl_sgd(.lr = 0.5, .schedule = o));
	double lr = t ? sl_schedule_lr(&o, 0.5, 1) : NAN;
	sl_trainer_free(t);
	sl_block_free(net);
	return lr;
}
/* Two steps of a trainer of two parameters; average: what use_averages shows. */
static double train(struct sl_optimizer o, const struct sl_group_opts *group, bool averages, int64_t batch)
{
	double result = NAN;
	sl_block *net = sl_dense(1, .in_units = 3);
	sl_initialize(net, .init = sl_constant_init(0.5), .dtype = SL_FLOAT64);
	sl_trainer *t = sl_trainer_new(net, o);
	bool ok = t && (!group || sl_trainer_group_at(SL_HERE, t, "*weight", *group) == SL_OK);
	for (int i = 0; ok && i < 2; i++) {
		sl_tensor *loss = NULL;
		SL_RECORD
			loss = sl_square(sl_forward(net, sl_reshape(g, SL_SHAPE(1, 3))));
		sl_backward_heads(&loss, 1, .scale = sl_trainer_loss_scale(t));
		ok = sl_trainer_step(t, batch) == SL_OK;
	}
	if (ok && averages) ok = sl_trainer_use_averages(t, true) == SL_OK;
	sl_param *p = ok ? sl_block_find(net, "weight") : NULL;
	if (p) result = figure(sl_param_data(p)) + 0.001 * sl_trainer_loss_scale(t);
	sl_trainer_free(t);
	sl_block_free(net);
	return result;
}
static double optimizer(struct sl_optimizer o, enum sl_optimizer_kind kind)
{
	o.kind = kind;
	if (kind != SL_SGD) o.lr = 0.5;
	return train(o, NULL, false, 1);
}
static double average(struct sl_optimizer o)
{
	return train(o, NULL, o.average > 0 || o.average < 0, 1);
}
/* In the first optimiser that has it; gradients are so small for eps that it matters. */
static double hyperparameter(struct sl_optimizer o, enum slp_hyperparameter which)
{
	enum sl_optimizer_kind kind = SL_SGD;
	if (which == SLP_HYPER_average) return average(o);
	for (int k = slp_optimizer_count; k-- > 0;)
		for (int i = 0; i < slp_optimizers[k]->noptions; i++)
			if (slp_optimizers[k]->options[i].which == which) kind = (enum sl_optimizer_kind)k;
	o.kind = kind;
	if (kind != SL_SGD) o.lr = which == SLP_HYPER_eps ? 0.001 : 0.5;
	return train(o, NULL, false, which == SLP_HYPER_eps ? 1000000000 : 1);
}
static double scaling_start(struct sl_loss_scaling o)
{
	return train(sl_sgd(.loss_scaling = o), NULL, false, 1);
}
static double scaling(struct sl_loss_scaling o)
{
	o.start = 2;
	return scaling_start(o);
}
static double group_scale(struct sl_group_opts o)
{
	o.weight_decay = 0.2;
	return train(sl_sgd(.lr = 0.1, .weight_decay = 0.2), &o, false, 1);
}
static double group_decay(struct sl_group_opts o)
{
	o.lr_scale = 1;
	return train(sl_sgd(.lr = 0.1, .weight_decay = 0.2), &o, false, 1);
}
static double step(struct sl_step_opts o)
{
	double result = NAN;
	sl_block *net = sl_dense(1, .in_units = 3);
	sl_initialize(net, .init = sl_constant_init(0.5), .dtype = SL_FLOAT64);
	sl_trainer *t = sl_trainer_new(net, sl_sgd(.lr = 0.1));
	sl_step *s = sl_step_compile_at(SL_HERE, net, sl_l2_loss_at, t, o);
	sl_tensor *loss =
	        s ? sl_step_run(s, sl_reshape(g, SL_SHAPE(1, 3)), sl_zeros(SL_SHAPE(1, 1), .dtype = SL_FLOAT64), NULL)
	          : NULL;
	if (loss) result = figure(sl_param_data(sl_block_find(net, "weight")));
	sl_step_free(s);
	sl_trainer_free(t);
	sl_block_free(net);
	return result;
}
static double backward(struct sl_backward_opts o)
{
	sl_tensor *a = sl_clone(w), *y = NULL;
	sl_attach_grad(a);
	SL_RECORD
		y = sl_sum(sl_square(a));
	return sl_backward_heads_at(SL_HERE, &y, 1, o) == SL_OK ? figure(sl_grad(a)) : NAN;
}
/* Here the engine runs, which is the next mistake if the options are accepted; test_spill shows their effect. */
static double spill(struct sl_spill_opts o)
{
	if (sl_spill_at(SL_HERE, "spilled", o) != SL_ESTATE) return NAN;
	sl_error_clear();
	return o.memory > 0 ? (double)o.memory : 0;
}

/* A sample of a data set: its size and its first values. */
static double sample(sl_dataset *d)
{
	float values[64] = {0}, sum = 0;
	int32_t label[4] = {0};
	if (!d) return NAN;
	int64_t n = sl_dataset_size(d), each = sl_shape_size(sl_dataset_x(d).shape);
	if (each <= 64 && sl_dataset_read(d, n - 1, values, label) == SL_OK)
		for (int i = 0; i < each; i++) sum += values[i] * (float)(i + 1);
	sl_dataset_free(d);
	return (double)n * 1000 + (double)each * 100 + (double)sum + label[0];
}
static double csv_set(struct sl_csv_opts o)
{
	return sample(sl_dataset_csv_at(SL_HERE, csv, o));
}
static double token_set(struct sl_tokens_opts o)
{
	o.length = 4;
	return sample(sl_dataset_tokens_at(SL_HERE, tokens, o));
}
static double image_set(struct sl_images_opts o)
{
#ifndef HAVE_PNG
	return o.as_written && !o.channels ? (sl_error_raise(SL_EINVAL, "no libpng, no channels"), NAN) : o.channels;
#endif
	return sample(sl_dataset_images_at(SL_HERE, folder, o));
}
static sl_dataset *pictures(void)
{
	static float values[3 * 8 * 8];
	for (int i = 0; i < 3 * 8 * 8; i++) values[i] = (float)i;
	struct sl_array a = {values, SL_SHAPE(1, 3, 8, 8), SL_FLOAT32}, none = {0};
	return sl_dataset_arrays(a, none);
}
static double transform(struct sl_transform o, enum sl_transform_kind kind)
{
	static float values[3 * 8 * 8];
	double sum = NAN;
	o.kind = kind;
	o.height = o.width = 8;
	sl_dataset *from = pictures(), *d = sl_dataset_transform_at(SL_HERE, from, &o, 1);
	sl_loader *l = d ? sl_loader_new(d, .batch_size = 1, .seed = 3) : NULL;
	if (l) sum = 0;
	for (int i = 0; l && i < 8; i++) { /* what is random is drawn anew in each epoch */
		struct sl_batch b;
		if (!sl_loader_next(l, &b)) continue;
		if (sl_read(b.x, values, sizeof values) == SL_OK)
			for (int k = 0; k < 192; k++) sum += values[k] * (k + 1) * (i + 1);
	}
	sl_loader_free(l);
	sl_dataset_free(d);
	sl_dataset_free(from);
	return sum;
}
static double loader(struct sl_loader_opts o)
{
	static int32_t y[6] = {0, 1, 2, 3, 4, 5};
	struct sl_array a = {y, SL_SHAPE(6), SL_INT32}, none = {0};
	sl_dataset *d = sl_dataset_arrays(a, none);
	o.batch_size = 1;
	sl_loader *l = sl_loader_new_at(SL_HERE, d, o);
	double n = l ? (double)sl_loader_samples(l) : NAN;
	sl_loader_free(l);
	sl_dataset_free(d);
	return n;
}

#define HYPER_ROW(type, field, range, X) X(sl_optimizer, field, hyperparameter, SLP_HYPER_##field)
#define NO_ROW(type, field, range, X)

/* X(structure, field, function of the structure, further arguments). */
/* clang-format off */
#define ROWS(X)                                                                                                        \
	X(sl_conv2d_opts, stride, conv) X(sl_conv2d_opts, dilation, conv) X(sl_conv2d_opts, groups, conv)              \
	X(sl_pool2d_opts, stride, pool) X(sl_huber_loss_opts, delta, huber)                                            \
	X(sl_batch_norm_opts, eps, batch_norm) X(sl_batch_norm_opts, momentum, batch_norm)                             \
	X(sl_layer_norm_opts, eps, layer_norm) OPTIMISER_FIELDS(X, sl_sgd_opts, sgd)                                   \
	X(sl_adam_opts, beta1, adam) X(sl_adam_opts, beta2, adam) X(sl_adam_opts, eps, adam_eps)                           \
	OPTIMISER_FIELDS(X, sl_adam_opts, adam)                                                                        \
	X(sl_rmsprop_opts, alpha, rmsprop) X(sl_rmsprop_opts, eps, rmsprop_eps) OPTIMISER_FIELDS(X, sl_rmsprop_opts, rmsprop) \
	X(sl_attention_opts, scale, attention) X(sl_cached_attention_opts, scale, cached_attention)                    \
	X(sl_conv1d_opts, stride, conv1d) X(sl_conv1d_opts, dilation, conv1d) X(sl_conv1d_opts, groups, conv1d)        \
	X(sl_conv_transpose2d_opts, stride, conv_transpose) X(sl_conv_transpose2d_opts, dilation, conv_transpose)      \
	X(sl_conv_transpose2d_opts, groups, conv_transpose) X(sl_rms_norm_opts, eps, rms_norm)                         \
	X(sl_gradcheck_opts, step, gradcheck) X(sl_gradcheck_opts, tolerance, gradcheck)                               \
	X(sl_gradcheck_opts, elements, gradcheck)                                                                      \
	X(sl_conv2d_layer_opts, stride, conv_layer) X(sl_conv2d_layer_opts, dilation, conv_layer)                      \
	X(sl_conv2d_layer_opts, groups, conv_layer)                                                                    \
	X(sl_batch_norm_layer_opts, eps, norm_layer) X(sl_batch_norm_layer_opts, momentum, norm_layer)                 \
	X(sl_layer_norm_layer_opts, eps, layer_norm_layer) X(sl_recurrent_layer_opts, layers, recurrent_layer)         \
	X(sl_schedule, factor, schedule, SL_STEPS) X(sl_schedule, power, schedule, SL_POLYNOMIAL)                      \
	X(sl_loss_scaling, start, scaling_start) X(sl_loss_scaling, growth, scaling) X(sl_loss_scaling, backoff, scaling)    \
	X(sl_loss_scaling, every, scaling)                                                                             \
	X(sl_optimizer, lr, optimizer, SL_SGD) SL_HYPERPARAMETER_LIST(HYPER_ROW, NO_ROW, X)                            \
	X(sl_group_opts, lr_scale, group_scale) X(sl_group_opts, weight_decay, group_decay) X(sl_step_opts, accumulate, step)      \
	X(sl_csv_opts, label, csv_set) X(sl_images_opts, channels, image_set)                                          \
	X(sl_tokens_opts, stride, token_set) X(sl_tokens_opts, bytes, token_set)                                       \
	X(sl_transform, p, transform, SL_RANDOM_FLIP) X(sl_transform, std, transform, SL_NORMALISE)                    \
	X(sl_transform, area, transform, SL_RANDOM_RESIZED_CROP) X(sl_transform, ratio, transform, SL_RANDOM_RESIZED_CROP) \
	X(sl_loader_opts, limit, loader) X(sl_loader_opts, prefetch, loader) X(sl_loader_opts, ranks, loader)          \
	X(sl_backward_opts, scale, backward) X(sl_spill_opts, memory, spill)
/* clang-format on */

/* ---- giving a field a value, by its type ------------------------------------------------------------------------ */

static void put_double(double *p, double value, int n)
{
	for (int i = 0; i < n; i++) p[i] = value;
}
static void put_int(int *p, double value, int n)
{
	for (int i = 0; i < n; i++) p[i] = value >= INT32_MAX ? INT32_MAX : (int)value;
}
static void put_wide(int64_t *p, double value, int n)
{
	*p = value >= 0x1p62 ? INT64_MAX : (int64_t)value;
	(void)n;
}
#define PUT(x)                                                                                                         \
	_Generic((x), double : put_double, double * : put_double, int : put_int, int * : put_int, int64_t : put_wide)
#define AT(x) _Generic((x), double * : (x), int * : (x), default : &(x))
#define LENGTH(x)                                                                                                      \
	((int)((sizeof(x)) / (_Generic((x), double * : sizeof(double), int * : sizeof(int), default : sizeof(x)))))
#define IS_DOUBLE(x) _Generic((x), double : true, double * : true, default : false)

/* What a call leaves out. */
#define X(type)                                                                                                        \
	static struct type left_out_##type(void)                                                                       \
	{                                                                                                              \
		return SL_OPTIONS(type, );                                                                             \
	}
SLP_OPTIONS_LIST(X)
#undef X

enum way { LEFT_OUT, ZEROED, GIVEN };
#define X(type, field, call, ...)                                                                                      \
	static double row_##type##_##field(enum way way, double value)                                                 \
	{                                                                                                              \
		struct type o = left_out_##type();                                                                     \
		if (way == ZEROED) o = (struct type){0};                                                               \
		if (way == GIVEN) PUT(o.field)(AT(o.field), value, LENGTH(o.field));                                   \
		return call(o, ##__VA_ARGS__);                                                                         \
	}
ROWS(X)
#undef X

static const struct row {
	const char *type, *field;
	double (*call)(enum way way, double value);
	bool is_double;
} rows[] = {
#define X(struct_, field_, call_, ...)                                                                                 \
	{.type = #struct_,                                                                                             \
	 .field = #field_,                                                                                             \
	 .call = row_##struct_##_##field_,                                                                             \
	 .is_double = IS_DOUBLE(((struct struct_ *)0)->field_)},
        ROWS(X)
#undef X
};
enum { COUNT = sizeof rows / sizeof *rows };

/* ---- tests ------------------------------------------------------------------------------------------------------ */

static bool has_row(const char *type, const char *field)
{
	for (int i = 0; i < COUNT; i++)
		if (!strcmp(rows[i].type, type) && !strcmp(rows[i].field, field)) return true;
	return false;
}

/* No field of the list is forgotten here; those of structures within are fields of these. */
static void test_list(void)
{
	const char *type = "";
#define ONE(field, ...)                                                                                                \
	CHECK_SAYING(has_row(type, #field) || !strcmp(#field, "schedule") || !strcmp(#field, "loss_scaling"),          \
	             "%s.%s has no row", type, #field);
#define X(struct_)                                                                                                     \
	type = #struct_;                                                                                               \
	SL_DEFAULTS_##struct_(ONE)
	SLP_OPTIONS_LIST(X)
#undef X
#undef ONE
}

/* A value is refused by name; or *result is what it gives. */
static bool is_refused(const struct row *r, enum way way, double value, double *result)
{
	bool refused = false;
	SL_SCOPE {
		*result = r->call(way, value);
		refused = sl_error() != SL_OK;
		CHECK_SAYING(!refused || value > 1e300 || strstr(sl_error_message(), r->field), "%s.%s = %g: %s",
		             r->type, r->field, value, sl_error_message());
		sl_error_clear();
	}
	return refused;
}

static bool near(double a, double b)
{
	return (isnan(a) && isnan(b)) || a == b || fabs(a - b) <= 1e-6 * (1 + fabs(b));
}

/* Next to 0: what a double adds to anything is lost. */
static void check_zero(const struct row *r, double otherwise)
{
	double zero = NAN, next = NAN;
	if (is_refused(r, GIVEN, 0, &zero)) return;
	if (!r->is_double) {
		CHECK_SAYING(!is_refused(r, GIVEN, 1, &next) && near(zero, next), "%s.%s: 0 gives %.9g, 1 %.9g",
		             r->type, r->field, zero, next);
		return;
	}
	if (!is_refused(r, GIVEN, 1e-200, &next))
		CHECK_SAYING(near(zero, next), "%s.%s: 0 gives %.9g, 1e-200 %.9g", r->type, r->field, zero, next);
	CHECK_SAYING(!near(zero, otherwise), "%s.%s: 0 gives %.9g, and so does the default", r->type, r->field, zero);
}

/* Has an effect, or is refused. */
static void check_far(const struct row *r, double value, double otherwise)
{
	double got;
	if (isnan(value) && !r->is_double) return;
	if (is_refused(r, GIVEN, value, &got)) return;
	if (isnan(value)) CHECK_SAYING(isnan(got), "%s.%s = NaN gives %.9g", r->type, r->field, got);
	else if (value < 0)
		CHECK_SAYING(!near(got, otherwise), "%s.%s = %g gives the default's %.9g", r->type, r->field, value,
		             got);
}

static void test_values(void)
{
	SL_SCOPE {
		make_arguments();
		for (int i = 0; i < COUNT; i++) {
			double left_out, zeroed;
			CHECK_SAYING(!is_refused(&rows[i], LEFT_OUT, 0, &left_out), "%s.%s: left out, and refused",
			             rows[i].type, rows[i].field);
			CHECK(!is_refused(&rows[i], ZEROED, 0, &zeroed));
			CHECK_SAYING(near(left_out, zeroed), "%s.%s: left out %.9g, in a structure of zeros %.9g",
			             rows[i].type, rows[i].field, left_out, zeroed);
			check_zero(&rows[i], left_out);
			check_far(&rows[i], -1, left_out);
			check_far(&rows[i], NAN, left_out);
			check_far(&rows[i], DBL_MAX, left_out);
		}
	}
}

/* Macros of several functions take one structure; each gives a 0 as written. */
static void test_macros(void)
{
	SL_SCOPE {
		make_arguments();
		CHECK_NULL(sl_max_pool2d_layer(2, .stride = {0, 0}), SL_EINVAL, "sl_max_pool2d_layer", "stride");
		CHECK_NULL(sl_avg_pool2d_layer(2, .stride = {0}), SL_EINVAL, "sl_avg_pool2d_layer", "stride");
		sl_tensor *small = sl_mul_scalar(image, 1e-3);
		double group[] = {figure(sl_group_norm(small, 2, NULL, NULL)),
		                  figure(sl_group_norm(small, 2, NULL, NULL, .eps = 0)),
		                  figure(sl_group_norm(small, 2, NULL, NULL, .eps = 1e-200))};
		double instance[] = {figure(sl_instance_norm(small, NULL, NULL)),
		                     figure(sl_instance_norm(small, NULL, NULL, .eps = 0)),
		                     figure(sl_instance_norm(small, NULL, NULL, .eps = 1e-200))};
		CHECK(near(group[1], group[2]) && !near(group[0], group[1]));
		CHECK(near(instance[1], instance[2]) && !near(instance[0], instance[1]));
	}
}

/* ---- files ------------------------------------------------------------------------------------------------------ */

static void write_file(char *name, const char *pattern, const void *bytes, size_t size)
{
	strcpy(name, pattern);
	int fd = mkstemp(name);
	if (fd < 0 || write(fd, bytes, size) != (ssize_t)size) exit(99);
	close(fd);
}

/* FOLDER/class/image.png: sets of images are made of such. */
static void write_image(void)
{
#ifdef HAVE_PNG
	static const uint8_t bytes[] = {10, 20, 30, 40, 50, 60};
	png_image png = {.version = PNG_IMAGE_VERSION, .format = PNG_FORMAT_RGB, .height = 1, .width = 2};
	char name[128];
	strcpy(folder, "options-images-XXXXXX");
	if (!mkdtemp(folder)) exit(99);
	snprintf(name, sizeof name, "%s/class", folder);
	if (mkdir(name, 0777)) exit(99);
	snprintf(name, sizeof name, "%s/class/image.png", folder);
	if (!png_image_write_to_file(&png, name, 0, bytes, 0, NULL)) exit(99);
#endif
}

static void remove_image(void)
{
	char name[128];
	snprintf(name, sizeof name, "%s/class/image.png", folder);
	unlink(name);
	snprintf(name, sizeof name, "%s/class", folder);
	rmdir(name);
	rmdir(folder);
}

static int start(void)
{
	static const uint16_t words[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
	static const char table[] = "1,2,3\n4,5,6\n7,8,9\n";
	write_file(csv, "options-csv-XXXXXX", table, sizeof table - 1);
	write_file(tokens, "options-tokens-XXXXXX", words, sizeof words);
	write_image();
	return slp_start_engine();
}

static int stop(void)
{
	unlink(csv);
	unlink(tokens);
	remove_image();
	return slp_stop_engine();
}

static const struct slp_test tests[] = {{"list", test_list}, {"values", test_values}, {"macros", test_macros}, {0}};

int main(int argc, char **argv)
{
	return slp_test_main(
	        argc, argv,
	        (const struct slp_suite[]){{.name = "options", .start = start, .stop = stop, .tests = tests}, {0}});
}
