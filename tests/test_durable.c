/* Files that are replaced as a whole: modes, links, several together, and every system call failing once. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <starling.h>

#include "check.h"
#include "folder.h"
#include "io/durable.h"
#include "io_faults.h"
#include "starling/io.h"

static enum sl_status put(const char *path, const char *text)
{
	sl_file *f = sl_file_begin(path);
	if (f) fputs(text, sl_file_stream(f));
	return sl_file_commit(f);
}

static bool has(const char *path, const char *text)
{
	size_t size;
	char *data = slp_read_file(path, &size);
	bool same = data && size == strlen(text) && !memcmp(data, text, size);
	free(data);
	return same;
}

/* How many files the scratch folder has. */
static int files_there(void)
{
	char path[PATH_MAX];
	int count = 0;
	DIR *dir = opendir(slp_scratch_path("", path));
	for (struct dirent *e; dir && (e = readdir(dir));) count += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	if (dir) closedir(dir);
	return count;
}

/* Beyond ulimit -f the writer gets a signal: it must not end the program. */
static void test_size_limit(void)
{
	static char text[1 << 16];
	char path[PATH_MAX];
	struct rlimit before;
	memset(text, 'x', sizeof text - 1);
	CHECK_OK(put(slp_scratch_path("limited", path), "before"));
	CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
	CHECK(setrlimit(RLIMIT_FSIZE, &(struct rlimit){4096, before.rlim_max}) == 0);
	enum sl_status s = put(path, text);
	CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
	CHECK(s == SL_EIO && strstr(sl_error_message(), strerror(EFBIG)));
	sl_error_clear();
	CHECK(has(path, "before"));
	unlink(path);
}

/* ---- what is kept ------------------------------------------------------------------------------------------------ */

static void check_mode(const char *path, mode_t mode)
{
	struct stat s = {0};
	CHECK(stat(path, &s) == 0);
	CHECK_SAYING((s.st_mode & 07777) == mode, "%s has the mode %o, %o expected", path, s.st_mode & 07777, mode);
}

static void test_modes(void)
{
	static const mode_t modes[] = {0600, 0640, 0664, 0755, 0400};
	char path[PATH_MAX];
	slp_scratch_path("a", path);
	mode_t mask = umask(027);
	CHECK_OK(put(path, "new"));
	umask(mask);
	check_mode(path, 0640);
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
		chmod(path, modes[i]);
		CHECK_OK(put(path, "again"));
		check_mode(path, modes[i]);
		CHECK(has(path, "again"));
	}
	remove(path);
}

/* Through relative, absolute and chained links, and one that leads nowhere yet. */
static void test_links(void)
{
	char path[PATH_MAX], link_path[PATH_MAX], chain[PATH_MAX];
	struct stat s;
	slp_scratch_path("real", path);
	slp_scratch_path("link", link_path);
	slp_scratch_path("chain", chain);
	for (int absolute = 0; absolute < 2; absolute++) {
		CHECK(symlink(absolute ? path : "real", link_path) == 0 && symlink("link", chain) == 0);
		for (int again = 0; again < 2; again++) {
			CHECK_OK(put(chain, again ? "second" : "first"));
			CHECK(lstat(chain, &s) == 0 && S_ISLNK(s.st_mode));
			CHECK(lstat(link_path, &s) == 0 && S_ISLNK(s.st_mode));
			CHECK(lstat(path, &s) == 0 && S_ISREG(s.st_mode) && has(path, again ? "second" : "first"));
		}
		CHECK(!remove(path) && !remove(link_path) && !remove(chain));
	}
	CHECK(symlink("link", link_path) == 0);
	CHECK_STATUS(put(link_path, "x"), SL_EIO, link_path, strerror(ELOOP));
	sl_error_clear();
	remove(link_path);
}

static void test_names(void)
{
	char path[PATH_MAX], name[NAME_MAX + 1];
	memset(name, 'n', NAME_MAX);
	name[NAME_MAX] = '\0';
	slp_scratch_path(name, path);
	CHECK_OK(put(path, "the longest name that there can be"));
	CHECK(has(path, "the longest name that there can be"));
	remove(path);
	CHECK_STATUS(put("/nowhere/x", ""), SL_EIO, "/nowhere/x", "cannot be written", strerror(ENOENT));
	sl_error_clear();
	CHECK_STATUS(put(NULL, ""), SL_EINVAL, "the path is NULL");
	sl_error_clear();
	CHECK_STATUS(put("/dev/full", "x"), SL_EIO, "/dev/full", strerror(ENOSPC));
	sl_error_clear();
	CHECK_OK(put("/dev/null", "x"));
	CHECK(files_there() == 0);
}

