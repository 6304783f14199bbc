/* Parameters in files, by their paths in the network. */
#include <stdlib.h>
#include <string.h>

#include "nn/param_names.h"
#include "op.h"
#include "runtime/uncancelled.h"
#include "starling/nn.h"
#include "starling/primitives.h"
#include "tensor/moment.h"

/* ---- names ------------------------------------------------------------------------------------------------------- */

struct named {
	sl_param **params;
	char **paths;
	int count;
};

static void named_free(struct named *n)
{
	for (int i = 0; n->paths && i < n->count; i++) free(n->paths[i]);
	free(n->paths);
	free(n->params);
}

static enum sl_status named_init(const char *at, sl_block *block, struct named *n)
{
	n->params = slp_block_all_params(at, block, &n->count);
	if (!n->params) return sl_error();
	n->paths = slp_calloc((size_t)n->count + 1, sizeof *n->paths);
	bool ok = n->paths != NULL;
	for (int i = 0; ok && i < n->count; i++) ok = (n->paths[i] = slp_param_path(block, n->params[i])) != NULL;
	if (!ok) slp_call_fail(at, "parameters", SL_ENOMEM, "no memory for their names");
	return ok ? SL_OK : SL_ENOMEM;
}

/* ---- saving ------------------------------------------------------------------------------------------------------ */

/* Copies of all values, of one moment; false with an error. */
static bool gather(const char *at, const struct named *n, sl_tensor **tensors)
{
	bool ok = true;
	SLP_MOMENT();
	for (int i = 0; ok && i < n->count; i++)
		ok = (tensors[i] = sl_retain(sl_param_data_at(at, n->params[i], (sl_device){SL_DEVICE_DEFAULT, 0}))) !=
		     NULL;
	return ok && slp_moment_copy(at, tensors, n->count);
}

static enum sl_status save(const char *at, const struct named *n, const char *path)
{
	sl_tensor **tensors = slp_calloc((size_t)n->count + 1, sizeof *tensors);
	if (!tensors) return slp_call_fail(at, "sl_save_params", SL_ENOMEM, "no memory for the list"), SL_ENOMEM;
	bool ok = gather(at, n, tensors);
	enum sl_status s =
	        ok ? slp_arrays_save_as(at, "sl_save_params", path, (const char *const *)n->paths, tensors, n->count)
	           : sl_error();
	for (int i = 0; i < n->count; i++) sl_release(tensors[i]);
	free(tensors);
	return s;
}

/* Writes all parameters of the block and its children to a file, named by their paths ("0.weight", "hidden.bias"); a
 * shared parameter by its first path.  Waits for their values, which are those of one moment: other threads may train
 * meanwhile, and the file contains each of their steps completely or not at all.  The extension chooses the format:
 * .params is MXNet's, .safetensors that of the safetensors library.  SL_ESTATE: a parameter has no values yet;
 * SL_EINVAL: another extension; SL_EIO and others: see io.h.
 *
 *     sl_save_params(net, "mlp.params"); */
