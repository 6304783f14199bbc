/* Accepts connections from any process: pending connections are read together, and one that sends nothing, or nonsense,
 * delays no other. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "alloc.h"
#include "runtime/process/acceptor.h"
#include "runtime/process/sockets.h"
#include "starling/base.h"

static void drop(struct slp_acceptor *a, int i)
{
	close(a->list[i].fd);
	memmove(a->list + i, a->list + i + 1, (size_t)(--a->count - i) * sizeof *a->list);
}

/* No file or memory is left for a connection: it takes the place of the one that has been pending for longest.  Without
 * any, time passes. */
static void make_room(struct slp_acceptor *a)
{
	bool scarce = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
	if (scarce && a->count) drop(a, 0);
	else if (scarce) nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

/* Where there is no room, the connection that has been pending for longest is dropped. */
static void accept_one(struct slp_acceptor *a)
{
	if (!a->list) a->list = slp_try_calloc(SLP_CALLERS_MOST, sizeof *a->list);
	int fd = a->list ? slp_socket_accept(a->listener, 0) : (errno = ENOMEM, -1);
	if (fd < 0) return make_room(a);
	if (a->count == SLP_CALLERS_MOST) drop(a, 0);
	struct slp_caller *c = &a->list[a->count++];
	*c = (struct slp_caller){.fd = fd, .greeting = {.magic = SLP_MAGIC}};
	bool ok = getrandom(c->greeting.nonce, SLP_NONCE, 0) == SLP_NONCE &&
	          slp_socket_write(fd, &c->greeting, sizeof c->greeting, 0);
	if (!ok) drop(a, a->count - 1);
}

/* Reads as much of a hello as has arrived; false: it is not one of us. */
static bool read_hello(struct slp_caller *c, size_t hello)
{
	ssize_t n = recv(c->fd, c->hello + c->came, hello - c->came, MSG_DONTWAIT);
	if (n <= 0) return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
	c->came += (size_t)n;
	size_t magic = c->came < strlen(SLP_MAGIC) ? c->came : strlen(SLP_MAGIC);
	return !memcmp(c->hello, SLP_MAGIC, magic);
}

/* Whether one has sent all of its hello: it leaves the list. */
static bool take_complete(struct slp_acceptor *a, const struct pollfd *polls, struct slp_caller *who)
{
	for (int i = a->count; i-- > 0;) {
		struct slp_caller *c = &a->list[i];
		if (!polls[i].revents) continue;
		if (!read_hello(c, a->hello)) {
			drop(a, i);
		} else if (c->came == a->hello) {
			*who = *c;
			memmove(c, c + 1, (size_t)(--a->count - i) * sizeof *c);
			return true;
		}
	}
	return false;
}

bool slp_acceptor_wait(struct slp_acceptor *a, double deadline, struct slp_caller *who)
{
	for (double left; (left = deadline - sl_time()) > 0;) {
		struct pollfd polls[SLP_CALLERS_MOST + 1];
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
	free(a->list);
	a->list = NULL;
	if (a->listener >= 0) close(a->listener);
	a->listener = -1;
}

void slp_prove(const char *secret, const char *role, const uint8_t nonce[SLP_NONCE], const void *data, size_t bytes,
               uint8_t mac[SLP_HMAC_BYTES])
{
	struct slp_piece pieces[] = {{role, strlen(role)}, {nonce, SLP_NONCE}, {data, bytes}};
	slp_hmac(secret, pieces, 3, mac);
}

bool slp_is_proof(const char *secret, const char *role, const uint8_t nonce[SLP_NONCE], const void *data, size_t bytes,
                  const uint8_t mac[SLP_HMAC_BYTES])
{
	uint8_t own[SLP_HMAC_BYTES];
	slp_prove(secret, role, nonce, data, bytes, own);
	return slp_hmac_equal(own, mac);
}
