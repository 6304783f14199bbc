/* Accepts connections of processes that meet over TCP.  Anybody may connect: pending connections are read together, and
 * one that sends nothing, or nonsense, holds nobody up. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dist/tcp.h"
#include "runtime/sockets.h"

static void drop(struct slp_acceptor *a, int i)
{
	close(a->list[i].fd);
	memmove(a->list + i, a->list + i + 1, (size_t)(--a->count - i) * sizeof *a->list);
}

/* Where there is no room, the connection that has been pending for longest is dropped. */
static void accept_one(struct slp_acceptor *a)
{
	int fd = slp_socket_accept(a->listener, 0);
	if (fd < 0) return;
	if (a->count == SLP_PENDING_MOST) drop(a, 0);
	struct slp_pending *c = &a->list[a->count++];
	*c = (struct slp_pending){.fd = fd, .greeting = {.magic = SLP_TCP_MAGIC}};
	bool ok = getrandom(c->greeting.nonce, SLP_NONCE, 0) == SLP_NONCE &&
	          slp_socket_write(fd, &c->greeting, sizeof c->greeting, 0);
	if (!ok) drop(a, a->count - 1);
}

/* What it has sent since; false: it is not one of us. */
static bool read_hello(struct slp_pending *c)
{
	ssize_t n = recv(c->fd, (char *)&c->hello + c->came, sizeof c->hello - c->came, MSG_DONTWAIT);
	if (n <= 0) return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
	c->came += (size_t)n;
	size_t magic = c->came < sizeof c->hello.magic ? c->came : sizeof c->hello.magic;
	return !memcmp(c->hello.magic, SLP_TCP_MAGIC, magic);
}

/* Whether one has sent all of its hello: it leaves the list. */
static bool take_complete(struct slp_acceptor *a, const struct pollfd *polls, struct slp_pending *who)
{
	for (int i = a->count; i-- > 0;) {
		struct slp_pending *c = &a->list[i];
		if (!polls[i].revents) continue;
		if (!read_hello(c)) {
			drop(a, i);
		} else if (c->came == sizeof c->hello) {
			*who = *c;
			memmove(c, c + 1, (size_t)(--a->count - i) * sizeof *c);
			return true;
		}
	}
	return false;
}

bool slp_acceptor_wait(struct slp_acceptor *a, double deadline, struct slp_pending *who)
{
	for (double left; (left = deadline - sl_time()) > 0;) {
		struct pollfd polls[SLP_PENDING_MOST + 1];
		for (int i = 0; i < a->count; i++) polls[i] = (struct pollfd){.fd = a->list[i].fd, .events = POLLIN};
		polls[a->count] = (struct pollfd){.fd = a->listener, .events = POLLIN};
		int n = poll(polls, (nfds_t)a->count + 1, (int)(1000 * left) + 1);
		if (n < 0 && errno != EINTR) return false;
		if (n <= 0) continue;
		bool more = polls[a->count].revents;
		if (take_complete(a, polls, who)) return true;
		if (more) accept_one(a);
	}
	return errno = ETIMEDOUT, false;
}

void slp_acceptor_close(struct slp_acceptor *a)
{
	while (a->count) drop(a, a->count - 1);
	if (a->listener >= 0) close(a->listener);
	a->listener = -1;
}
