/* Resuming from checkpoints: reads and verifies the newest undamaged one, and restores the state of a run. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "checkpoint/state.h"
#include "dist/dist.h"
#include "io/numbered.h"
#include "io/params.h"
#include "runtime/budget.h"
#include "op.h"
#include "runtime/engine.h"
#include "runtime/uncancelled.h"
#include "starling/checkpoint.h"
#include "tensor/moment.h"

struct sl_checkpoint {
	struct slp_guard guard;
	char *path;
	struct slp_state state;
};

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Takes the arrays over. */
static bool take(const char *at, const char *path, struct slp_arrays *arrays, struct sl_checkpoint *c)
{
	json_error_t e;
	c->state = (struct slp_state){.names = arrays->names, .tensors = arrays->tensors, .count = arrays->count};
	*arrays = (struct slp_arrays){.state = arrays->state};
	c->state.figures = json_loads(arrays->state, JSON_REJECT_DUPLICATES, &e);
	c->path = slp_strdup(path);
	if (!c->path) slp_call_fail(at, "sl_checkpoint_open", SL_ENOMEM, "no memory for a checkpoint");
	else if (!json_is_object(c->state.figures))
		slp_call_fail(at, "sl_checkpoint_open", SL_EFORMAT, "%s: has a state that is no JSON: %s", path,
		              e.text);
	return c->path && json_is_object(c->state.figures);
}

sl_checkpoint *slp_checkpoint_parse(struct slp_file *f)
{
	struct slp_arrays arrays = {.keep_state = true};
	sl_checkpoint *c = slp_calloc(1, sizeof *c);
	if (!c) return slp_call_fail(f->at, f->function, SL_ENOMEM, "no memory for a checkpoint");
	bool ok = slp_safetensors_parse(f, &arrays) && take(f->at, f->path, &arrays, c);
	slp_arrays_free(arrays.names, arrays.tensors, arrays.count);
	free(arrays.state);
	if (ok) return c;
	sl_checkpoint_close(c);
	return NULL;
}

static sl_checkpoint *open_file(const char *at, const char *path)
{
	struct slp_file f;
	SLP_BUDGET(path);
	if (!slp_file_read(&f, at, "sl_checkpoint_open", path)) return NULL;
	sl_checkpoint *c = slp_checkpoint_parse(&f);
	free(f.data);
	return c;
}

/* ---- folders ----------------------------------------------------------------------------------------------------- */

/* Whether another file may be better. */
static bool is_damage(void)
{
	return sl_error() == SL_EFORMAT || sl_error() == SL_EIO;
}

/* Tries the next one, and says so; the error stays if there is none. */
static sl_checkpoint *open_before(const char *at, const char *folder, const int64_t *numbers, int count)
{
	sl_checkpoint *c = NULL;
	for (int i = 0; !c && i < count && (i == 0 || is_damage()); i++) {
		char *path = slp_numbered_path(folder, numbers[i]);
		if (!path) return slp_call_fail(at, "sl_checkpoint_open", SL_ENOMEM, "no memory for a path");
		if (i) {
			fprintf(stderr, "%s\n%s, the checkpoint before it, is used instead\n", sl_error_message(),
			        path);
			sl_error_clear();
		}
		c = open_file(at, path);
		free(path);
	}
	return c;
}

static sl_checkpoint *open_folder(const char *at, const char *folder)
{
	int count;
	int64_t *numbers = slp_numbered_list(folder, &count);
	if (!numbers)
		return slp_call_fail(at, "sl_checkpoint_open", SL_EIO, "%s: cannot be read: %s", folder,
		                     strerror(errno));
	sl_checkpoint *c = open_before(at, folder, numbers, count);
	if (!count) slp_call_fail(at, "sl_checkpoint_open", SL_EIO, "%s: has no checkpoints", folder);
	free(numbers);
	return c;
}

/* The number of checkpoints in a folder; 0 if it cannot be read. */
int sl_checkpoint_count(const char *folder)
{
	int count = 0;
	int64_t *numbers = folder ? slp_numbered_list(folder, &count) : NULL;
	free(numbers);
	return numbers ? count : 0;
}

/* ---- several processes ------------------------------------------------------------------------------------------- */

static sl_checkpoint *open_here(const char *at, const char *path)
{
	struct stat s;
	return stat(path, &s) == 0 && S_ISDIR(s.st_mode) ? open_folder(at, path) : open_file(at, path);
}

/* Gives all the bytes of rank 0's file; false with an error recorded. */
static bool give_to_all(struct slp_file *f)
{
	uint64_t size = f->size;
	if (slp_dist_broadcast_now(f->at, "the size of a checkpoint", &size, sizeof size) != SL_OK) return false;
	if (slp_dist.rank) f->data = slp_malloc(size + 1);
	const char *wrong = f->data ? "" : "no memory for a checkpoint";
	if (slp_dist_agree(f->at, f->function, wrong) != SL_OK) return false;
	f->size = size;
	f->data[size] = 0;
	return slp_dist_broadcast_now(f->at, "a checkpoint", f->data, size) == SL_OK;
}

