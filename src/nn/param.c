/* Parameters: tensors of a block that are trained, or running statistics; they get values once their shape is known. */
#include <stdlib.h>
#include <string.h>

#include "autograd/autograd.h"
#include "nn/nn.h"
#include "runtime/device/device.h"
#include "runtime/engine.h"
#include "runtime/fault.h"
#include "runtime/gate.h"
#include "runtime/random.h"
#include "runtime/recursive.h"
#include "runtime/task/storage.h"
#include "starling/nn.h"
#include "starling/arithmetic.h"

/* Two threads may run a block for the first time; a change may need another one. */
SLP_RECURSIVE_LOCK;

void slp_params_lock(void)
{
	lock_again();
}

void slp_params_unlock(void)
{
	unlock_again();
}

static void release_later(void *tensor)
{
	sl_release(tensor);
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static bool is_shape(sl_shape shape)
{
	bool ok = shape.ndim >= 0 && shape.ndim <= SL_MAX_NDIM;
	for (int i = 0; ok && i < shape.ndim; i++) ok = shape.dim[i] >= -1;
	return ok;
}

static enum sl_status check_new(const char *at, const sl_block *block, const char *name, sl_shape shape)
{
	const char *wrong = NULL;
	if (!block || !block->base || !name) wrong = "the block or the name is NULL";
	else if (!*name || strchr(name, '.')) wrong = "a name has letters, and no dots";
	else if (!is_shape(shape)) wrong = "dims are numbers, or -1 if not known yet";
	for (int i = 0; !wrong && i < block->base->nparams; i++)
		if (!strcmp(block->base->params[i]->name, name)) wrong = "there is already a parameter of that name";
	if (wrong) slp_call_fail(at, "sl_block_param", SL_EINVAL, "%s: %s", name ? name : "", wrong);
	return wrong ? SL_EINVAL : SL_OK;
}

bool slp_params_prefix(sl_param *const *params, int n, const char *prefix)
{
	char **names = slp_calloc((size_t)n + 1, sizeof *names);
	int made = 0;
	while (names && made < n && (names[made] = slp_format("%s%s", prefix, params[made]->name))) made++;
	bool all = names && made == n;
	for (int i = 0; i < made; i++) {
		if (all) slp_later(free, atomic_exchange(&params[i]->full_name, names[i]));
		else free(names[i]);
	}
	free(names);
	return all;
}

static sl_param *param_new(sl_block *block, const char *name, sl_shape shape, struct sl_param_opts opts)
{
	sl_param *p = slp_calloc(1, sizeof *p);
	if (!p) return NULL;
	p->block = block;
	p->name = slp_strdup(name);
	p->full_name = slp_format("%s%s", block->base->prefix, name);
	p->shape = shape;
	p->opts = opts;
	if (p->name && p->full_name) return p;
	slp_param_free(p);
	return NULL;
}

/* Adds a parameter to a custom block, which owns it.  sl_param_fit sets dims of -1.  Without .init the values come from
 * sl_initialize's initialiser.  NULL with SL_EINVAL: the block is NULL, the name is taken or has dots, the shape is not
 * valid.
 *
 *     net->scale = sl_block_param(&net->base, "scale", SL_SHAPE(-1), .init = sl_ones_init()); */
sl_param *sl_block_param_at(const char *at, sl_block *block, const char *name, sl_shape shape,
                            struct sl_param_opts opts)
{
	SLP_CALL("sl_block_param", at);
	SLP_TREE();
	if (check_new(at, block, name, shape) != SL_OK) return NULL;
	struct slp_block *b = block->base;
	sl_param *p = param_new(block, name, shape, opts);
	void **old = (void **)b->params, **list = p ? slp_list_with(old, b->nparams, p) : NULL;
	if (!list) {
		if (p) slp_param_free(p);
		return slp_call_fail(at, "sl_block_param", SL_ENOMEM, "no memory for %s", name);
	}
	b->params = (sl_param **)list;
	b->nparams++;
	slp_later(free, old);
	slp_block_changed(block);
	return p;
}

void slp_param_free(sl_param *param)
{
	sl_release(param->data);
	for (int i = 0; i < param->nspares; i++) sl_release(param->spares[i]);
	free(param->spares);
	free(param->shared);
	free((char *)param->name);
	free(param->full_name);
	free(param->devices);
	free(param);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* One device has the parameter; with several the scheduler chooses its place. */
static sl_device initial_device(const sl_param *param)
{
	return param->ndevices == 1 ? param->devices[0]
	       : param->ndevices    ? sl_auto()
	                            : (sl_device){SL_DEVICE_DEFAULT, -1};
}

/* Makes t the parameter's tensor, with a gradient if it is trained. */
static enum sl_status take(const char *at, sl_param *param, sl_tensor *t)
{
	enum sl_status s =
	        param->opts.no_grad
	                ? SL_OK
	                : sl_attach_grad_at(at, t,
	                                    (struct sl_attach_opts){param->frozen ? SL_GRAD_NONE : SL_GRAD_WRITE});
	if (s != SL_OK) return s;
	if (t->var) t->var->gather = param->gather;
	if (param->data) slp_block_changed(param->block);
	slp_later(release_later, atomic_exchange(&param->data, sl_retain(t))); /* another thread may look at it */
	param->waiting = false;
	return SL_OK;
}

bool (*slp_param_filled)(const char *at, sl_param *param);

enum sl_status slp_param_materialize(const char *at, sl_param *param)
{
	enum sl_status s = SL_EINVAL;
	SLP_MODE_SCOPE();
	SLP_DRAWS_SCOPE();
	struct slp_trace *trace = slp_trace_pause();
	slp_mode.observer = NULL;
	slp_draws.notes = NULL; /* not drawn when the block is repeated */
	SL_PAUSE
		SL_SCOPE {
			sl_tensor *t = slp_init_values(at, param, &param->init, initial_device(param));
			s = t ? take(at, param, t) : sl_error();
			if (s == SL_OK && param->shared && !slp_param_filled(at, param)) s = sl_error();
		}
	slp_trace_resume(trace);
	return s;
}

/* The parameter's shape with the known dims of both; false if they disagree. */
static bool merge(sl_shape *shape, sl_shape with)
{
	sl_shape both = with;
	bool fit = shape->ndim == with.ndim;
	for (int i = 0; fit && i < with.ndim; i++) {
		if (with.dim[i] < 0) both.dim[i] = shape->dim[i];
		fit = shape->dim[i] < 0 || shape->dim[i] == both.dim[i];
	}
	if (fit && !sl_shape_equal(*shape, both)) *shape = both; /* others read one that is complete */
	return fit;
}

static enum sl_status fit(const char *at, sl_param *param, sl_shape shape)
{
	char is[128], wanted[128];
	if (!merge(&param->shape, shape)) {
		slp_call_fail(at, "sl_param_fit", SL_ESHAPE, "parameter '%s' has shape %s, but the input needs %s",
		              param->full_name, sl_shape_string(param->shape, is), sl_shape_string(shape, wanted));
		return SL_ESHAPE;
	}
	return param->waiting && slp_shape_known(param->shape) ? slp_param_materialize(at, param) : SL_OK;
}

/* Sets the dims of a parameter that are -1, and gives it its values if sl_initialize has been called; forward calls it
 * when its input determines the shape.  Dims that are -1 here as well stay open.  SL_ESHAPE: the parameter has another
 * shape; other errors as in sl_initialize, which it completes.
 *
 *     if (sl_param_fit(net->scale, SL_SHAPE(sl_tensor_shape(x).dim[1])) != SL_OK) return NULL; */
enum sl_status sl_param_fit_at(const char *at, sl_param *param, sl_shape shape)
{
	SLP_CALL("sl_param_fit", at);
	if (!slp_given(at, "sl_param_fit", "parameter", param)) return sl_error();
	if (param->data && sl_shape_equal(param->shape, shape)) return SL_OK;
	slp_params_lock();
	enum sl_status s = fit(at, param, shape);
	slp_params_unlock();
	return s;
}

/* Why a parameter has no values. */
static void *no_values(const char *at, const char *function, const sl_param *param)
{
	char shape[128];
	if (!slp_given(at, function, "parameter", param)) return NULL;
	if (!param->waiting)
		return slp_call_fail(at, function, SL_ESTATE,
		                     "parameter '%s' is not initialised: call sl_initialize first", param->full_name);
	return slp_call_fail(
	        at, function, SL_ESTATE,
	        "parameter '%s' has no values yet: its shape %s is complete only after a first forward, or with the "
	        "sizes of the inputs given to the layer",
	        param->full_name, sl_shape_string(param->shape, shape));
}

static bool same_kind(sl_device allowed, sl_device device)
{
	return allowed.kind == SL_DEVICE_AUTO ||
	       (allowed.kind == device.kind &&
	        (allowed.index < 0 || device.index < 0 || allowed.index == device.index));
}

bool slp_param_allows(const char *at, const char *function, const sl_param *param, sl_device device)
{
	int count = param->ndevices; /* before the list: another thread may change both */
	const sl_device *devices = param->devices;
	bool allowed = !count || device.kind == SL_DEVICE_AUTO;
	for (int i = 0; !allowed && i < count; i++) allowed = same_kind(devices[i], device);
	if (allowed) return true;
	char list[256] = "", name[SL_DEVICE_NAME_MAX];
	size_t n = 0;
	for (int i = 0; i < count && n < sizeof list; i++)
		n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "",
		                      sl_device_name(devices[i], name));
	slp_call_fail(
	        at, function, SL_EDEVICE,
	        "parameter '%s' was not initialised on %s but on %s; sl_initialize with .force takes other devices",
	        param->full_name, sl_device_name(device, name), list);
	return false;
}

/* Gives it its values if its shape is complete; false after an error. */
static bool fill(const char *at, sl_param *param)
{
	slp_params_lock();
	bool ok = !slp_shape_known(param->shape) || fit(at, param, param->shape) == SL_OK;
	slp_params_unlock();
	return ok;
}

/* The tensor of a parameter for use in forward with the input x: the parameter's values, or, if x is a symbol, the
 * symbol of the parameter.  It belongs to the parameter.  SL_ESTATE: it has no values (sl_initialize was not called, or
 * its shape is not known: a symbol of unknown shape came before any values); SL_EDEVICE: sl_initialize did not name x's
 * device.
 *
 *     return sl_mul(in[0], sl_param_use(net->scale, in[0])); */
sl_tensor *sl_param_use_at(const char *at, sl_param *param, sl_tensor *x)
{
	SLP_CALL("sl_param_use", at);
	if (!param) return no_values(at, "sl_param_use", NULL);
	if (!slp_given(at, "sl_param_use", "tensor", x)) return NULL;
	bool symbol = sl_is_symbol(x);
	if (!param->data && param->waiting && !fill(at, param)) return NULL;
	if (!param->data && param->waiting && symbol)
		return slp_call_fail(
		        at, "sl_param_use", SL_ESTATE,
		        "the shape of parameter '%s' is not known: run the network once, or give sl_var a shape",
		        param->full_name);
	if (!param->data) return no_values(at, "sl_param_use", param);
	if (!slp_param_allows(at, "sl_param_use", param, sl_tensor_device(x))) return NULL;
	sl_tensor *data = param->data;
	return symbol ? slp_symbol_of(at, data, param->full_name) : data;
}

/* ---- shards ------------------------------------------------------------------------------------------------------ */

/* The shard that x belongs to: as given, or by its device. */
static int shard_of(const sl_param *param, const sl_tensor *x)
{
	if (slp_forward.shard) return slp_forward.shard;
	int count = param->ndevices;
	const sl_device *devices = param->devices;
	for (int i = 1; i < count; i++)
		if (sl_device_equal(devices[i], sl_tensor_device(x))) return i;
	return 0;
}

/* The shard's own tensor, made the first time. */
static sl_tensor *spare(const char *at, sl_param *param, int shard)
{
	if (shard >= param->nspares) {
		sl_tensor **list = slp_realloc(param->spares, ((size_t)shard + 1) * sizeof *list);
		if (!list) return slp_call_fail(at, "sl_forward", SL_ENOMEM, "no memory for a shard");
		memset(list + param->nspares, 0, (size_t)(shard + 1 - param->nspares) * sizeof *list);
		param->spares = list;
		param->nspares = shard + 1;
	}
	sl_tensor **t = &param->spares[shard];
	if (*t && (*t)->storage->generation == slp_engine.generation) return *t;
	sl_release(*t);
	struct slp_trace *trace = slp_trace_pause();
	SL_PAUSE
		SL_SCOPE
			*t = sl_retain(
			        sl_zeros_at(at, param->shape, (struct sl_make){param->data->type.dtype, sl_auto()}));
	slp_trace_resume(trace);
	return *t;
}

sl_tensor *slp_param_use_written(const char *at, sl_param *param, sl_tensor *x)
{
	sl_tensor *used = sl_param_use_at(at, param, x);
	bool writes = used && param->data && sl_is_training();
	int shard = writes ? shard_of(param, x) + slp_forward.repeating
	                   : 0; /* repeated values were written the first time */
	if (!shard) return used;
	slp_params_lock();
	sl_tensor *t = spare(at, param, shard);
	slp_params_unlock();
	return t && sl_is_symbol(x) ? slp_symbol_of(at, t, param->full_name) : t;
}

/* ---- queries of programs ----------------------------------------------------------------------------------------- */

/* The name of the parameter, which begins with its block's name: "dense0_weight"; "" for NULL.  The text lives as long
 * as the parameter. */
const char *sl_param_name(const sl_param *param)
{
	return param ? param->full_name : "";
}

/* The shape of the parameter; dims that are not known yet are -1.  A scalar's shape for NULL. */
sl_shape sl_param_shape(const sl_param *param)
{
	if (!param) return SL_SCALAR;
	if (param->data) return param->shape; /* it does not change any more */
	slp_params_lock();
	sl_shape shape = param->shape;
	slp_params_unlock();
	return shape;
}

/* The values of the parameter: the tensor itself, which belongs to the parameter, so that operations in place (under
 * SL_PAUSE) change the network; with a device, a copy there if the values are elsewhere.  SL_ESTATE: not initialised,
 * or the shape is not known yet; SL_EDEVICE: sl_initialize named other devices.
 *
 *     sl_print(sl_param_data(weight));
 *     sl_tensor *there = sl_param_data(weight, SL_DEVICE_GPU, 3); */
sl_tensor *sl_param_data_at(const char *at, sl_param *param, sl_device device)
{
	SLP_CALL("sl_param_data", at);
	if (!param || !param->data) return no_values(at, "sl_param_data", param);
	if (device.kind == SL_DEVICE_DEFAULT) return param->data;
	if (!slp_param_allows(at, "sl_param_data", param, device) || slp_device_resolve(at, &device) != SL_OK)
		return NULL;
	if (sl_device_equal(device, sl_tensor_device(param->data))) return param->data;
	return sl_copy_to_at(at, param->data, device);
}

/* The gradient from the last sl_backward (zeros before the first), which belongs to the parameter.  SL_ESTATE: not
 * initialised, or not trained. */
sl_tensor *sl_param_grad_at(const char *at, sl_param *param)
{
	SLP_CALL("sl_param_grad", at);
	if (!param || !param->data) return no_values(at, "sl_param_grad", param);
	if (param->opts.no_grad)
		return slp_call_fail(at, "sl_param_grad", SL_ESTATE,
		                     "parameter '%s' is not trained and has no gradient", param->full_name);
	return sl_grad_at(at, param->data);
}

static enum sl_status check_values(const char *at, const sl_param *param, sl_tensor *values)
{
	sl_shape shape = param->shape;
	char is[128], got[128];
	if (sl_is_symbol(values)) {
		slp_call_fail(at, "sl_param_set", SL_EINVAL, "a symbol has no values for '%s'", param->full_name);
		return SL_EINVAL;
	}
	if (!merge(&shape, sl_tensor_shape(values))) {
		slp_call_fail(at, "sl_param_set", SL_ESHAPE, "parameter '%s' has shape %s, the values %s",
		              param->full_name, sl_shape_string(param->shape, is),
		              sl_shape_string(sl_tensor_shape(values), got));
		return SL_ESHAPE;
	}
	if (!param->data || sl_tensor_dtype(values) == sl_tensor_dtype(param->data)) return SL_OK;
	slp_call_fail(at, "sl_param_set", SL_EDTYPE, "parameter '%s' is %s, the values %s", param->full_name,
	              sl_dtype_name(sl_tensor_dtype(param->data)), sl_dtype_name(sl_tensor_dtype(values)));
	return SL_EDTYPE;
}

static void release_storage_later(void *storage)
{
	slp_storage_release(storage);
}

/* A value that shares memory with other parameters (grad_buckets.c), spoilt with them, gets separate memory: writing a
 * part would not mend the whole. */
static bool leave_spoilt(sl_tensor *t)
{
	struct slp_storage *old = t->storage;
	bool spoilt = sl_tensor_bytes(t) < old->bytes && old->buffer && atomic_load(&old->buffer->fault);
	if (!spoilt) return true;
	slp_lock();
	struct slp_storage *own = slp_storage_new(sl_tensor_bytes(t), t->device);
	slp_unlock();
	if (!own) return slp_error_set(SL_ENOMEM, "sl_param_set: no memory") == SL_OK;
	t->storage = own;
	t->offset = 0;
	slp_later(release_storage_later, old);
	return true;
}

bool slp_param_is_frozen(const sl_param *p)
{
	return p->data && (!p->data->var || p->data->var->req == SL_GRAD_NONE);
}

bool slp_param_can_be_set(const char *at, sl_param *param, sl_tensor *values)
{
	return check_values(at, param, values) == SL_OK && leave_spoilt(param->data);
}

static enum sl_status set(const char *at, sl_param *param, sl_tensor *values)
{
	sl_device there = param->data ? sl_tensor_device(param->data) : initial_device(param);
	sl_tensor *copy = sl_copy_to_at(at, values, there);
	if (!copy) return sl_error();
	if (param->data)
		return leave_spoilt(param->data) && sl_copy_inplace_at(at, param->data, copy) ? SL_OK : sl_error();
	sl_shape before = param->shape;
	param->shape = sl_tensor_shape(values); /* others read it once there are values */
	enum sl_status s = take(at, param, copy);
	if (s == SL_OK) param->dtype = sl_tensor_dtype(values);
	else param->shape = before;
	return s;
}

enum sl_status slp_param_take(const char *at, sl_param *param, sl_tensor *values)
{
	slp_params_lock();
	enum sl_status s = values ? check_values(at, param, values) : sl_error();
	if (s == SL_OK) {
		param->shape = sl_tensor_shape(values);
		SL_PAUSE
			s = take(at, param, values);
	}
	if (s == SL_OK) param->dtype = sl_tensor_dtype(values);
	slp_params_unlock();
	return s;
}

/* Copies values into the parameter.  A parameter without values or shape is initialised afterwards.  Returns at once;
 * nothing is recorded.  SL_ESHAPE, SL_EDTYPE: the values do not match the parameter; SL_EINVAL: an argument is NULL.
 *
 *     sl_param_set(weight, sl_load_npy("weight.npy")); */
enum sl_status sl_param_set_at(const char *at, sl_param *param, sl_tensor *values)
{
	SLP_CALL("sl_param_set", at);
	if (!param || !values) {
		if (sl_error() != SL_OK) return sl_error();
		slp_call_fail(at, "sl_param_set", SL_EINVAL, "the %s NULL", param ? "values are" : "parameter is");
		return SL_EINVAL;
	}
	slp_params_lock();
	enum sl_status s = check_values(at, param, values);
	if (s == SL_OK)
		SL_PAUSE
			SL_SCOPE
				s = set(at, param, values);
	slp_params_unlock();
	return s;
}
