/* The state of a run: gathers it from its parts, compares it with a file, restores it. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/state.h"
#include "op.h"
#include "runtime/fault.h"
#include "starling/checkpoint.h"
#include "starling/arithmetic.h"

/* ---- arrays and figures ------------------------------------------------------------------------------------------ */

void slp_state_clear(struct slp_state *s)
{
	for (int i = 0; i < s->count; i++) {
		free(s->names[i]);
		sl_release(s->tensors[i]);
	}
	free(s->names);
	free(s->tensors);
	free(s->used);
	json_decref(s->figures);
	*s = (struct slp_state){0};
}

static bool no_memory(struct slp_state *s)
{
	slp_call_fail(s->at, s->function, SL_ENOMEM, "no memory for the run's state");
	return false;
}

static bool grow(struct slp_state *s)
{
	if (s->count < s->capacity) return true;
	int capacity = 2 * s->capacity + 16;
	char **names = slp_realloc(s->names, (size_t)capacity * sizeof *names);
	if (names) s->names = names;
	sl_tensor **tensors = slp_realloc(s->tensors, (size_t)capacity * sizeof *tensors);
	if (tensors) s->tensors = tensors;
	if (names && tensors) s->capacity = capacity;
	return names && tensors;
}

bool slp_state_add(struct slp_state *s, sl_tensor *t, const char *format, ...)
{
	char *name = NULL;
	va_list args;
	if (!slp_tensor_usable(s->at, s->function, t)) return false;
	va_start(args, format);
	name = slp_vformat(format, args);
	va_end(args);
	if (!name || !grow(s)) {
		free(name);
		return no_memory(s);
	}
	s->names[s->count] = name;
	s->tensors[s->count++] = sl_retain(t);
	return true;
}

sl_tensor *slp_state_find(struct slp_state *s, const char *format, ...)
{
	char *name = NULL;
	sl_tensor *found = NULL;
	va_list args;
	va_start(args, format);
	name = slp_vformat(format, args);
	va_end(args);
	for (int i = 0; name && !found && i < s->count; i++) {
		if (strcmp(s->names[i], name)) continue;
		s->used[i] = true;
		found = s->tensors[i];
	}
	free(name);
	return found;
}

int64_t slp_state_integer(const json_t *figures, const char *key)
{
	return json_integer_value(json_object_get(figures, key));
}

bool slp_state_copy(const char *at, sl_tensor *to, sl_tensor *saved)
{
	sl_tensor *copy = sl_copy_to_at(at, saved, sl_tensor_device(to));
	return copy && sl_copy_inplace_at(at, to, copy);
}

/* ---- differences ------------------------------------------------------------------------------------------------- */

enum { MOST_SHOWN = 6 }; /* lines of a part: a message has an end */

FILE *slp_state_difference(struct slp_state *s)
{
	s->ndifferent++;
	return s->shown++ < MOST_SHOWN ? s->differences : NULL;
}

/* Ends the description of a part. */
static void end_part(struct slp_state *s)
{
	if (s->shown > MOST_SHOWN) fprintf(s->differences, "\n  … and %d more", s->shown - MOST_SHOWN);
	s->shown = 0;
}

void slp_state_differs(struct slp_state *s, const char *format, ...)
{
	va_list args;
	FILE *out = slp_state_difference(s);
	if (!out) return;
	va_start(args, format);
	fputs("\n  ", out);
	vfprintf(out, format, args);
	va_end(args);
}

void slp_state_check_type(struct slp_state *s, const char *name, struct slp_type mine, const sl_tensor *saved)
{
	char is[128], was[128];
	if (!saved) {
		slp_state_differs(s, "%s is not in the file", name);
		return;
	}
	if (sl_shape_equal(mine.shape, sl_tensor_shape(saved)) && mine.dtype == sl_tensor_dtype(saved)) return;
	slp_state_differs(s, "%s: %s %s in the file, %s %s here", name, sl_dtype_name(sl_tensor_dtype(saved)),
	                  sl_shape_string(sl_tensor_shape(saved), was), sl_dtype_name(mine.dtype),
	                  sl_shape_string(mine.shape, is));
}

