/* How processes meet over TCP.  Rank 0 listens at the address that all were given; the others listen at the address by
 * which they reach rank 0, tell it where, and get the list of all; then each two are connected.  Both sides of a
 * connection prove that they know the secret. */
#include "dist/tcp.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "alloc.h"
#include "dist/hmac.h"
#include "number.h"
#include "runtime/sockets.h"

enum { NONCE = 16, PROTOCOL = 1, TEXT = SLP_DIST_WHY };

/* What a process says of itself: all that must be alike comes first. */
struct hello {
	char magic[8];
	uint32_t protocol, size; /* another byte order is another protocol */
	char version[24];
	uint32_t rank, length;
	struct sockaddr_storage address; /* where it listens */
	uint8_t nonce[NONCE], mac[SLP_HMAC_BYTES];
};

struct answer {
	char text[TEXT]; /* why not; "": welcome */
	uint8_t mac[SLP_HMAC_BYTES];
};

struct where {
	struct sockaddr_storage address;
	uint32_t length;
};

struct meeting {
	const struct slp_place *place;
	int *fds;
	char *why;
	double deadline;
	int listener;
	struct where *list; /* of all */
	char refused[64];   /* why somebody was sent away last */
};

static bool fail(const struct meeting *m, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(const struct meeting *m, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	if (!*m->why) slp_vsnprintf(m->why, SLP_DIST_WHY, format, args);
	va_end(args);
	return false;
}

/* ---- who is there -------------------------------------------------------------------------------------------------- */

static struct hello hello_of(const struct meeting *m, const struct where *where)
{
	struct hello h;
	memset(&h, 0, sizeof h);
	memcpy(h.magic, "STARLING", sizeof h.magic);
	h.protocol = PROTOCOL;
	h.size = (uint32_t)m->place->size;
	snprintf(h.version, sizeof h.version, "%s", sl_version());
	h.rank = (uint32_t)m->place->rank;
	h.address = where->address;
	h.length = where->length;
	return h;
}

static void prove(const struct meeting *m, const char *role, const uint8_t *nonce, const void *data, size_t bytes,
                  uint8_t *mac)
{
	struct slp_piece pieces[] = {{role, strlen(role)}, {nonce, NONCE}, {data, bytes}};
	slp_hmac(m->place->secret, pieces, 3, mac);
}

static bool is_proof(const struct meeting *m, const char *role, const uint8_t *nonce, const void *data, size_t bytes,
                     const uint8_t *mac)
{
	uint8_t own[SLP_HMAC_BYTES];
	prove(m, role, nonce, data, bytes, own);
	return slp_hmac_equal(own, mac);
}

/* ---- one that comes ------------------------------------------------------------------------------------------------ */

/* What is wrong with one that knows the secret: nobody can go on then. */
static bool fits(const struct meeting *m, const struct hello *h)
{
	int rank = (int)h->rank;
	if (h->size != (uint32_t)m->place->size)
		return fail(m, "rank %d was started for %u processes, rank %d for %d (WORLD_SIZE)", rank, h->size,
		            m->place->rank, m->place->size);
	if (strncmp(h->version, sl_version(), sizeof h->version))
		return fail(m, "rank %d has Starling %.24s, rank %d has %s", rank, h->version, m->place->rank,
		            sl_version());
	if (rank < 0 || rank >= m->place->size || rank == m->place->rank || m->fds[rank] >= 0)
		return fail(m, "two processes have rank %d", rank);
	return true;
}

/* Somebody has connected; strangers are refused, which is not an error. */
static bool receive(struct meeting *m, int fd)
{
	enum { SECONDS = 2 }; /* for who connects and says nothing */
	double deadline = sl_time() + SECONDS;
	uint8_t nonce[NONCE];
	struct hello h;
	struct answer a = {.text = ""};
	bool ok = getrandom(nonce, sizeof nonce, 0) == sizeof nonce &&
	          slp_socket_write(fd, nonce, sizeof nonce, deadline) && slp_socket_read(fd, &h, sizeof h, deadline) &&
	          !memcmp(h.magic, "STARLING", 8) && h.protocol == PROTOCOL;
	bool known = ok && is_proof(m, "hello", nonce, &h, offsetof(struct hello, mac), h.mac);
	if (ok && !known) {
		snprintf(a.text, sizeof a.text, "rank %d has a different secret (SL_DIST_SECRET)", m->place->rank);
		snprintf(m->refused, sizeof m->refused, "; one with a different SL_DIST_SECRET was refused");
	}
	bool right = known && fits(m, &h);
	if (known && !right) snprintf(a.text, sizeof a.text, "%s", m->why);
	if (known) prove(m, "answer", h.nonce, a.text, sizeof a.text, a.mac);
	ok = ok && slp_socket_write(fd, &a, sizeof a, deadline) && right;
	if (!ok) {
		close(fd);
		return !known || right;
	}
	m->fds[h.rank] = fd;
	if (m->list) m->list[h.rank] = (struct where){h.address, h.length};
	return true;
}

/* "ranks 1, 3 have" */
static const char *missing(const struct meeting *m, int first, char text[128])
{
	int n = 0, count = 0;
	char list[80] = "";
	for (int r = first; r < m->place->size; r++) {
		if (m->fds[r] >= 0) continue;
		if (n < 60) n += snprintf(list + n, sizeof list - (size_t)n, "%s%d", count ? ", " : "", r);
		count++;
	}
	snprintf(text, 128, "rank%s %s ha%s", count > 1 ? "s" : "", list, count > 1 ? "ve" : "s");
	return text;
}

/* All of these and later ranks come. */
static bool accept_from(struct meeting *m, int first)
{
	int here = 0;
	for (int r = first; r < m->place->size; r++) here += m->fds[r] >= 0;
	while (here < m->place->size - first) {
		char who[128];
		int fd = slp_socket_accept(m->listener, m->deadline);
		if (fd < 0)
			return fail(m, "%s not come to %s:%s within %g seconds (SL_DIST_TIMEOUT)%s",
			            missing(m, first, who), m->place->host, m->place->port, m->place->timeout,
			            m->refused);
		if (!receive(m, fd)) return false;
		here = 0;
		for (int r = first; r < m->place->size; r++) here += m->fds[r] >= 0;
	}
	return true;
}

/* ---- going to one -------------------------------------------------------------------------------------------------- */

static bool introduce(struct meeting *m, int fd, int rank, const struct where *where)
{
	uint8_t nonce[NONCE];
	struct answer a;
	struct hello h = hello_of(m, where);
	bool ok = slp_socket_read(fd, nonce, sizeof nonce, m->deadline) && getrandom(h.nonce, NONCE, 0) == NONCE;
	if (ok) prove(m, "hello", nonce, &h, offsetof(struct hello, mac), h.mac);
	ok = ok && slp_socket_write(fd, &h, sizeof h, m->deadline) && slp_socket_read(fd, &a, sizeof a, m->deadline);
	if (!ok) return fail(m, "rank %d exited during the start: %s", rank, strerror(errno));
	a.text[sizeof a.text - 1] = '\0';
	if (*a.text) return fail(m, "%s", a.text);
	if (is_proof(m, "answer", h.nonce, a.text, sizeof a.text, a.mac)) return true;
	return fail(m, "the process that answers for rank %d has a different secret (SL_DIST_SECRET)", rank);
}

static bool join(struct meeting *m, int rank, const struct where *to, struct where *own)
{
	int fd = slp_socket_connect_later(&to->address, to->length, m->deadline);
	if (fd < 0 && rank == 0)
		return fail(m, "rank 0 cannot be reached at %s:%s: %s", m->place->host, m->place->port,
		            strerror(errno));
	if (fd < 0) return fail(m, "rank %d cannot be reached: %s", rank, strerror(errno));
	m->fds[rank] = fd;
	if (own->length) return introduce(m, fd, rank, own);
	socklen_t length = sizeof own->address; /* the address by which it sees others, any port */
	if (getsockname(fd, (struct sockaddr *)&own->address, &length))
		return fail(m, "getsockname: %s", strerror(errno));
	if (own->address.ss_family == AF_INET) ((struct sockaddr_in *)&own->address)->sin_port = 0;
	else ((struct sockaddr_in6 *)&own->address)->sin6_port = 0;
	m->listener = slp_socket_listen(&own->address, length);
	if (m->listener < 0 || getsockname(m->listener, (struct sockaddr *)&own->address, &length))
		return fail(m, "no socket to listen: %s", strerror(errno));
	own->length = length;
	return introduce(m, fd, rank, own);
}

/* ---- all ----------------------------------------------------------------------------------------------------------- */

static bool address_of(const struct meeting *m, struct where *where)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
	int error = getaddrinfo(m->place->host, m->place->port, &hints, &list);
	if (error)
		return fail(m, "MASTER_ADDR=%s, MASTER_PORT=%s: %s", m->place->host, m->place->port,
		            gai_strerror(error));
	memcpy(&where->address, list->ai_addr, list->ai_addrlen);
	where->length = list->ai_addrlen;
	freeaddrinfo(list);
	return true;
}

