/* The carrier over TCP: one connection for each pair of processes. */
#include "alloc.h"
#include "dist/tcp.h"
#include "starling/base.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dist/adders.h"

static struct {
	int size, *fds; /* one a rank; -1: this process */
	struct pollfd *polls;
} tcp;

static bool is_temporary(void)
{
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

static ssize_t send_parts(int rank, const struct iovec *parts, int n)
{
	struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = (size_t)n};
	ssize_t bytes = sendmsg(tcp.fds[rank], &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	return bytes < 0 && is_temporary() ? 0 : bytes;
}

static ssize_t take(int rank, void *data, size_t bytes, int flags)
{
	ssize_t n = recv(tcp.fds[rank], data, bytes, MSG_DONTWAIT | flags);
	if (n < 0) return is_temporary() ? 0 : -1;
	if (n == 0) errno = 0;
	return n ? n : -1;
}

static ssize_t receive(int rank, void *data, size_t bytes)
{
	return take(rank, data, bytes, 0);
}

static ssize_t peek(int rank, void *data, size_t bytes)
{
	return take(rank, data, bytes, MSG_PEEK);
}

static int wait_for(struct slp_interest *list, double seconds)
{
	for (int r = 0; r < tcp.size; r++) {
		bool wanted = list && (list[r].in || list[r].out);
		tcp.polls[r] = (struct pollfd){.fd = wanted ? tcp.fds[r] : -1};
		if (wanted) tcp.polls[r].events = (short)((list[r].in ? POLLIN : 0) | (list[r].out ? POLLOUT : 0));
	}
	int n = poll(tcp.polls, (nfds_t)tcp.size, seconds > 0 ? (int)(1000 * seconds) + 1 : 0);
	for (int r = 0; list && r < tcp.size; r++) list[r].ready = n > 0 && tcp.polls[r].revents;
	return n > 0 ? n : 0;
}

/* Also reads the remaining data until the other has left: otherwise the data sent to it might be lost. */
static void drain(int fd, double deadline)
{
	char rest[4096];
	for (double now; (now = sl_time()) < deadline;) {
		struct pollfd in = {.fd = fd, .events = POLLIN};
		if (poll(&in, 1, (int)(1000 * (deadline - now)) + 1) <= 0) continue;
		ssize_t n = recv(fd, rest, sizeof rest, MSG_DONTWAIT);
		if (n == 0 || (n < 0 && !is_temporary())) break;
	}
}

static void forget(void)
{
	free(tcp.fds);
	free(tcp.polls);
	memset(&tcp, 0, sizeof tcp);
}

static void end(bool broken, double deadline)
{
	(void)broken;
	for (int r = 0; r < tcp.size; r++)
		if (tcp.fds[r] >= 0) shutdown(tcp.fds[r], SHUT_WR);
	for (int r = 0; r < tcp.size; r++) {
		if (tcp.fds[r] < 0) continue;
		drain(tcp.fds[r], deadline);
		close(tcp.fds[r]);
	}
	forget();
}

static bool start(struct slp_place *place, char why[SLP_DIST_WHY])
{
	tcp.fds = slp_try_calloc((size_t)place->size, sizeof *tcp.fds);
	tcp.polls = slp_try_calloc((size_t)place->size, sizeof *tcp.polls);
	bool room = tcp.fds && tcp.polls;
	if (!room) snprintf(why, SLP_DIST_WHY, "no memory for %d ranks", place->size);
	if (room && slp_tcp_meet(place, tcp.fds, why) == SL_OK) return tcp.size = place->size, true;
	forget();
	return false;
}

const struct slp_carrier slp_tcp = {
        .version = SLP_CARRIER_VERSION,
        .name = "tcp",
        .portion = SLP_ADDERS_PORTION, /* those of several ranks stay in the cache until they are added */
        .start = start,
        .send = send_parts,
        .receive = receive,
        .peek = peek,
        .wait = wait_for,
        .end = end,
};
