/* System calls that can be made to fail: defined here, they are found before those of libc, by the library, too. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io_faults.h"

const char *const io_names[IO_COUNT] = {
#define X(name) #name,
        IO_CALLS(X)
#undef X
};

static struct {
	enum io_call call;
	int k, error;
	atomic_int counts[IO_COUNT];
	atomic_bool failed;
	unsigned delay;
} plan;

void io_fail(enum io_call call, int k, int error)
{
	plan.call = call;
	plan.k = k;
	plan.error = error;
	plan.failed = false;
	for (int i = 0; i < IO_COUNT; i++) plan.counts[i] = 0;
}

int io_calls(enum io_call call)
{
	return plan.counts[call];
}

bool io_failed(void)
{
	return plan.failed;
}

void io_slow(unsigned microseconds)
{
	plan.delay = microseconds;
}

static bool is_meant(enum io_call call, int number)
{
	return call == plan.call && (number == plan.k || (plan.k < 0 && number >= -plan.k));
}

/* Whether this call is the one. */
static bool fails(enum io_call call)
{
	if (!is_meant(call, atomic_fetch_add(&plan.counts[call], 1) + 1)) return false;
	plan.failed = true;
	if (!plan.error) kill(getpid(), SIGKILL);
	errno = plan.error;
	return true;
}

int open(const char *path, int flags, ...)
{
	va_list args;
	va_start(args, flags);
	int mode = flags & O_CREAT ? va_arg(args, int) : 0;
	va_end(args);
	if ((flags & O_CREAT) && fails(IO_open)) return -1;
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* Half of what a call that fails was given is written: so a disk becomes full.  A call that is refused (EINVAL) writes
 * nothing, if it would go past the system's cache, and is as ever if not. */
ssize_t write(int fd, const void *data, size_t size)
{
	if (fd <= STDERR_FILENO) return syscall(SYS_write, fd, data, size);
	if (plan.delay) usleep(plan.delay);
	if (plan.error == EINVAL && plan.call == IO_write) {
		bool direct = syscall(SYS_fcntl, fd, F_GETFL) & O_DIRECT;
		return direct && fails(IO_write) ? -1 : syscall(SYS_write, fd, data, size);
	}
	if (is_meant(IO_write, plan.counts[IO_write] + 1)) (void)!syscall(SYS_write, fd, data, size / 2);
	if (fails(IO_write)) return -1;
	return syscall(SYS_write, fd, data, size);
}

int fsync(int fd)
{
	return fails(IO_fsync) ? -1 : (int)syscall(SYS_fsync, fd);
}

int rename(const char *from, const char *to)
{
	return fails(IO_rename) ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int link(const char *from, const char *to)
{
	return fails(IO_link) ? -1 : (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}
