/* Names of parameters in files: rules that translate names of other programs into paths, and a list of a file's
 * contents. */
#include <stdlib.h>
#include <string.h>

#include "nn/param_names.h"
#include "runtime/text.h"
#include "op.h"
#include "starling/nn.h"
#include "starling/primitives.h"

/* ---- rules ------------------------------------------------------------------------------------------------------- */

/* Whether a name is like a pattern with one star at most; the star's text is the `length` bytes at *star. */
static bool is_like(const char *name, const char *pattern, const char **star, size_t *length)
{
	const char *at = strchr(pattern, '*');
	size_t before = at ? (size_t)(at - pattern) : strlen(pattern), after = at ? strlen(at + 1) : 0,
	       n = strlen(name);
	*star = name + before;
	*length = n >= before + after ? n - before - after : 0;
	if (n < before + after || strncmp(name, pattern, before) || (!at && n > before)) return false;
	return !at || !strcmp(name + n - after, at + 1);
}

/* The path with the star's text in the place of its star; malloc'd. */
static char *path_with(const char *path, const char *star, size_t length)
{
	const char *at = strchr(path, '*');
	if (!at) return slp_strdup(path);
	return slp_format("%.*s%.*s%s", (int)(at - path), path, (int)length, star, at + 1);
}

/* Applies all rules in turn to the name of array k; false without memory.  *drop: the array is skipped. */
static bool rename_one(struct slp_named_arrays *f, int k, const struct sl_load_opts *opts, bool *drop)
{
	const char *star;
	size_t length;
	for (int i = 0; i < opts->nnames && !*drop; i++) {
		const struct sl_param_name *rule = &opts->names[i];
		if (!is_like(f->names[k], rule->file, &star, &length)) continue;
		if (!(*drop = !rule->path)) {
			char *name = path_with(rule->path, star, length);
			if (!name) return false;
			free(f->names[k]);
			f->names[k] = name;
		}
		f->turned[k] ^= rule->transposed;
	}
	return true;
}

/* Its place stays empty until all are known that are dropped. */
static void drop_array(struct slp_named_arrays *f, int k)
{
	free(f->names[k]);
	free(f->origins[k]);
	sl_release(f->tensors[k]);
	f->names[k] = f->origins[k] = NULL;
	f->tensors[k] = NULL;
}

static void close_gaps(struct slp_named_arrays *f)
{
	int n = 0;
	for (int k = 0; k < f->count; k++) {
		if (!f->tensors[k]) continue;
		f->names[n] = f->names[k];
		f->origins[n] = f->origins[k];
		f->tensors[n] = f->tensors[k];
		f->turned[n++] = f->turned[k];
	}
	f->count = n;
}

/* ---- arrays that are transposed, and duplicates ------------------------------------------------------------------ */

static bool turn(const char *at, const char *path, struct slp_named_arrays *f, int k)
{
	char text[128];
	sl_tensor *t = NULL;
	sl_shape shape = sl_tensor_shape(f->tensors[k]);
	if (!f->turned[k]) return true;
	if (shape.ndim != 2)
		return slp_call_fail(at, "sl_load_params", SL_ESHAPE,
		                     "%s: %s is %s, but only a matrix can be transposed", path, f->origins[k],
		                     sl_shape_string(shape, text)) != NULL;
	SL_PAUSE
		SL_SCOPE
			t = sl_retain(sl_transpose_at(at, f->tensors[k], (struct sl_reduce_opts){0}));
	if (!t) return false;
	sl_release(f->tensors[k]);
	f->tensors[k] = t;
	return true;
}

/* Whether two arrays are the same, bit by bit. */
static bool are_same(const char *at, sl_tensor *a, sl_tensor *b)
{
	if (sl_tensor_dtype(a) != sl_tensor_dtype(b) || !sl_shape_equal(sl_tensor_shape(a), sl_tensor_shape(b)))
		return false;
	const void *p = slp_host_begin(at, "sl_load_params", a, false);
	const void *q = p ? slp_host_begin(at, "sl_load_params", b, false) : NULL;
	bool same = q && !memcmp(p, q, sl_tensor_bytes(a));
	if (q) slp_host_end(b);
	if (p) slp_host_end(a);
	return same;
}

