/* Initialisers, and the initialisation of networks. */
#include <math.h>
#include <stdlib.h>

#include "nn/nn.h"
#include "op.h"
#include "runtime/device/device.h"
#include "runtime/engine.h"
#include "runtime/gate.h"
#include "runtime/text.h"
#include "starling/nn.h"
#include "tensor/moment.h"

/* ---- kinds ------------------------------------------------------------------------------------------------------- */

/* Initialises all elements to 0. */
struct sl_initializer sl_zeros_init(void)
{
	return sl_constant_init(0);
}

/* Initialises all elements to 1. */
struct sl_initializer sl_ones_init(void)
{
	return sl_constant_init(1);
}

/* Initialises all elements to this value. */
struct sl_initializer sl_constant_init(double value)
{
	return (struct sl_initializer){.kind = SL_INIT_CONSTANT, .value = value, .as_written = true};
}

/* Normal numbers with mean 0 and this standard deviation. */
struct sl_initializer sl_normal_init(double sigma)
{
	return (struct sl_initializer){.kind = SL_INIT_NORMAL, .value = sigma, .as_written = true};
}

/* Numbers drawn evenly from [-bound, bound). */
struct sl_initializer sl_uniform_init(double bound)
{
	return (struct sl_initializer){.kind = SL_INIT_UNIFORM, .value = bound, .as_written = true};
}

/* Uniform within ±√(3 / fan), where fan is the mean of the numbers of inputs and outputs of a unit: the variance is
 * kept in the forward and backward pass.  .gaussian: normal with standard deviation √(3 / fan), as in MXNet.  X.
 * Glorot, Y. Bengio, "Understanding the difficulty of training deep feedforward neural networks", AISTATS 2010. */
struct sl_initializer sl_xavier_init(void)
{
	return (struct sl_initializer){.kind = SL_INIT_XAVIER, .value = 3, .fan = SL_FAN_AVG, .as_written = true};
}

/* Normal with standard deviation √2 / √inputs: for layers before a ReLU.  Without .gaussian, uniform within ±√3 times
 * that.  K. He, X. Zhang, S. Ren, J. Sun, "Delving deep into rectifiers", ICCV 2015. */
