/* Those who come to a socket that processes meet at, over TCP.  Anybody may: whoever says nothing, or nonsense, holds nobody up. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dist/tcp.h"
#include "runtime/sockets.h"

static void send_away(struct slp_door *d, int i)
{
	close(d->list[i].fd);
	memmove(d->list + i, d->list + i + 1, (size_t)(--d->count - i) * sizeof *d->list);
}

/* Where there is no room, the one that has been silent for longest goes. */
static void let_in(struct slp_door *d)
{
	int fd = slp_socket_accept(d->listener, 0);
	if (fd < 0) return;
	if (d->count == SLP_DOOR_MOST) send_away(d, 0);
	struct slp_visitor *v = &d->list[d->count++];
	*v = (struct slp_visitor){.fd = fd, .greeting = {.magic = SLP_TCP_MAGIC}};
	bool ok = getrandom(v->greeting.nonce, SLP_NONCE, 0) == SLP_NONCE &&
	          slp_socket_write(fd, &v->greeting, sizeof v->greeting, 0);
	if (!ok) send_away(d, d->count - 1);
}

/* What it has said since; false: it is a stranger. */
static bool listen_to(struct slp_visitor *v)
{
	ssize_t n = recv(v->fd, (char *)&v->hello + v->came, sizeof v->hello - v->came, MSG_DONTWAIT);
	if (n <= 0) return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
	v->came += (size_t)n;
	size_t magic = v->came < sizeof v->hello.magic ? v->came : sizeof v->hello.magic;
	return !memcmp(v->hello.magic, SLP_TCP_MAGIC, magic);
}

/* Whether one has introduced itself: it leaves the list. */
static bool hear(struct slp_door *d, const struct pollfd *polls, struct slp_visitor *who)
{
	for (int i = d->count; i-- > 0;) {
		struct slp_visitor *v = &d->list[i];
		if (!polls[i].revents) continue;
		if (!listen_to(v)) {
			send_away(d, i);
		} else if (v->came == sizeof v->hello) {
			*who = *v;
			memmove(v, v + 1, (size_t)(--d->count - i) * sizeof *v);
			return true;
		}
	}
	return false;
}

bool slp_door_wait(struct slp_door *d, double deadline, struct slp_visitor *who)
{
	for (double left; (left = deadline - sl_time()) > 0;) {
		struct pollfd polls[SLP_DOOR_MOST + 1];
		for (int i = 0; i < d->count; i++) polls[i] = (struct pollfd){.fd = d->list[i].fd, .events = POLLIN};
		polls[d->count] = (struct pollfd){.fd = d->listener, .events = POLLIN};
		int n = poll(polls, (nfds_t)d->count + 1, (int)(1000 * left) + 1);
		if (n < 0 && errno != EINTR) return false;
		if (n <= 0) continue;
		bool more = polls[d->count].revents;
		if (hear(d, polls, who)) return true;
		if (more) let_in(d);
	}
	return errno = ETIMEDOUT, false;
}

void slp_door_close(struct slp_door *d)
{
	while (d->count) send_away(d, d->count - 1);
	if (d->listener >= 0) close(d->listener);
	d->listener = -1;
}
