/* Ranks that die while rank 0 writes a checkpoint: fsync, which durable files come to, is found here before libc's. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <starling/dist.h>

#include "dist.h"

static atomic_int victim = -1; /* until rank 0 has come to the point */
static char mark[4096];        /* a file that is there while rank 0 waits for the other to die */

static void pause_shortly(void)
{
	usleep(10000);
}

/* On the rank that is to die. */
static void *wait_and_die(void *unused)
{
	(void)unused;
	while (access(mark, F_OK)) pause_shortly();
	unlink(mark);
	kill(getpid(), SIGKILL);
	return NULL;
}

void dist_die_in_write(int rank, const char *checkpoint)
{
	pthread_t thread;
	snprintf(mark, sizeof mark, "%s.mark", checkpoint);
	if (sl_dist_rank() == 0) atomic_store(&victim, rank);
	else if (sl_dist_rank() == rank && pthread_create(&thread, NULL, wait_and_die, NULL)) _exit(2);
}

static void die_or_wait(int rank)
{
	if (rank == 0) kill(getpid(), SIGKILL);
	int fd = open(mark, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	if (fd >= 0) close(fd);
	while (!access(mark, F_OK)) pause_shortly();
}

__attribute__((visibility("default"))) int fsync(int fd)
{
	int rank = atomic_exchange(&victim, -1);
	if (rank >= 0) die_or_wait(rank);
	return (int)syscall(SYS_fsync, fd);
}