/* Until it is committed the old one is there; writers of the same file do not disturb each other. */
static void test_unfinished(void)
{
	char path[PATH_MAX];
	slp_scratch_path("a", path);
	CHECK_OK(put(path, "old"));
	sl_file *a = sl_file_begin(path), *b = sl_file_begin(path), *c = sl_file_begin(path);
	fputs("a", sl_file_stream(a));
	fputs("b", sl_file_stream(b));
	CHECK(has(path, "old") && files_there() == 4);
	CHECK(strcmp(sl_file_name(a), sl_file_name(b)) != 0);
	CHECK_OK(sl_file_commit(b));
	CHECK(has(path, "b"));
	CHECK_OK(sl_file_commit(a));
	CHECK(has(path, "a"));
	sl_file_discard(c);
	CHECK(has(path, "a") && files_there() == 1);
	remove(path);
}

static bool is_a(const char *target)
{
	return !strcmp(target, "a");
}

/* Files of others that look like those of killed writers stay. */
static void test_foreign_files(void)
{
	static const char *const names[] = {".x.part",     "a.part",         ".a.part",
	                                    ".part",       ".a.1-2-3.part~", ".b.1-2-3.part",
	                                    ".a.1-2.part", ".a.1-2-g.part",  ".a.1-2-3.old"};
	char path[PATH_MAX], folder[PATH_MAX];
	int count = sizeof names / sizeof *names;
	for (int i = 0; i < count; i++) CHECK_OK(put(slp_scratch_path(names[i], path), "mine"));
	CHECK_OK(put(slp_scratch_path(".a.1f-0-3c.part", path), ""));
	slp_durable_sweep(slp_scratch_path("", folder), is_a);
	CHECK(files_there() == count && access(path, F_OK));
	for (int i = 0; i < count; i++) remove(slp_scratch_path(names[i], path));
}

/* What killed writers left is swept, what is being written is not. */
static void test_sweep(void)
{
	char path[PATH_MAX], folder[PATH_MAX];
	slp_scratch_path("a", path);
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		struct slp_durable d;
		_exit(!slp_durable_open(&d, path));
	}
	int status = 1;
	CHECK(waitpid(child, &status, 0) == child && status == 0 && files_there() == 1);
	sl_file *mine = sl_file_begin(path);
	slp_durable_sweep(slp_scratch_path("", folder), is_a);
	CHECK(files_there() == 1);
	CHECK_OK(sl_file_commit(mine));
	CHECK(has(path, "") && files_there() == 1);
	remove(path);
}

/* ---- failing calls ----------------------------------------------------------------------------------------------- */

/* Something that writes files, told whether to write the old or the new values. */
struct writer {
	const char *name;
	enum sl_status (*write)(bool new);
	const char *files[2];
};

static enum sl_status write_array(const char *name, int64_t elements, bool new)
{
	char path[PATH_MAX];
	enum sl_status s;
	SL_SCOPE
		s = sl_save_npy(sl_full(SL_SHAPE(elements), new), slp_scratch_path(name, path));
	return s;
}

static enum sl_status write_npy(bool new)
{
	return write_array("x.npy", 5000, new);
}

/* Two blocks of a file and a part of one. */
enum { ELEMENTS = 700001 };

static enum sl_status write_blocks(bool new)
{
	return write_array("y.npy", ELEMENTS, new);
}

static enum sl_status write_text(bool new)
{
	char path[PATH_MAX];
	return put(slp_scratch_path("x.txt", path), new ? "new" : "old");
}

static sl_block *network(bool new)
{
	sl_block *net = sl_sequential(sl_dense(new ? 4 : 3, .in_units = 20));
	sl_initialize(net);
	return net;
}

static enum sl_status write_params(bool new)
{
	char path[PATH_MAX];
	sl_block *net = network(new);
	enum sl_status s = sl_save_params(net, slp_scratch_path("x.params", path));
	sl_block_free(net);
	return s;
}

static enum sl_status write_pair(bool new)
{
	char path[PATH_MAX];
	sl_block *net = network(new);
	enum sl_status s;
	SL_SCOPE
		s = sl_export(net, slp_scratch_path("x", path), SL_SHAPES(SL_SHAPE(1, 20)));
	sl_block_free(net);
	return s;
}

static const struct writer writers[] = {
        {"sl_file", write_text, {"x.txt", NULL}},
        {"npy", write_npy, {"x.npy", NULL}},
        {"blocks", write_blocks, {"y.npy", NULL}},
        {"params", write_params, {"x.params", NULL}},
        {"export", write_pair, {"x-symbol.json", "x-0000.params"}},
};

struct contents {
	char *data[2];
	size_t size[2];
};

static struct contents read_both(const struct writer *w)
{
	struct contents c = {0};
	char path[PATH_MAX];
	for (int i = 0; i < 2 && w->files[i]; i++)
		c.data[i] = slp_read_file(slp_scratch_path(w->files[i], path), &c.size[i]);
	return c;
}

