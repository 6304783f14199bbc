/* The file that values are spilled to.  It is unlinked as soon as it is open: nobody else can shorten it, and it goes with
 * the process.  With O_DIRECT, where the file system has it: pages of the cache would take the memory that is short. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "alloc.h"
#include "runtime/memory/spill_file.h"

_Atomic int slp_spill_file_delay;

static struct {
	int fd;
	int64_t end;
	struct place {
		int64_t at;
		size_t bytes;
	} * free;
	int nfree, most;
	char *path;
} file = {.fd = -1};

/* ---- the file ------------------------------------------------------------------------------------------------------ */

/* In a folder, a file without a name; else a new file. */
static int open_at(const char *path, bool direct)
{
	struct stat s;
	int flags = O_RDWR | O_CLOEXEC | (direct ? O_DIRECT : 0);
	if (!stat(path, &s) && S_ISDIR(s.st_mode)) return open(path, flags | O_TMPFILE, 0600);
	int fd = open(path, flags | O_CREAT | O_EXCL, 0600);
	if (fd >= 0) unlink(path);
	return fd;
}

/* Some file systems open a file with O_DIRECT and then refuse to read or write. */
static bool takes_pages(int fd)
{
	void *page = slp_try_aligned_alloc(SLP_SPILL_PAGE, SLP_SPILL_PAGE);
	if (!page) return false;
	memset(page, 0, SLP_SPILL_PAGE);
	bool ok = pwrite(fd, page, SLP_SPILL_PAGE, 0) == SLP_SPILL_PAGE &&
	          pread(fd, page, SLP_SPILL_PAGE, 0) == SLP_SPILL_PAGE;
	free(page);
	return ok;
}

bool slp_spill_file_open(const char *path, char *why, size_t size)
{
	int fd = open_at(path, true);
	if (fd >= 0 && !takes_pages(fd)) {
		close(fd);
		fd = -1;
	}
	if (fd < 0) fd = open_at(path, false);
	if (fd < 0) {
		snprintf(why, size, "%s: %s%s", path, strerror(errno),
		         errno == EEXIST ? "; name a new file, or a folder" : "");
		return false;
	}
	file.fd = fd;
	file.end = 0;
	file.path = slp_try_strdup(path);
	return true;
}

void slp_spill_file_close(void)
{
	if (file.fd >= 0) close(file.fd);
	free(file.free);
	free(file.path);
	file.fd = -1;
	file.free = NULL;
	file.path = NULL;
	file.nfree = file.most = 0;
}

const char *slp_spill_file_path(void)
{
	return file.path ? file.path : "";
}

int slp_spill_file_descriptor(void)
{
	return file.fd;
}

/* ---- places -------------------------------------------------------------------------------------------------------- */

int64_t slp_spill_file_place(size_t bytes)
{
	for (int i = file.nfree; i-- > 0;)
		if (file.free[i].bytes == bytes) {
			int64_t at = file.free[i].at;
			file.free[i] = file.free[--file.nfree];
			return at;
		}
	file.end += (int64_t)bytes;
	return file.end - (int64_t)bytes;
}

/* Without memory to remember it, it is lost until the end. */
void slp_spill_file_give(int64_t at, size_t bytes)
{
	if (!slp_grow((void **)&file.free, &file.most, file.nfree + 1, sizeof *file.free)) return;
	file.free[file.nfree++] = (struct place){at, bytes};
}

/* ---- reading and writing ------------------------------------------------------------------------------------------- */

static void wait_for_test(void)
{
	for (int ms = 0; ms < slp_spill_file_delay; ms++) nanosleep(&(struct timespec){0, 1000000L}, NULL);
}

static bool failed(const char *what, size_t bytes, int64_t at, const char *reason, char *why, size_t size)
{
	snprintf(why, size, "the spill file %s: %s %zu bytes at %lld: %s", slp_spill_file_path(), what, bytes,
	         (long long)at, reason);
	return false;
}

bool slp_spill_file_write(const void *data, size_t bytes, int64_t at, char *why, size_t size)
{
	wait_for_test();
	for (size_t done = 0; done < bytes;) {
		ssize_t n = pwrite(file.fd, (const char *)data + done, bytes - done, at + (int64_t)done);
		if (n < 0 && errno == EINTR) continue;
		if (n <= 0) return failed("writing", bytes, at, n ? strerror(errno) : "nothing was written", why, size);
		done += (size_t)n;
	}
	return true;
}

bool slp_spill_file_read(void *data, size_t bytes, int64_t at, char *why, size_t size)
{
	wait_for_test();
	for (size_t done = 0; done < bytes;) {
		ssize_t n = pread(file.fd, (char *)data + done, bytes - done, at + (int64_t)done);
		if (n < 0 && errno == EINTR) continue;
		if (n <= 0)
			return failed("reading", bytes, at, n ? strerror(errno) : "it has been shortened", why, size);
		done += (size_t)n;
	}
	return true;
}