/* Of two arrays for one parameter, the second is dropped if it is the same: weights that are tied are there twice. */
static bool merge(const char *at, const char *path, struct slp_named_arrays *f)
{
	int *order = slp_order_names(f->names, f->count);
	bool ok = order != NULL;
	if (!ok) slp_call_fail(at, "sl_load_params", SL_ENOMEM, "no memory for names");
	for (int n = 1, i = 0; ok && n < f->count; n++) {
		int k = order[n];
		if (n == 1 || f->tensors[order[n - 1]]) i = order[n - 1]; /* the first of its name */
		if (strcmp(f->names[i], f->names[k])) continue;
		ok = are_same(at, f->tensors[i], f->tensors[k]);
		if (ok) drop_array(f, k);
		else if (sl_error() == SL_OK)
			slp_call_fail(at, "sl_load_params", SL_EINVAL,
			              "%s: %s and %s are both %s here, and they differ", path, f->origins[i],
			              f->origins[k], f->names[i]);
	}
	free(order);
	close_gaps(f);
	return ok;
}

static bool rules_are_given(const char *at, const struct sl_load_opts *opts)
{
	bool ok = opts->nnames >= 0 && (opts->names || !opts->nnames);
	for (int i = 0; ok && i < opts->nnames; i++) ok = opts->names[i].file != NULL;
	if (!ok) slp_call_fail(at, "sl_load_params", SL_EINVAL, "the rules for names, or the name in one, are NULL");
	return ok;
}

bool slp_named_arrays_load(const char *at, const char *path, const struct sl_load_opts *opts,
                           struct slp_named_arrays *f)
{
	*f = (struct slp_named_arrays){0};
	if (!rules_are_given(at, opts)) return false;
	f->count = (opts->lenient ? slp_arrays_load_leniently : slp_arrays_load_as)(at, "sl_load_params", path,
	                                                                            &f->names, &f->tensors);
	if (f->count < 0) {
		f->count = 0;
		return false;
	}
	int all = f->count;
	f->origins = slp_calloc((size_t)all + 1, sizeof *f->origins);
	f->turned = slp_calloc((size_t)all + 1, sizeof *f->turned);
	bool ok = f->origins && f->turned;
	for (int k = 0; ok && k < all; k++) ok = (f->origins[k] = slp_strdup(f->names[k])) != NULL;
	for (int k = 0; ok && k < f->count; k++) {
		bool drop = false;
		ok = rename_one(f, k, opts, &drop);
		if (drop) drop_array(f, k);
	}
	if (ok) close_gaps(f);
	if (!ok) slp_call_fail(at, "sl_load_params", SL_ENOMEM, "no memory for names");
	for (int k = 0; ok && k < f->count; k++) ok = turn(at, path, f, k);
	return ok && merge(at, path, f);
}

void slp_named_arrays_free(struct slp_named_arrays *f)
{
	for (int k = 0; f->origins && k < f->count; k++) free(f->origins[k]);
	free(f->origins);
	free(f->turned);
	slp_arrays_free(f->names, f->tensors, f->count);
}

const char *slp_named_array_label(const struct slp_named_arrays *f, int k, char text[160])
{
	const char *turned = f->turned[k] ? ", transposed" : "";
	if (strcmp(f->names[k], f->origins[k])) snprintf(text, 160, "%s (%s%s)", f->names[k], f->origins[k], turned);
	else
		snprintf(text, 160, "%s%s%s%s", f->names[k], *turned ? " (" : "", *turned ? turned + 2 : "",
		         *turned ? ")" : "");
	return slp_text_escape(text, 160, false);
}

/* ---- a look ------------------------------------------------------------------------------------------------------ */

/* Calls each(name, dtype, shape, context) for every array in a file of parameters, MXNet's or safetensors, in the order
 * of the file, to identify the network that it belongs to.  The whole file is read; arrays of types that no tensor can
 * have are reported on stderr.  SL_EINVAL, SL_EIO, SL_EFORMAT as for sl_load_params.
 *
 *     static void show(const char *name, enum sl_dtype dtype, sl_shape shape, void *context)
 *     {
 *             char text[128];
 *             printf("%s %s %s\n", name, sl_dtype_name(dtype), sl_shape_string(shape, text));
 *     }
 *     sl_list_params("model.safetensors", show, NULL); */
enum sl_status sl_list_params_at(const char *at, const char *path, sl_param_listed *each, void *context)
{
	char **names;
	sl_tensor **tensors;
	SLP_CALL("sl_list_params", at);
	if (!each) {
		slp_call_fail(at, "sl_list_params", SL_EINVAL, "the function is NULL");
		return SL_EINVAL;
	}
	int count = slp_arrays_load_leniently(at, "sl_list_params", path, &names, &tensors);
	if (count < 0) return sl_error();
	for (int i = 0; i < count; i++)
		each(names[i], sl_tensor_dtype(tensors[i]), sl_tensor_shape(tensors[i]), context);
	slp_arrays_free(names, tensors, count);
	return SL_OK;
}
