/* Connects processes over TCP.  Rank 0 listens at the address in all ranks' settings; the others listen at the address
 * from which they reach rank 0, send it to rank 0, and get the list of all; then each pair connects.  Both sides of a
 * connection prove that they know the secret. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "alloc.h"
#include "dist/tcp.h"
#include "number.h"
#include "runtime/process/sockets.h"
#include "starling/base.h"

enum {
	PROTOCOL = 2,
	TEXT = SLP_DIST_WHY,
	ADDRESS = 96,
	SHORT = 2 /* seconds, for data that fits in a socket's buffer */
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
	struct slp_acceptor acceptor;
	struct where *list;  /* of all */
	struct where master; /* where this process has reached rank 0 */
	char refused[64];    /* why somebody was sent away last */
	int heard;           /* processes that know the secret */
	bool sent_away;      /* the other side closed the connection before it answered */
};

static bool fail(const struct meeting *m, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(const struct meeting *m, const char *format, ...)
{
	if (!*m->why) SLP_FORMAT(m->why, SLP_DIST_WHY, format);
	return false;
}

/* ---- who is there ------------------------------------------------------------------------------------------------ */

static struct slp_hello hello_of(const struct meeting *m, const struct where *where)
{
	struct slp_hello h;
	memset(&h, 0, sizeof h);
	memcpy(h.magic, SLP_MAGIC, sizeof h.magic);
	h.protocol = PROTOCOL;
	h.size = (uint32_t)m->place->size;
	snprintf(h.version, sizeof h.version, "%s", sl_version());
	h.rank = (uint32_t)m->place->rank;
	h.address = where->address;
	h.length = where->length;
	return h;
}

/* ---- accepting one ----------------------------------------------------------------------------------------------- */

/* The fault of a process that knows the secret: then nobody can continue. */
static bool fits(const struct meeting *m, const struct slp_hello *h)
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

/* One that has sent its hello: who does not know the secret is refused, which is not an error. */
static bool receive(struct meeting *m, struct slp_caller *c)
{
	struct slp_hello *h = (struct slp_hello *)c->hello;
	struct answer a = {.text = ""};
	bool known = h->protocol == PROTOCOL && slp_is_proof(m->place->secret, "hello", c->greeting.nonce, h,
	                                                     offsetof(struct slp_hello, mac), h->mac);
	bool right = known && fits(m, h) && !*m->why;
	m->heard += known;
	if (!known)
		snprintf(m->refused, sizeof m->refused, "; one with a different %s was refused",
		         h->protocol == PROTOCOL ? "SL_DIST_SECRET" : "version of Starling");
	if (known && !right) snprintf(a.text, sizeof a.text, "%s", m->why);
	if (known) slp_prove(m->place->secret, "answer", h->nonce, a.text, sizeof a.text, a.mac);
	bool told = slp_socket_write(c->fd, &a, sizeof a, sl_time() + SHORT);
	if (!right || !told) {
		close(c->fd);
		return !known || right;
	}
	m->fds[h->rank] = c->fd;
	if (m->list) m->list[h->rank] = (struct where){h->address, h->length};
	return true;
}

/* Which of these and later ranks have not come. */
static void list_missing(const struct meeting *m, int first, char list[SLP_CARRIER_RANKS])
{
	*list = '\0';
	for (int r = first; r < m->place->size; r++)
		if (m->fds[r] < 0) slp_add_rank(list, r);
}

/* All of these and later ranks come. */
static bool accept_from(struct meeting *m, int first)
{
	char list[SLP_CARRIER_RANKS];
	for (list_missing(m, first, list); *list; list_missing(m, first, list)) {
		struct slp_caller who;
		if (!slp_acceptor_wait(&m->acceptor, m->deadline, &who))
			return fail(m, "rank%s %s ha%s not come to %s:%s within %g seconds (SL_DIST_TIMEOUT)%s",
			            slp_several(list) ? "s" : "", list, slp_several(list) ? "ve" : "s", m->place->host,
			            m->place->port, m->place->timeout, m->refused);
		if (!receive(m, &who)) return false;
	}
	return true;
}

/* ---- going to one ------------------------------------------------------------------------------------------------ */

/* "HOST:PORT" */
static void address_of(const struct where *w, char text[ADDRESS])
{
	char host[ADDRESS - 16] = "?", port[8] = "?";
	(void)getnameinfo((const struct sockaddr *)&w->address, w->length, host, sizeof host, port, sizeof port,
	                  NI_NUMERICHOST | NI_NUMERICSERV);
	snprintf(text, ADDRESS, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
}

/* Whether it welcomes this process.  Its messages are ignored before it has proved that it knows the secret. */
static bool introduce(struct meeting *m, int fd, int rank, const struct where *where)
{
	struct slp_greeting g;
	struct answer a;
	struct slp_hello h = hello_of(m, where);
	char at[ADDRESS];
	address_of(rank ? &m->list[rank] : &m->master, at);
	bool ok = slp_socket_read(fd, &g, sizeof g, m->deadline) && getrandom(h.nonce, SLP_NONCE, 0) == SLP_NONCE;
	if (ok && memcmp(g.magic, SLP_MAGIC, sizeof g.magic))
		return fail(m,
		            "the process that answers for rank %d at %s does not run this version of Starling "
		            "(MASTER_ADDR, "
		            "MASTER_PORT)",
		            rank, at);
	if (ok) slp_prove(m->place->secret, "hello", g.nonce, &h, offsetof(struct slp_hello, mac), h.mac);
	ok = ok && slp_socket_write(fd, &h, sizeof h, m->deadline) && slp_socket_read(fd, &a, sizeof a, m->deadline);
	m->sent_away = !ok && errno == ECONNRESET;
	if (!ok) return fail(m, "rank %d at %s exited during the start: %s", rank, at, strerror(errno));
	if (!slp_is_proof(m->place->secret, "answer", h.nonce, a.text, sizeof a.text, a.mac))
		return fail(m, "the process that answers for rank %d at %s has a different secret (SL_DIST_SECRET)",
		            rank, at);
	a.text[sizeof a.text - 1] = '\0';
	return !*a.text || fail(m, "%s", a.text);
}

/* Listens at the address by which this process has reached rank 0, at any port. */
static bool listen_here(struct meeting *m, int fd, struct where *own)
{
	socklen_t length = sizeof own->address;
	if (getsockname(fd, (struct sockaddr *)&own->address, &length))
		return fail(m, "getsockname: %s", strerror(errno));
	if (own->address.ss_family == AF_INET) ((struct sockaddr_in *)&own->address)->sin_port = 0;
	else ((struct sockaddr_in6 *)&own->address)->sin6_port = 0;
	m->acceptor.listener = slp_socket_listen(&own->address, length);
	if (m->acceptor.listener < 0 || getsockname(m->acceptor.listener, (struct sockaddr *)&own->address, &length))
		return fail(m, "no socket to listen: %s", strerror(errno));
	own->length = length;
	return true;
}

static bool join(struct meeting *m, int rank, const struct where *own)
{
	const struct where *to = &m->list[rank];
	int fd = slp_socket_connect_later(&to->address, to->length, m->deadline);
	if (fd < 0) return fail(m, "rank %d cannot be reached: %s", rank, strerror(errno));
	m->fds[rank] = fd;
	return introduce(m, fd, rank, own);
}

/* ---- rank 0 ------------------------------------------------------------------------------------------------------ */

/* The addresses of MASTER_ADDR, which may be [::1], too; NULL: it has none. */
static struct addrinfo *addresses(const struct meeting *m)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
	const char *host = m->place->host;
	char bare[256];
	size_t length = strlen(host);
	bool brackets = length > 2 && length < sizeof bare && *host == '[' && host[length - 1] == ']';
	if (brackets) snprintf(bare, sizeof bare, "%.*s", (int)length - 2, host + 1);
	int error = getaddrinfo(brackets ? bare : host, m->place->port, &hints, &list);
	if (!error) return list;
	fail(m, "MASTER_ADDR=%.200s: %s: give a name or an address of the machine of rank 0", host,
	     gai_strerror(error));
	return NULL;
}

static struct where where_of(const struct addrinfo *a)
{
	struct where w = {.length = a->ai_addrlen};
	memcpy(&w.address, a->ai_addr, a->ai_addrlen);
	return w;
}

/* Without a secret whoever reaches rank 0 could take the place of a rank: a warning where only this machine does, an error
 * elsewhere. */
static bool check_secret(struct meeting *m)
{
	if (*m->place->secret || m->place->size == 1) return true;
	struct addrinfo *list = addresses(m);
	if (!list) return false;
	bool is_local = true;
	for (const struct addrinfo *a = list; a; a = a->ai_next) {
		struct where w = where_of(a);
		is_local &= slp_address_is_loopback(&w.address);
	}
	freeaddrinfo(list);
	if (!is_local)
		return fail(m,
		            "MASTER_ADDR=%.200s can be reached from other machines, and SL_DIST_SECRET is not set: "
		            "anybody could take part; give all ranks the same secret, such as the output of "
		            "\"openssl rand -hex 16\"",
		            m->place->host);
	if (!m->place->rank)
		fprintf(stderr, "starling: SL_DIST_SECRET is not set: any process of this machine can take part in the "
		                "run (sl-launch sets one)\n");
	return true;
}

/* The advice about an error of listening. */
static const char *advice(int error)
{
	switch (error) {
	case EADDRINUSE: return ": another program listens there; give all ranks another MASTER_PORT";
	case EADDRNOTAVAIL: return ": this machine has no such address; MASTER_ADDR is that of the machine of rank 0";
	case EACCES: return ": give all ranks a MASTER_PORT from 1024 on";
	default: return "";
	}
}

/* At the first of its addresses that this machine has. */
static bool listen_at_master(struct meeting *m)
{
	struct addrinfo *list = addresses(m);
	if (!list) return false;
	for (const struct addrinfo *a = list; a && m->acceptor.listener < 0; a = a->ai_next) {
		struct where own = where_of(a);
		m->acceptor.listener = slp_socket_listen(&own.address, own.length);
		if (errno != EADDRNOTAVAIL && errno != EAFNOSUPPORT) break;
	}
	if (m->acceptor.listener < 0)
		fail(m, "rank 0 cannot listen at %s:%s: %s%s", m->place->host, m->place->port, strerror(errno),
		     advice(errno));
	freeaddrinfo(list);
	return m->acceptor.listener >= 0;
}

/* At any of its addresses, as soon as it listens there. */
static int reach_master(struct meeting *m)
{
	struct addrinfo *list = addresses(m);
	int fd = -1;
	while (list && fd < 0) {
		for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
			struct where to = where_of(a);
			double share = a->ai_next ? (m->deadline - sl_time()) / 2 : m->deadline - sl_time();
			fd = slp_socket_connect(&to.address, to.length, sl_time() + share);
			if (fd >= 0) m->master = to;
		}
		if (fd >= 0 || sl_time() > m->deadline) break;
		nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	}
	if (list && fd < 0)
		fail(m,
		     "rank 0 cannot be reached at %s:%s within %g seconds (SL_DIST_TIMEOUT): %s: is it running there, "
		     "and do "
		     "all ranks have its MASTER_ADDR and MASTER_PORT?",
		     m->place->host, m->place->port, m->place->timeout, strerror(errno));
	if (list) freeaddrinfo(list);
	return fd;
}

