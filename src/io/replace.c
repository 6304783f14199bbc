/* Files of the program, replaced as a whole: the public interface of the durable writer. */
#include <errno.h>
#include <stdlib.h>

#include "io/durable.h"
#include "io/file.h"
#include "op.h"
#include "runtime/forked.h"
#include "runtime/gate.h"
#include "runtime/uncancelled.h"
#include "starling/io.h"

struct sl_file {
	struct slp_durable durable;
	struct sl_file *next;
	char path[]; /* as the program gave it, for messages */
};

/* Files begun and not ended: each is ended once. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
SLP_FORK_MUTEX(lock);
static sl_file *files_begun;

static void enlist(sl_file *f)
{
	pthread_mutex_lock(&lock);
	f->next = files_begun;
	files_begun = f;
	pthread_mutex_unlock(&lock);
}

/* The file is this thread's to end; false: another call ends it, or has done so. */
static bool take_over(const sl_file *f)
{
	pthread_mutex_lock(&lock);
	sl_file **p = &files_begun;
	while (*p && *p != f) p = &(*p)->next;
	bool found = *p != NULL;
	if (found) *p = f->next;
	pthread_mutex_unlock(&lock);
	return found;
}

static enum sl_status fail(const char *at, const char *function, const char *path, const struct slp_durable *d)
{
	slp_call_fail(at, function, d->error == ENOMEM ? SL_ENOMEM : SL_EIO, "%s: %s: %s", path, d->what,
	              strerror(d->error));
	errno = d->error;
	return sl_error();
}

sl_file *slp_file_begin(const char *at, const char *function, const char *path)
{
	if (!path) return slp_call_fail(at, function, SL_EINVAL, "the path is NULL");
	size_t length = strlen(path);
	sl_file *f = slp_malloc(sizeof *f + length + 1);
	if (!f) return slp_call_fail(at, function, SL_ENOMEM, "no memory to write %s", path);
	memcpy(f->path, path, length + 1);
	if (slp_durable_open(&f->durable, path)) return enlist(f), f;
	fail(at, function, path, &f->durable);
	free(f);
	return NULL;
}

/* Begins a file that replaces the one at path once it is complete (sl_file_commit): until then the old file is
 * unchanged, whatever happens to the program or the machine.  The new file is written under a temporary name in the
 * same folder, and gets the mode of the old one; symbolic links are followed.  Anything but a regular file, such as
 * /dev/stdout or a pipe, is written in place.  End it with sl_file_commit or sl_file_discard.  NULL with SL_EIO: it
 * cannot be written (errno gives the reason); SL_EINVAL: the path is NULL.
 *
 *     sl_file *f = sl_file_begin("figures.csv");
 *     if (f) fprintf(sl_file_stream(f), "%d\n", 42);
 *     if (sl_file_commit(f) != SL_OK) fprintf(stderr, "%s\n", sl_error_message()); */
sl_file *sl_file_begin_at(const char *at, const char *path)
{
	SLP_CALL("sl_file_begin", at);
	return slp_file_begin(at, "sl_file_begin", path);
}

/* The stream to write to; NULL for NULL.  It belongs to the file: do not close it.  sl_file_commit reports failed
 * writes. */
FILE *sl_file_stream(sl_file *file)
{
	return file ? file->durable.stream : NULL;
}

/* The temporary path of the file, for other programs that write it; it lives as long as the file.  NULL for NULL. */
const char *sl_file_name(const sl_file *file)
{
	if (!file) return NULL;
	return file->durable.part ? file->durable.part : file->durable.target;
}

static void discard(sl_file *file)
{
	slp_durable_discard(&file->durable);
	slp_later(free, file);
}

/* All of them are this thread's to end, or none: those that it has taken over before it met another's are given up. */
static bool take_all(sl_file *const *files, int count)
{
	int taken = 0;
	while (taken < count && take_over(files[taken])) taken++;
	for (int i = 0; taken < count && i < taken; i++) discard(files[i]);
	return taken == count;
}

enum sl_status slp_file_commit(const char *at, const char *function, sl_file *const *files, int count)
{
	SLP_UNCANCELLED();
	if (!take_all(files, count)) {
		slp_call_fail(at, function, SL_ESTATE,
		              "a file was committed or discarded already, or another thread does it");
		return SL_ESTATE;
	}
	struct slp_durable **durable = slp_calloc((size_t)count + 1, sizeof *durable);
	enum sl_status s = SL_OK;
	if (!durable) {
		for (int i = 0; i < count; i++) discard(files[i]);
		slp_call_fail(at, function, SL_ENOMEM, "no memory for a list of files");
		return SL_ENOMEM;
	}
	for (int i = 0; i < count; i++) durable[i] = &files[i]->durable;
	if (!slp_durable_commit(durable, count))
		for (int i = 0; i < count && s == SL_OK; i++)
			if (durable[i]->error) s = fail(at, function, files[i]->path, durable[i]);
	for (int i = 0; i < count; i++) slp_later(free, files[i]);
	free(durable);
	return s;
}

/* Completes files and gives them their names, all or none of them: flushes them to the disk (fsync), renames them, and
 * flushes their folders.  Two renames are not one atomic step: if the machine stops between them, the first file is new
 * and the second old.  The files are freed.  If one is NULL after an earlier mistake, the others are discarded.
 * SL_EIO: one cannot be written (errno gives the reason), and the old files are unchanged. */
enum sl_status sl_file_commit_all_at(const char *at, sl_file *const *files, int count)
{
	SLP_CALL("sl_file_commit_all", at);
	bool whole = count > 0 && files;
	for (int i = 0; files && i < count; i++) whole &= files[i] != NULL;
	if (whole) return slp_file_commit(at, "sl_file_commit", files, count);
	for (int i = 0; files && i < count; i++) sl_file_discard(files[i]);
	if (sl_error() == SL_OK) slp_call_fail(at, "sl_file_commit", SL_EINVAL, "a file is NULL");
	return sl_error();
}

/* Discards a new file; the old one stays.  NULL is ignored, and so is a file that is already committed or discarded. */
void sl_file_discard(sl_file *file)
{
	if (file && take_over(file)) discard(file);
}