enum sl_status sl_save_params_at(const char *at, sl_block *block, const char *path)
{
	SLP_UNCANCELLED();
	SLP_CALL("sl_save_params", at);
	struct named n = {0};
	enum sl_status s = named_init(at, block, &n);
	if (s == SL_OK) s = save(at, &n, path);
	named_free(&n);
	return s;
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

static bool shapes_fit(sl_shape shape, sl_shape with)
{
	bool fit = shape.ndim == with.ndim;
	for (int i = 0; fit && i < shape.ndim; i++) fit = shape.dim[i] < 0 || shape.dim[i] == with.dim[i];
	return fit;
}

/* The data type that a parameter will have: its own, or the file's; half types are for networks that ask for them. */
static enum sl_dtype dtype_for(const sl_param *p, const sl_tensor *t)
{
	return p->data ? p->dtype : slp_dtype_or(p->opts.dtype, slp_promoted(sl_tensor_dtype(t)));
}

bool slp_param_unfit(FILE *out, const char *path, const sl_param *p, const sl_tensor *t)
{
	enum sl_dtype dtype = dtype_for(p, t), from = sl_tensor_dtype(t);
	char is[128], got[128];
	bool rounds = slp_is_float(dtype) && slp_is_float(from) && (slp_is_half(dtype) || slp_is_half(from));
	if (shapes_fit(p->shape, sl_tensor_shape(t)) && (dtype == from || rounds)) return false;
	if (!out) return true;
	fprintf(out, "\n  %s is %s %s in the file, %s %s expected", path, sl_dtype_name(sl_tensor_dtype(t)),
	        sl_shape_string(sl_tensor_shape(t), got), sl_dtype_name(dtype), sl_shape_string(p->shape, is));
	return true;
}

struct findings {
	char *wrong, *partial; /* lines; NULL without memory */
	int nwrong, npartial;
};

/* Names in their order, so that thousands are found as quickly as few. */
struct orders {
	int *file, *network;
};

static int in_file(const struct slp_named_arrays *f, const struct orders *o, const char *name)
{
	return slp_order_find(f->names, o->file, f->count, name);
}

static bool compare(const struct named *n, const struct slp_named_arrays *f, const struct orders *o,
                    struct findings *found)
{
	size_t size[2];
	char text[128], label[160];
	FILE *wrong = slp_memory_file(&found->wrong, &size[0]), *partial = slp_memory_file(&found->partial, &size[1]);
	for (int i = 0; wrong && partial && i < n->count; i++) {
		int k = in_file(f, o, n->paths[i]);
		if (k >= 0)
			found->nwrong +=
			        slp_param_unfit(wrong, slp_named_array_label(f, k, label), n->params[i], f->tensors[k]);
		if (k >= 0) continue;
		found->npartial++;
		fprintf(partial, "\n  %s %s is not in the file", n->paths[i],
		        sl_shape_string(n->params[i]->shape, text));
	}
	for (int k = 0; wrong && partial && k < f->count; k++) {
		if (slp_order_find(n->paths, o->network, n->count, f->names[k]) >= 0) continue;
		found->npartial++;
		fprintf(partial, "\n  %s %s is in the file, but not in the network", slp_named_array_label(f, k, label),
		        sl_shape_string(sl_tensor_shape(f->tensors[k]), text));
	}
	bool ok = wrong && partial;
	if (wrong) ok = !fclose(wrong) && ok;
	if (partial) ok = !fclose(partial) && ok;
	return ok;
}

/* The file's values for a parameter, which the file has, in the parameter's data type. */
static sl_tensor *values_for(const char *at, const sl_param *p, sl_tensor *t)
{
	enum sl_dtype dtype = dtype_for(p, t);
	if (dtype != sl_tensor_dtype(t)) t = sl_cast_at(at, t, dtype);
	return t && slp_host_wait(at, "sl_load_params", t) ? t : NULL;
}

/* Parameters without values first: if memory runs out, these have some, and the others are unchanged. */
static enum sl_status set_all(const char *at, const struct named *n, const struct slp_named_arrays *f,
                              const struct orders *o)
{
	SLP_CHANGE();
	sl_tensor **values = slp_calloc((size_t)n->count + 1, sizeof *values);
	bool ok = values != NULL;
	for (int i = 0; ok && i < n->count; i++) {
		int k = in_file(f, o, n->paths[i]);
		if (k >= 0) ok = (values[i] = values_for(at, n->params[i], f->tensors[k])) != NULL;
	}
	for (int i = 0; ok && i < n->count; i++) {
		if (!values[i] || n->params[i]->data) continue;
		ok = sl_param_set_at(at, n->params[i], values[i]) == SL_OK;
		values[i] = NULL;
	}
	for (int i = 0; ok && i < n->count; i++)
		if (values[i]) ok = slp_param_can_be_set(at, n->params[i], values[i]);
	for (int i = 0; ok && i < n->count; i++)
		if (values[i]) ok = slp_host_copy(at, "sl_load_params", n->params[i]->data, values[i]);
	free(values);
	return ok ? SL_OK : sl_error();
}

static enum sl_status load(const char *at, const char *path, const struct named *n, const struct slp_named_arrays *f,
                           bool lenient)
{
	struct findings found = {0};
	struct orders orders = {slp_order_names(f->names, f->count), slp_order_names(n->paths, n->count)};
	enum sl_status s = SL_OK;
	if (!orders.file || !orders.network || !compare(n, f, &orders, &found)) {
		s = SL_ENOMEM;
		slp_call_fail(at, "sl_load_params", s, "no memory for a comparison");
	} else if (found.nwrong || (found.npartial && !lenient)) {
		s = found.nwrong ? SL_ESHAPE : SL_EINVAL;
		slp_call_fail(at, "sl_load_params", s, "%s does not fit the network:%s%s%s", path, found.wrong,
		              lenient ? "" : found.partial,
		              found.npartial && !found.nwrong ? "\n  (.lenient = true loads what there is)" : "");
	} else if (found.npartial) {
		fprintf(stderr, "sl_load_params at %s: %s, leniently:%s\n", at, path, found.partial);
	}
	if (s == SL_OK)
		SL_PAUSE
			SL_SCOPE
				s = set_all(at, n, f, &orders);
	free(orders.file);
	free(orders.network);
	free(found.wrong);
	free(found.partial);
	return s;
}

/* Gives the parameters of the block and its children the values that sl_save_params wrote; the extension chooses the
 * format.  The network need not be initialised, and shapes that are not known yet come from the file.  Everything is
 * checked first: after an error no values have changed; a parameter that had none may have the file's.  SL_EINVAL if
 * parameters are missing or superfluous, and the message lists them; with .lenient these are reported on stderr and the
 * others loaded, and arrays that no tensor can hold (of other types, sparse ones, without values, of more than 8 axes)
 * are skipped.  Half types are converted between file and parameter; a parameter that is not initialised becomes
 * float32.  SL_ESHAPE: another shape or data type than expected; SL_EIO, SL_EFORMAT and others: see io.h.
 *
 *     sl_load_params(net, "mlp.params");
 *     sl_load_params(backbone, "resnet.safetensors", .lenient = true);
 *
 * With .names, rules translate the names of arrays into paths of this network.  Each rule whose pattern matches a name
 * changes it, and the next rule applies to the new name.  A rule without a path skips arrays; .transposed transposes
 * matrices that other programs store as (inputs, outputs).  Two arrays for one parameter (tied weights) must be equal;
 * otherwise SL_EINVAL.
 *
 *     sl_load_params(net, "torch.safetensors",
 *                    SL_PARAM_NAMES({"_orig_mod.*", "*"}, {"fc1.*", "0.*"}, {"fc2.*", "1.*"}, {"*.num_batches_tracked"})); */
enum sl_status sl_load_params_at(const char *at, sl_block *block, const char *path, struct sl_load_opts opts)
{
	SLP_UNCANCELLED();
	SLP_CALL("sl_load_params", at);
	struct named n = {0};
	struct slp_named_arrays f = {0};
	enum sl_status s = named_init(at, block, &n);
	if (s == SL_OK && !slp_named_arrays_load(at, path, &opts, &f)) s = sl_error();
	if (s == SL_OK) s = load(at, path, &n, &f, opts.lenient);
	slp_named_arrays_free(&f);
	named_free(&n);
	return s;
}
