/* Files that are replaced as a whole: written under another name, flushed, renamed, the folder flushed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "io/durable.h"

static bool fail(struct slp_durable *d, const char *what)
{
	if (!d->error) {
		d->error = errno ? errno : EIO;
		d->what = what;
	}
	return false;
}

static bool no_memory(struct slp_durable *d)
{
	errno = ENOMEM;
	return fail(d, "no memory to write it");
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* How long the folder is in a path, with its slash. */
static int folder_length(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? (int)(slash + 1 - path) : 0;
}

/* The target of a symbolic link, relative to the start of the link's path; takes the path. */
static char *follow(char *path, const char *to)
{
	char *next = NULL;
	int length = *to == '/' ? 0 : folder_length(path);
	if (asprintf(&next, "%.*s%s", length, path, to) < 0) next = NULL;
	free(path);
	return next;
}

/* The path without symbolic links at its end, whether there is a file or not. */
static bool resolve(struct slp_durable *d, const char *path)
{
	enum { MOST_LINKS = 40 };
	char to[PATH_MAX];
	d->target = strdup(path);
	for (int i = 0; d->target && i < MOST_LINKS; i++) {
		ssize_t n = readlink(d->target, to, sizeof to - 1);
		if (n < 0) return true; /* no link, or nothing yet */
		to[n] = '\0';
		d->target = follow(d->target, to);
	}
	if (!d->target) return no_memory(d);
	errno = ELOOP;
	return fail(d, "cannot be written");
}