/* Rank 0 chooses the file and reads it; the others need not see it. */
static sl_checkpoint *open_together(const char *at, const char *path)
{
	struct slp_file f = {.at = at, .function = "sl_checkpoint_open", .path = path};
	sl_checkpoint *c = slp_dist.rank ? NULL : open_here(at, path);
	bool ok = slp_dist.rank || (c && slp_file_read(&f, at, "sl_checkpoint_open", c->path));
	if (slp_dist_agree(at, "sl_checkpoint_open", ok ? "" : sl_error_message()) != SL_OK) ok = false;
	ok = ok && give_to_all(&f);
	if (ok && slp_dist.rank) c = slp_checkpoint_parse(&f);
	free(f.data);
	if (ok) return c;
	sl_checkpoint_close(c);
	return NULL;
}

/* ---- the interface ----------------------------------------------------------------------------------------------- */

/* Reads a checkpoint and verifies its checksums.  path is a file, or a folder of checkpoints, of which the newest is
 * read; damaged ones are reported on standard error and skipped.  Close it with sl_checkpoint_close.  If several
 * processes train together (dist.h), all must call it; rank 0 reads, and sends the contents to all.  NULL with
 * SL_EFORMAT: the file is damaged, or no checkpoint; SL_EIO and others: see io.h.
 *
 *     sl_checkpoint *c = sl_checkpoint_open("run");
 *     puts(sl_checkpoint_note(c)); */
sl_checkpoint *sl_checkpoint_open_at(const char *at, const char *path)
{
	SLP_UNCANCELLED();
	SLP_CALL("sl_checkpoint_open", at);
	if (!path) return slp_call_fail(at, "sl_checkpoint_open", SL_EINVAL, "the path is NULL");
	if (slp_engine_need(at) != SL_OK) return NULL;
	if (sl_error() != SL_OK) return NULL; /* the caller checks the error */
	return slp_dist.size > 1 ? open_together(at, path) : open_here(at, path);
}

/* The path of the file that the checkpoint was read from; NULL for NULL. */
const char *sl_checkpoint_path(const sl_checkpoint *checkpoint)
{
	return checkpoint ? checkpoint->path : NULL;
}

/* The note that the program saved with the checkpoint, "" if there was none; NULL for NULL. */
const char *sl_checkpoint_note(const sl_checkpoint *checkpoint)
{
	if (!checkpoint) return NULL;
	const char *note =
	        json_string_value(json_object_get(json_object_get(checkpoint->state.figures, "counters"), "note"));
	return note ? note : "";
}

/* Restores a run to its saved state; the options must name the same parts as when it was saved.  Everything is checked
 * first: after SL_EINVAL nothing has changed, and the message lists the differences, one on each line: parameters, the
 * optimiser, batch size, data set, ….  After SL_ENOMEM some parts may have been restored, and the message says so: the
 * call can be repeated.  Learning rate, schedule, the loader's seed and random numbers continue as saved, whatever the
 * program set before.  The program then computes the same bits as a run that never stopped, if it splits its batches in
 * the same way, on any devices and under any policy; doc/design.md explains when the number of threads of a team
 * matters. */
enum sl_status sl_checkpoint_restore_at(const char *at, sl_checkpoint *checkpoint, struct sl_checkpoint_opts opts)
{
	SLP_CALL("sl_checkpoint_restore", at);
	if (!slp_given(at, "sl_checkpoint_restore", "checkpoint", checkpoint)) return sl_error();
	SLP_GUARD(&checkpoint->guard, at, "sl_checkpoint_restore", SL_ESTATE);
	struct slp_state *s = &checkpoint->state;
	bool ok = false;
	s->at = at;
	s->function = "sl_checkpoint_restore";
	s->opts = &opts;
	s->ndifferent = 0;
	SLP_CHANGE();
	SL_PAUSE
		SL_SCOPE
			ok = slp_state_restore(s, checkpoint->path);
	free(s->used);
	s->used = NULL;
	s->opts = NULL;
	return ok ? SL_OK : sl_error() != SL_OK ? sl_error() : SL_EINVAL;
}

/* Frees a checkpoint; the file stays.  NULL is ignored. */
void sl_checkpoint_close(sl_checkpoint *checkpoint)
{
	if (!checkpoint) return;
	slp_state_clear(&checkpoint->state);
	free(checkpoint->path);
	free(checkpoint);
}

/* Restores a run to its saved state: sl_checkpoint_open, sl_checkpoint_restore and sl_checkpoint_close in one call.
 *
 *     if (sl_checkpoint_load("run", .trainer = trainer, .loader = loader, .epoch = &epoch) != SL_OK)
 *         fprintf(stderr, "%s\n", sl_error_message()); */
enum sl_status sl_checkpoint_load_at(const char *at, const char *path, struct sl_checkpoint_opts opts)
{
	SLP_CALL("sl_checkpoint_load", at);
	sl_checkpoint *c = sl_checkpoint_open_at(at, path);
	if (!c) return sl_error() != SL_OK ? sl_error() : SL_EINVAL;
	enum sl_status s = sl_checkpoint_restore_at(at, c, opts);
	sl_checkpoint_close(c);
	return s;
}