struct sl_initializer sl_he_init(void)
{
	return (struct sl_initializer){
	        .kind = SL_INIT_HE, .value = M_SQRT2, .fan = SL_FAN_IN, .gaussian = true, .as_written = true};
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* The number of connections of a unit of the weight (units, inputs, …); each place of a kernel counts. */
static double fan_of(sl_shape shape, enum sl_fan fan)
{
	double places = 1;
	for (int i = 2; i < shape.ndim; i++) places *= (double)shape.dim[i];
	double in = places * (double)shape.dim[1], out = places * (double)shape.dim[0];
	return fan == SL_FAN_IN ? in : fan == SL_FAN_OUT ? out : (in + out) / 2;
}

/* The bound of even draws, or the deviation of normal ones. */
static double spread(const struct sl_initializer *init, sl_shape shape)
{
	double fan = fan_of(shape, init->fan);
	double value = init->value;
	if (value == 0 && !init->as_written) value = init->kind == SL_INIT_XAVIER ? 3 : M_SQRT2;
	if (init->kind == SL_INIT_XAVIER) return sqrt(value / fan);
	double deviation = value / sqrt(fan);
	return init->gaussian ? deviation : sqrt(3) * deviation;
}

static sl_tensor *draw(const char *at, const sl_param *param, const struct sl_initializer *init, struct sl_make make)
{
	char text[128];
	if (param->shape.ndim < 2)
		return slp_call_fail(
		        at, "sl_initialize", SL_ESHAPE,
		        "parameter '%s' of shape %s has no inputs and outputs, which Xavier and He need; give it an "
		        "initialiser of its own",
		        param->full_name, sl_shape_string(param->shape, text));
	if (!sl_shape_size(param->shape)) return sl_zeros_at(at, param->shape, make);
	double s = spread(init, param->shape);
	return init->gaussian ? sl_normal_at(at, param->shape, 0, s, make)
	                      : sl_uniform_at(at, param->shape, -s, s, make);
}

sl_tensor *slp_init_values(const char *at, const sl_param *param, const struct sl_initializer *init, sl_device device)
{
	struct sl_make make = {param->dtype, device};
	const double bound = 0.07; /* MXNet's */
	switch (init->kind) {
	case SL_INIT_DEFAULT: return sl_uniform_at(at, param->shape, -bound, bound, make);
	case SL_INIT_CONSTANT: return sl_full_at(at, param->shape, init->value, make);
	case SL_INIT_NORMAL: return sl_normal_at(at, param->shape, 0, init->value, make);
	case SL_INIT_UNIFORM: return sl_uniform_at(at, param->shape, -init->value, init->value, make);
	case SL_INIT_XAVIER:
	case SL_INIT_HE: return draw(at, param, init, make);
	default: return slp_call_fail(at, "sl_initialize", SL_EINVAL, "%d is not an initialiser", (int)init->kind);
	}
}

/* ---- initialising ------------------------------------------------------------------------------------------------ */

static enum sl_status set_devices(const char *at, sl_param *param, const struct sl_initialize_opts *opts)
{
	int n = opts->ndevices, most = n > param->most_devices ? n : param->most_devices;
	sl_device *devices = NULL;
	if (most) {
		devices = slp_malloc((size_t)most * sizeof *devices);
		if (!devices) return slp_call_fail(at, "sl_initialize", SL_ENOMEM, "no memory for devices"), SL_ENOMEM;
	}
	/* Another thread may take this list with an earlier number. */
	for (int i = 0; i < most; i++) devices[i] = i < n ? opts->devices[i] : sl_auto();
	param->most_devices = most;
	slp_later(free, atomic_exchange(&param->devices, devices));
	param->ndevices = opts->ndevices;
	param->gather = opts->gather;
	return SL_OK;
}

/* The parameter's own initialiser takes precedence over the call's. */
static enum sl_status initialize(const char *at, sl_param *param, const struct sl_initialize_opts *opts)
{
	enum sl_status s = set_devices(at, param, opts);
	if (s != SL_OK) return s;
	param->init = param->opts.init.kind != SL_INIT_DEFAULT ? param->opts.init : opts->init;
	param->dtype = slp_dtype_or(param->opts.dtype, slp_dtype_or(opts->dtype, SL_FLOAT32));
	if (param->statistics) param->dtype = slp_promoted(param->dtype);
	param->waiting = true;
	return slp_shape_known(param->shape) ? slp_param_materialize(at, param) : SL_OK;
}

static void say_skipped(const char *at, const sl_param *first, int skipped)
{
	if (!skipped) return;
	char name[128];
	snprintf(name, sizeof name, "%s", first->full_name);
	fprintf(stderr, "sl_initialize at %s: '%s'", at, slp_text_escape(name, sizeof name, false));
	if (skipped > 1) fprintf(stderr, " and %d more are", skipped - 1);
	else fprintf(stderr, " is");
	fprintf(stderr, " initialised already and stay%s; .force = true gives new values\n", skipped > 1 ? "" : "s");
}

static enum sl_status check_opts(const char *at, struct sl_initialize_opts *opts, sl_device *resolved)
{
	enum sl_status s = slp_engine_need(at);
	if (s == SL_OK &&
	    (opts->ndevices < 0 || (opts->ndevices && !opts->devices) || (opts->devices && !opts->ndevices))) {
		slp_call_fail(at, "sl_initialize", SL_EINVAL, ".devices and .ndevices go together");
		return SL_EINVAL;
	}
	for (int i = 0; s == SL_OK && i < opts->ndevices; i++) {
		resolved[i] = opts->devices[i];
		s = slp_device_resolve(at, &resolved[i]);
	}
	opts->devices = resolved;
	return s;
}

static enum sl_status initialize_all(const char *at, sl_block *block, const struct sl_initialize_opts *opts)
{
	int count = 0, skipped = 0;
	enum sl_status s = SL_OK;
	sl_param **params = slp_block_all_params(at, block, &count), *first = NULL;
	if (!params) return sl_error();
	SLP_CHANGE();
	slp_params_lock();
	for (int i = 0; i < count && s == SL_OK; i++) {
		bool skip = params[i]->data && !opts->force;
		if (skip && !skipped++) first = params[i];
		if (!skip) s = initialize(at, params[i], opts);
	}
	slp_params_unlock();
	free(params);
	say_skipped(at, first, skipped);
	return s;
}

/* Gives all parameters of the block and its children their first values: at once if their shapes are known, else at the
 * first forward.  A parameter's own initialiser (biases: zeros) takes precedence over .init.  Parameters that already
 * have values keep them, with a warning on stderr, unless .force.  Devices: without .devices a parameter is on the
 * default device, with one device on that one, with several on each that needs it; using it on another device is an
 * error.  With .gather = n the gradients of n calls of sl_backward, one for each part of a batch, are added until a
 * trainer's step uses them.  SL_EDEVICE: a device does not exist; SL_ESHAPE: Xavier or He for a parameter that is not a
 * weight; SL_EINVAL: no such initialiser, or .devices without .ndevices.  The caller keeps the array of devices.
 *
 *     sl_initialize(net, .init = sl_xavier_init());
 *     sl_initialize(net, .init = sl_normal_init(0.01), .devices = devices, .ndevices = 2, .force = true); */
enum sl_status sl_initialize_at(const char *at, sl_block *block, struct sl_initialize_opts opts)
{
	SLP_CALL("sl_initialize", at);
	sl_device *resolved = slp_malloc(((size_t)(opts.ndevices > 0 ? opts.ndevices : 0) + 1) * sizeof *resolved);
	if (!resolved) return slp_call_fail(at, "sl_initialize", SL_ENOMEM, "no memory for devices"), SL_ENOMEM;
	enum sl_status s = check_opts(at, &opts, resolved);
	if (s == SL_OK) s = initialize_all(at, block, &opts);
	free(resolved);
	return s;
}