static void free_both(struct contents *c)
{
	free(c->data[0]);
	free(c->data[1]);
}

static bool equal(const struct contents *a, const struct contents *b)
{
	bool same = true;
	for (int i = 0; i < 2; i++)
		same &= !a->data[i] == !b->data[i] &&
		        (!a->data[i] || (a->size[i] == b->size[i] && !memcmp(a->data[i], b->data[i], a->size[i])));
	return same;
}

/* The k-th call of a kind fails: all files are old, or, where only the last word is missing, all are new.  false: there
 * are not so many calls. */
static bool check_fault(const struct writer *w, enum io_call call, int k, int error)
{
	CHECK_OK(w->write(false));
	struct contents old = read_both(w);
	int there = files_there();
	io_fail(call, k, error);
	enum sl_status s = w->write(true);
	bool came = io_failed();
	io_fail(call, 0, 0);
	if (came && call != IO_link) CHECK_STATUS(s, SL_EIO, strerror(error), "test_durable.c");
	else CHECK_SAYING(s == SL_OK, "%s: %s", w->name, sl_error_message());
	sl_error_clear();
	struct contents now = read_both(w);
	bool kept = equal(&now, &old), late = call == IO_fsync && k > (w->files[1] ? 2 : 1);
	CHECK_SAYING(files_there() == there, "%s: %s %d leaves %d files instead of %d", w->name, io_names[call], k,
	             files_there(), there);
	if (s != SL_OK && !late)
		CHECK_SAYING(kept, "%s: %s %d fails, and the old files are gone", w->name, io_names[call], k);
	else CHECK_SAYING(!kept, "%s: %s %d: the old files are still there", w->name, io_names[call], k);
	free_both(&now);
	free_both(&old);
	return came;
}

static void test_faults(void)
{
	static const int errors[] = {ENOSPC, EIO};
	for (size_t i = 0; i < sizeof writers / sizeof *writers; i++) {
		const struct writer *w = &writers[i];
		char path[PATH_MAX];
		int faults = 0;
		for (enum io_call call = 0; call < IO_COUNT; call++)
			for (size_t e = 0; e < sizeof errors / sizeof *errors; e++)
				for (int k = 1; check_fault(w, call, k, errors[e]); k++) faults++;
		CHECK_SAYING(faults >= 10, "%s: only %d calls could fail", w->name, faults);
		for (int f = 0; f < 2 && w->files[f]; f++) remove(slp_scratch_path(w->files[f], path));
	}
}

/* Files that were not there before are not there after a failure. */
static void test_new_files(void)
{
	for (size_t i = 0; i < sizeof writers / sizeof *writers; i++) {
		const struct writer *w = &writers[i];
		for (int k = 1; k <= (w->files[1] ? 2 : 1); k++) {
			io_fail(IO_rename, k, EIO);
			CHECK_STATUS(w->write(true), SL_EIO, "cannot be renamed to its final name");
			io_fail(IO_rename, 0, 0);
			sl_error_clear();
			CHECK_SAYING(files_there() == 0, "%s leaves %d files", w->name, files_there());
		}
	}
}

/* A disk that takes nothing past the system's cache: it goes through it. */
static void test_refused_blocks(void)
{
	char path[PATH_MAX];
	size_t size;
	for (int k = 1; k <= 2; k++) {
		io_fail(IO_write, k, EINVAL);
		CHECK_OK(write_blocks(true));
		if (!io_failed()) puts("SKIP: here nothing goes past the system's cache");
		io_fail(IO_write, 0, 0);
		float *data = (float *)(void *)slp_read_file(slp_scratch_path("y.npy", path), &size);
		size_t wrong = 0;
		CHECK(data && size > 4 * ELEMENTS &&
		      size % 64 == 4 * ELEMENTS % 64); /* the header is a multiple of 64 */
		for (size_t i = size / 4 - ELEMENTS; data && i < size / 4; i++) wrong += data[i] != 1;
		CHECK(wrong == 0);
		free(data);
		remove(path);
	}
}

static const struct slp_test kept[] = {
        {"modes", test_modes},
        {"links", test_links},
        {"names", test_names},
        {"unfinished", test_unfinished},
        {"swept", test_sweep},
        {"others' files are not swept", test_foreign_files},
        {"limit of sizes", test_size_limit},
        {0},
};
static const struct slp_test failing[] = {
        {"each call", test_faults}, {"new files", test_new_files}, {"refused blocks", test_refused_blocks}, {0}};

int main(int argc, char **argv)
{
	static const struct slp_suite suites[] = {
	        {.name = "kept", .tests = kept, .start = slp_start_with_scratch, .stop = slp_stop_with_scratch},
	        {.name = "failing", .tests = failing, .start = slp_start_with_scratch, .stop = slp_stop_with_scratch},
	        {0},
	};
	return slp_test_main(argc, argv, suites);
}