void slp_state_check_tensor(struct slp_state *s, const char *name, const sl_tensor *mine, const sl_tensor *saved)
{
	slp_state_check_type(s, name, mine->type, saved);
}

void slp_state_check_number(struct slp_state *s, const json_t *figures, const char *part, const char *key, double mine)
{
	double saved = json_number_value(json_object_get(figures, key));
	if (saved != mine) slp_state_differs(s, "%s: %s is %g in the file, %g here", part, key, saved, mine);
}

/* Checks the lengths of arrays, and that their elements are not NULL. */
static bool is_complete(const struct sl_checkpoint_opts *o)
{
	bool ok = (o->nmetrics == 0 || o->metrics) && (o->ntensors == 0 || (o->names && o->tensors));
	for (int i = 0; ok && i < o->nmetrics; i++) ok = o->metrics[i] != NULL;
	for (int i = 0; ok && i < o->ntensors; i++) ok = o->names[i] && o->tensors[i];
	return ok && o->nmetrics >= 0 && o->ntensors >= 0;
}

static bool check_opts(struct slp_state *s)
{
	if (is_complete(s->opts)) return true;
	if (sl_error() == SL_OK) slp_call_fail(s->at, s->function, SL_EINVAL, "a metric, a tensor or a name is NULL");
	return false;
}

/* ---- all parts --------------------------------------------------------------------------------------------------- */

static bool save_part(struct slp_state *s, const struct slp_state_part *p)
{
	json_t *figures = json_object();
	if (!figures || json_object_set_new(s->figures, p->key, figures)) return no_memory(s);
	return p->save(s, figures);
}

bool slp_state_prepare(struct slp_state *s, const struct sl_checkpoint_opts *opts)
{
	return !opts->loader || slp_loader_get(s->at, opts->loader, &s->loader);
}

bool slp_state_save(struct slp_state *s)
{
	if (!check_opts(s)) return false;
	s->figures = json_object();
	if (!s->figures) return no_memory(s);
	for (const struct slp_state_part *p = slp_state_parts; p->key; p++)
		if (p->is_there(s->opts) && !save_part(s, p)) return false;
	return true;
}

static void check_parts(struct slp_state *s)
{
	for (const struct slp_state_part *p = slp_state_parts; p->key; p++) {
		const json_t *figures = json_object_get(s->figures, p->key);
		bool mine = p->is_there(s->opts);
		if (mine && json_is_object(figures)) p->check(s, figures);
		else if (mine) slp_state_differs(s, "there is no %s in the file", p->key);
		else if (figures) slp_state_differs(s, "there is a %s in the file, but none here", p->key);
		end_part(s);
	}
	for (int i = 0; i < s->count; i++)
		if (!s->used[i]) slp_state_differs(s, "%s is in the file, but not here", s->names[i]);
	end_part(s);
}

static bool check(struct slp_state *s, const char *path)
{
	char *text = NULL;
	size_t size;
	s->used = slp_calloc((size_t)s->count + 1, sizeof *s->used);
	s->differences = s->used ? slp_memory_file(&text, &size) : NULL;
	if (!s->differences) return no_memory(s);
	check_parts(s);
	bool told = fclose(s->differences) == 0;
	s->differences = NULL;
	if (told && s->ndifferent)
		slp_call_fail(s->at, s->function, SL_EINVAL, "%s belongs to another run:%s", path, text);
	free(text);
	return told ? !s->ndifferent : no_memory(s);
}

/* Values restored before stay. */
static void tell_partial(void)
{
	char text[2048];
	enum sl_status status = sl_error();
	snprintf(text, sizeof text, "%s", sl_error_message());
	sl_error_clear();
	slp_error_set(status, "%s\n  The run is only partly restored: restore it again, or start a new one", text);
}

bool slp_state_restore(struct slp_state *s, const char *path)
{
	if (!check_opts(s) || !check(s, path)) return false;
	bool ok = true;
	for (const struct slp_state_part *p = slp_state_parts; ok && p->key; p++)
		if (p->is_there(s->opts)) ok = p->restore(s, json_object_get(s->figures, p->key));
	if (!ok && sl_error() != SL_OK) tell_partial();
	return ok;
}