/* FOLDER/.NAME.NUMBERS.ENDING, a unique name. */
static char *name_beside(const char *target, const char *ending)
{
	enum { SHOWN = 200 }; /* of the name: all of it must fit into NAME_MAX */
	static atomic_uint count;
	struct timespec now;
	char *name;
	int folder = folder_length(target);
	clock_gettime(CLOCK_REALTIME, &now);
	if (asprintf(&name, "%.*s.%.*s.%x-%x-%lx.%s", folder, target, SHOWN, target + folder, (unsigned)getpid(),
	             atomic_fetch_add(&count, 1), (unsigned long)now.tv_nsec, ending) < 0)
		return NULL;
	return name;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* A file is written in blocks, and whole blocks go past the system's cache where the file system can do that: with the
 * cache, writing 89 MB took 37 ms of a processor, without it 13 ms, copies into blocks and all; and nothing that is
 * read again is pushed out.  All disks are content with multiples of 4096. */
enum { BLOCK = 1 << 20, ALIGNMENT = 4096 };

static bool set_direct(struct slp_durable *d, bool direct)
{
	int flags = fcntl(d->fd, F_GETFL);
	bool ok = flags >= 0 && fcntl(d->fd, F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
	if (ok) d->direct = direct;
	return ok;
}

/* Whether to try again: an interrupted call, or a disk that requires another alignment. */
static bool again(struct slp_durable *d)
{
	return errno == EINTR || (errno == EINVAL && d->direct && set_direct(d, false));
}

/* Beyond a limit of the size of files (ulimit -f) the thread that writes gets a signal, which would end the program. */
static ssize_t write_unsignalled(int fd, const char *data, size_t size)
{
	sigset_t limit, before;
	sigemptyset(&limit);
	sigaddset(&limit, SIGXFSZ);
	bool blocked = pthread_sigmask(SIG_BLOCK, &limit, &before) == 0;
	ssize_t n = write(fd, data, size);
	int error = errno;
	if (blocked && n < 0 && error == EFBIG && !sigismember(&before, SIGXFSZ))
		(void)sigtimedwait(&limit, NULL, &(struct timespec){0});
	if (blocked) pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = error;
	return n;
}

static bool write_all(struct slp_durable *d, const char *data, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = write_unsignalled(d->fd, data + done, size - done);
		if (n < 0 && again(d)) continue;
		if (n <= 0) return fail(d, "cannot be written");
		done += (size_t)n;
	}
	return true;
}

/* The last block is seldom a whole one. */
static bool write_block(struct slp_durable *d)
{
	size_t size = d->filled;
	bool direct = size == BLOCK;
	if (d->direct != direct) (void)set_direct(d, direct); /* if that is impossible, the cache does it */
	d->filled = 0;
	return write_all(d, d->block, size);
}

static ssize_t write_some(void *cookie, const char *data, size_t size)
{
	struct slp_durable *d = cookie;
	if (!d->block) return write_all(d, data, size) ? (ssize_t)size : 0;
	for (size_t done = 0, n; done < size; done += n) {
		n = size - done < BLOCK - d->filled ? size - done : BLOCK - d->filled;
		memcpy(d->block + d->filled, data + done, n);
		d->filled += n;
		if (d->filled == BLOCK && !write_block(d)) return 0;
	}
	return (ssize_t)size;
}

/* Mode and owner as before; the owner as far as that is allowed. */
static bool keep_mode(struct slp_durable *d, const struct stat *before)
{
	struct stat now;
	if (fstat(d->fd, &now)) return fail(d, "cannot be written");
	bool other = now.st_uid != before->st_uid || now.st_gid != before->st_gid;
	mode_t mode = before->st_mode & 07777;
	if (other && fchown(d->fd, before->st_uid, before->st_gid)) mode &= 0777;
	return fchmod(d->fd, mode) == 0 || fail(d, "cannot be given its old mode");
}

/* The lock shows slp_durable_sweep that the writer is alive. */
static bool open_part(struct slp_durable *d)
{
	enum { TRIES = 16 };
	for (int i = 0; i < TRIES; i++) {
		free(d->part);
		d->part = name_beside(d->target, "part");
		if (!d->part) return no_memory(d);
		d->fd = open(d->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (d->fd < 0 && errno == EEXIST) continue;
		if (d->fd < 0) break;
		struct stat mine;
		(void)flock(d->fd, LOCK_EX | LOCK_NB); /* without locks, nothing is swept */
		if (fstat(d->fd, &mine) == 0 && mine.st_nlink) return true;
		close(d->fd); /* swept before it was locked */
		d->fd = -1;
	}
	free(d->part);
	d->part = NULL;
	return fail(d, "cannot be written");
}

static bool open_stream(struct slp_durable *d)
{
	d->stream = fopencookie(d, "w", (cookie_io_functions_t){.write = write_some});
	return d->stream || no_memory(d);
}

static bool open_file(struct slp_durable *d)
{
	struct stat before;
	bool is_there = stat(d->target, &before) == 0;
	if (!is_there || S_ISREG(before.st_mode)) {
		d->block = aligned_alloc(ALIGNMENT, BLOCK); /* without one it is as good, only slower */
		return open_part(d) && (!is_there || keep_mode(d, &before));
	}
	d->fd = open(d->target, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	return d->fd >= 0 || fail(d, "cannot be written");
}

bool slp_durable_open(struct slp_durable *d, const char *path)
{
	*d = (struct slp_durable){.fd = -1};
	if (resolve(d, path) && open_file(d) && open_stream(d)) return true;
	slp_durable_discard(d);
	return false;
}

/* ---- closing ----------------------------------------------------------------------------------------------------- */

static void forget(struct slp_durable *d)
{
	free(d->target);
	free(d->part);
	free(d->old);
	free(d->block);
	d->target = d->part = d->old = d->block = NULL;
}

static bool close_file(struct slp_durable *d)
{
	errno = 0;
	if (d->stream && fclose(d->stream)) fail(d, "cannot be written");
	d->stream = NULL;
	if (d->fd >= 0 && close(d->fd)) fail(d, "cannot be written");
	d->fd = -1;
	return !d->error;
}

void slp_durable_discard(struct slp_durable *d)
{
	close_file(d);
	if (d->part) unlink(d->part);
	forget(d);
}

/* Some file systems cannot bring this to the disk, and say so: nothing better can be done there. */
static bool sync_fd(int fd)
{
	return fsync(fd) == 0 || errno == EINVAL || errno == EROFS || errno == ENOTSUP;
}

static bool sync_file(struct slp_durable *d)
{
	errno = 0;
	if (fflush(d->stream) || ferror(d->stream)) fail(d, "cannot be written");
	if (d->filled && !d->error) write_block(d);
	if (d->part && !d->error && !sync_fd(d->fd)) fail(d, "cannot be flushed to disk");
	return close_file(d);
}

static bool sync_folder(struct slp_durable *d)
{
	int length = folder_length(d->target);
	char *folder = length ? strndup(d->target, (size_t)length) : strdup(".");
	if (!folder) return no_memory(d);
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool ok = fd >= 0 ? sync_fd(fd) : errno == EACCES; /* may be written, but not read */
	if (!ok) fail(d, "its folder cannot be flushed to disk");
	if (fd >= 0) close(fd);
	free(folder);
	return ok;
}

/* ---- several files together -------------------------------------------------------------------------------------- */

/* Keeps the old file under another name, to restore it; impossible where there are no hard links. */
static bool keep_old(struct slp_durable *d)
{
	d->old = name_beside(d->target, "old");
	if (!d->old) return no_memory(d);
	if (link(d->target, d->old) == 0) return true;
	d->is_new = errno == ENOENT;
	free(d->old);
	d->old = NULL;
	return true;
}

static void put_back(struct slp_durable *d)
{
	if (d->old) (void)!rename(d->old, d->target);
	else if (d->is_new) unlink(d->target);
}

static bool give_names(struct slp_durable *const *files, int count)
{
	bool ok = true;
	int named = 0;
	for (int i = 0; ok && count > 1 && i < count; i++) ok = !files[i]->part || keep_old(files[i]);
	for (; ok && named < count; named += ok) {
		struct slp_durable *d = files[named];
		ok = !d->part || rename(d->part, d->target) == 0 || fail(d, "cannot be renamed to its final name");
	}
	for (int i = 0; !ok && i < named; i++)
		if (files[i]->part) put_back(files[i]);
	for (int i = 0; i < count; i++) {
		if (files[i]->old) unlink(files[i]->old);
		if (!ok && files[i]->part) unlink(files[i]->part);
	}
	return ok;
}

bool slp_durable_commit(struct slp_durable *const *files, int count)
{
	bool ok = true;
	for (int i = 0; i < count; i++) ok = sync_file(files[i]) && ok;
	if (ok) {
		ok = give_names(files, count);
		for (int i = 0; ok && i < count; i++) ok = !files[i]->part || sync_folder(files[i]);
	} else {
		for (int i = 0; i < count; i++)
			if (files[i]->part) unlink(files[i]->part);
	}
	for (int i = 0; i < count; i++) forget(files[i]);
	return ok;
}

/* ---- left by killed writers -------------------------------------------------------------------------------------- */

/* Skips hexadecimal digits and the character after them; NULL: there are none, or another character. */
static const char *skip_hex(const char *p, char end)
{
	size_t n = strspn(p, "0123456789abcdef");
	return n && p[n] == end ? p + n + 1 : NULL;
}

/* The length of TARGET in a name that name_beside has made, .TARGET.PID-COUNT-TIME.part; 0: another program's file. */
static size_t target_length(const char *name)
{
	static const char ending[] = "part";
	size_t n = strlen(name);
	if (*name != '.' || n <= sizeof ending || strcmp(name + n - (sizeof ending - 1), ending)) return 0;
	for (const char *dot = name + 1; (dot = strchr(dot, '.')); dot++) {
		const char *p = skip_hex(dot + 1, '-');
		p = p ? skip_hex(p, '-') : NULL;
		p = p ? skip_hex(p, '.') : NULL;
		if (p && !strcmp(p, ending)) return (size_t)(dot - name - 1);
	}
	return 0;
}

static void sweep(int folder, const char *name, bool (*is_ours)(const char *target))
{
	char target[NAME_MAX + 1];
	size_t n = target_length(name);
	if (!n || n >= sizeof target) return;
	snprintf(target, sizeof target, "%.*s", (int)n, name + 1);
	if (!is_ours(target)) return;
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) return;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0) unlinkat(folder, name, 0);
	close(fd);
}

void slp_durable_sweep(const char *folder, bool (*is_ours)(const char *target))
{
	DIR *dir = opendir(folder);
	if (!dir) return;
	for (struct dirent *e; (e = readdir(dir));) sweep(dirfd(dir), e->d_name, is_ours);
	closedir(dir);
}