/* Rank 0: all come, and hear where the others are, or why it comes to nothing. */
static bool lead(struct meeting *m)
{
	struct where own;
	if (!address_of(m, &own)) return false;
	m->listener = slp_socket_listen(&own.address, own.length);
	if (m->listener < 0)
		return fail(m, "rank 0 cannot listen at %s:%s: %s", m->place->host, m->place->port, strerror(errno));
	bool ok = accept_from(m, 1);
	char text[TEXT] = "";
	snprintf(text, sizeof text, "%s", ok ? "" : m->why);
	double deadline = sl_time() + 2;
	for (int r = 1; r < m->place->size; r++) {
		if (m->fds[r] < 0) continue;
		bool told = slp_socket_write(m->fds[r], text, sizeof text, deadline) &&
		            slp_socket_write(m->fds[r], m->list, (size_t)m->place->size * sizeof *m->list, deadline);
		if (!told) ok = fail(m, "rank %d exited during the start", r);
	}
	return ok;
}

static bool follow(struct meeting *m)
{
	struct where zero, own = {.length = 0};
	char text[TEXT];
	if (!address_of(m, &zero) || !join(m, 0, &zero, &own)) return false;
	m->deadline = sl_time() + 2 * m->place->timeout; /* rank 0 may have begun to wait only now */
	if (!slp_socket_read(m->fds[0], text, sizeof text, m->deadline) ||
	    !slp_socket_read(m->fds[0], m->list, (size_t)m->place->size * sizeof *m->list, m->deadline))
		return fail(m, "rank 0 exited during the start: %s", strerror(errno));
	text[sizeof text - 1] = '\0';
	if (*text) return fail(m, "%s", text);
	for (int r = 1; r < m->place->rank; r++)
		if (!join(m, r, &m->list[r], &own)) return false;
	return accept_from(m, m->place->rank + 1);
}

enum sl_status slp_tcp_meet(const struct slp_place *place, int *fds, char why[SLP_DIST_WHY])
{
	struct meeting m = {.place = place, .fds = fds, .why = why, .listener = -1};
	m.deadline = sl_time() + place->timeout;
	m.list = slp_try_calloc((size_t)place->size, sizeof *m.list);
	*why = '\0';
	for (int r = 0; r < place->size; r++) fds[r] = -1;
	bool ok = m.list ? place->rank == 0 ? lead(&m) : follow(&m) : fail(&m, "no memory for %d ranks", place->size);
	if (m.listener >= 0) close(m.listener);
	for (int r = 0; !ok && r < place->size; r++)
		if (fds[r] >= 0) close(fds[r]);
	free(m.list);
	return ok ? SL_OK : SL_EIO;
}
