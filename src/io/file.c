/* Reading files as a whole, and writing them under another name until they are complete. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "io/file.h"
#include "io/regular.h"
#include "number.h"
#include "runtime/budget.h"
#include "runtime/text.h"
#include "op.h"
#include "runtime/uncancelled.h"
#include "starling/io.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the file formats are little-endian; the machine must be, too"
#endif

bool slp_path_ends(const char *path, const char *ending)
{
	size_t n = strlen(path), m = strlen(ending);
	return n > m && !strcmp(path + n - m, ending);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

bool slp_file_fail(struct slp_file *f, enum sl_status status, const char *format, ...)
{
	char text[768];
	SLP_FORMAT(text, sizeof text, format);
	slp_text_escape(text, sizeof text, false);
	if (!f->failed) slp_call_fail(f->at, f->function, status, "%s: %s", f->path, text);
	f->failed = true;
	return false;
}

bool slp_file_spend(struct slp_file *f, double operations)
{
	char why[256];
	return slp_budget_spend(operations, why) || slp_file_fail(f, SL_ETIME, "%s", why);
}

static bool read_all(struct slp_file *f, FILE *file, int64_t size)
{
	if (!slp_file_spend(f, (double)size)) return false;
	f->size = (size_t)size;
	f->data = slp_malloc(f->size + 1);
	if (!f->data) return slp_file_fail(f, SL_ENOMEM, "no memory for its %zu bytes", f->size);
	size_t got = fread(f->data, 1, f->size, file);
	if (ferror(file)) return slp_file_fail(f, SL_EIO, "cannot be read: %s", strerror(errno));
	if (got < f->size) return slp_file_fail(f, SL_EIO, "became shorter while it was read");
	f->data[f->size] = 0;
	return true;
}

bool slp_file_read(struct slp_file *f, const char *at, const char *function, const char *path)
{
	SLP_UNCANCELLED();
	*f = (struct slp_file){.at = at, .function = function, .path = path ? path : "(no path)"};
	if (!path) return slp_file_fail(f, SL_EINVAL, "the path is NULL");
	char why[SLP_WHY];
	int64_t size;
	FILE *file = slp_regular_stream(path, &size, why);
	if (!file) return slp_file_fail(f, SL_EIO, "%s", why);
	bool ok = read_all(f, file, size);
	fclose(file);
	f->whole = ok;
	if (!ok) {
		free(f->data);
		f->data = NULL;
	}
	return ok;
}

/* Its whole pages are zeros from now on. */
void slp_file_forget(struct slp_file *f, const void *data, size_t n)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)data, end = begin + n;
	begin = (begin + page - 1) / page * page;
	end = end / page * page;
	if (f->whole && end > begin) (void)!madvise((void *)begin, end - begin, MADV_DONTNEED); /* else it stays */
}

const void *slp_file_take(struct slp_file *f, uint64_t n, const char *what)
{
	if (f->failed) return NULL;
	if (n > slp_file_left(f)) {
		slp_file_fail(f, SL_EFORMAT, "ends after %zu bytes, within %s", f->size, what);
		return NULL;
	}
	const void *p = f->data + f->pos;
	f->pos += (size_t)n;
	return p;
}

uint64_t slp_file_number(struct slp_file *f, int bytes, const char *what)
{
	uint64_t n = 0;
	const void *p = slp_file_take(f, (uint64_t)bytes, what);
	if (p) memcpy(&n, p, (size_t)bytes);
	return n;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

bool slp_out_open(struct slp_out *o, const char *at, const char *function, const char *path)
{
	*o = (struct slp_out){.at = at, .function = function, .path = path};
	o->file = slp_file_begin(at, function, path);
	o->stream = sl_file_stream(o->file);
	return o->file != NULL;
}

/* A write that the disk refused is reported when the file is closed. */
void slp_out_put(struct slp_out *o, const void *data, size_t bytes)
{
	if (!o->failed && bytes) (void)!fwrite(data, 1, bytes, o->stream);
}

void slp_out_number(struct slp_out *o, uint64_t n, int bytes)
{
	slp_out_put(o, &n, (size_t)bytes);
}

void slp_out_tensor(struct slp_out *o, sl_tensor *t)
{
	if (o->failed || ferror(o->stream)) return;
	const void *p = slp_host_begin(o->at, o->function, t, false);
	if (!p) {
		o->failed = true; /* and recorded */
		return;
	}
	slp_out_put(o, p, sl_tensor_bytes(t));
	slp_host_end(t);
}

static enum sl_status close_all(struct slp_out *const *outs, int count)
{
	sl_file *files[2];
	bool failed = false;
	for (int i = 0; i < count; i++) {
		files[i] = outs[i]->file;
		failed |= outs[i]->failed;
	}
	if (!failed) return slp_file_commit(outs[0]->at, outs[0]->function, files, count);
	for (int i = 0; i < count; i++) sl_file_discard(files[i]);
	return sl_error() != SL_OK ? sl_error() : SL_EIO;
}

enum sl_status slp_out_close(struct slp_out *o)
{
	return close_all((struct slp_out *const[]){o}, 1);
}

enum sl_status slp_out_close_both(struct slp_out *a, struct slp_out *b)
{
	return close_all((struct slp_out *const[]){a, b}, 2);
}