/* Processes that come after the meeting has failed hear why, too. */
static void tell_late(struct meeting *m)
{
	struct slp_caller who;
	while (m->heard < m->place->size - 1 && slp_acceptor_wait(&m->acceptor, m->deadline, &who)) receive(m, &who);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

/* Rank 0: all connect, and receive the addresses of the others, or the reason of a failure. */
static bool lead(struct meeting *m)
{
	if (!listen_at_master(m)) return false;
	bool ok = accept_from(m, 1);
	char text[TEXT] = "";
	if (!ok) tell_late(m);
	snprintf(text, sizeof text, "%s", ok ? "" : m->why);
	double deadline = sl_time() + SHORT;
	for (int r = 1; r < m->place->size; r++) {
		if (m->fds[r] < 0) continue;
		bool told = slp_socket_write(m->fds[r], text, sizeof text, deadline) &&
		            slp_socket_write(m->fds[r], m->list, (size_t)m->place->size * sizeof *m->list, deadline);
		if (!told) ok = fail(m, "rank %d exited during the start", r);
	}
	return ok;
}

/* Rank 0 may send away whoever waits among many strangers, but not for ever.  False: it no longer listens. */
static bool reach_again(struct meeting *m)
{
	if (!m->sent_away || sl_time() > m->deadline) return false;
	int fd = slp_socket_connect(&m->master.address, m->master.length, sl_time() + SHORT);
	if (fd < 0) return false;
	close(m->fds[0]);
	m->fds[0] = fd;
	*m->why = '\0';
	return true;
}

static bool follow(struct meeting *m)
{
	struct where own = {.length = 0};
	char text[TEXT];
	int fd = reach_master(m);
	if (fd < 0) return false;
	m->fds[0] = fd;
	if (!listen_here(m, fd, &own)) return false;
	while (!introduce(m, m->fds[0], 0, &own))
		if (!reach_again(m)) return false;
	m->deadline = sl_time() + 2 * m->place->patience; /* rank 0 may have begun to wait only now */
	if (!slp_socket_read(m->fds[0], text, sizeof text, m->deadline) ||
	    !slp_socket_read(m->fds[0], m->list, (size_t)m->place->size * sizeof *m->list, m->deadline))
		return fail(m, "rank 0 exited during the start: %s", strerror(errno));
	text[sizeof text - 1] = '\0';
	if (*text) return fail(m, "%s", text);
	m->deadline = sl_time() + m->place->patience; /* all have come to rank 0 */
	for (int r = 1; r < m->place->rank; r++)
		if (!join(m, r, &own)) return false;
	return accept_from(m, m->place->rank + 1);
}

enum sl_status slp_tcp_meet(const struct slp_place *place, int *fds, char why[SLP_DIST_WHY])
{
	struct meeting m = {.place = place,
	                    .fds = fds,
	                    .why = why,
	                    .acceptor = {.listener = -1, .hello = sizeof(struct slp_hello)}};
	_Static_assert(sizeof(struct slp_hello) <= SLP_HELLO_MOST, "the buffer of a caller");
	m.deadline = sl_time() + place->patience;
	m.list = slp_try_calloc((size_t)place->size, sizeof *m.list);
	*why = '\0';
	for (int r = 0; r < place->size; r++) fds[r] = -1;
	bool ok = m.list || fail(&m, "no memory for %d ranks", place->size);
	ok = ok && check_secret(&m) && (place->rank == 0 ? lead(&m) : follow(&m));
	slp_acceptor_close(&m.acceptor);
	for (int r = 0; !ok && r < place->size; r++)
		if (fds[r] >= 0) close(fds[r]);
	free(m.list);
	return ok ? SL_OK : SL_EIO;
}
