/* Slave processes meet their master before StarPU starts in any of them: StarPU would wait for missing slaves for
 * ever, and an early slave would end.  Until all have connected and proved that they know the secret, the master listens
 * at the address and port that StarPU will use; a thread informs the slaves when StarPU listens. */
#include "op.h"
#include "runtime/process/slaves.h"

#if defined STARPU_USE_TCPIP_MASTER_SLAVE && !defined SLP_SIMULATION

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "number.h"
#include "runtime/process/acceptor.h"
#include "runtime/process/processes.h"
#include "runtime/process/sockets.h"
#include "runtime/thread.h"

enum { MOST = 64, SAY_HELLO = 2, LOOK_MS = 5, AGAIN_MS = 20 };

/* A slave's message; the secret's proof is made from the master's nonce. */
struct slave_hello {
	char magic[8] SLP_NONSTRING, what[8];
	uint8_t nonce[SLP_NONCE], mac[SLP_HMAC_BYTES];
};
_Static_assert(sizeof(struct slave_hello) <= SLP_HELLO_MOST, "the buffer of a caller");

/* The master's message when StarPU listens, made from the slave's nonce. */
struct master_signal {
	uint8_t mac[SLP_HMAC_BYTES];
};

static const struct slave_hello hello = {.magic = SLP_MAGIC, .what = "slave"};
static const char go[] = "go";

static struct {
	bool met; /* StarPU finds slaves once in a process */
	const char *at, *port, *secret;
	struct sockaddr_storage address; /* where the master listens */
	double timeout, deadline;
	int wanted, count, refused, fds[MOST];
	uint8_t nonces[MOST][SLP_NONCE];
	pthread_t thread;
	bool has_thread;
	atomic_bool over;
} meeting;

static enum sl_status fail(enum sl_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
static enum sl_status fail(enum sl_status status, const char *format, ...)
{
	char text[512];
	SLP_FORMAT(text, sizeof text, format);
	slp_call_fail(meeting.at, "sl_init", status, "%s", text);
	return status;
}

static void pause_ms(int ms)
{
	nanosleep(&(struct timespec){.tv_nsec = 1000000L * ms}, NULL);
}

/* ---- the master -------------------------------------------------------------------------------------------------- */

/* SL_SLAVES_ADDR, by default this machine alone; StarPU reads it, too. */
static bool find_address(void)
{
	const char *text = slp_env_or("SL_SLAVES_ADDR", "127.0.0.1");
	struct sockaddr_in *here = (struct sockaddr_in *)&meeting.address;
	*here = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(meeting.port))};
	if (inet_pton(AF_INET, text, &here->sin_addr) != 1) {
		fail(SL_EINVAL, "SL_SLAVES_ADDR=%.64s: it must be an IPv4 address of this machine, such as 10.0.0.1",
		     text);
		return false;
	}
	if (*meeting.secret || slp_address_is_loopback(&meeting.address)) return true;
	fail(SL_EINVAL,
	     "SL_SLAVES_ADDR=%.64s can be reached from other machines, and SL_DIST_SECRET is not set: anybody could "
	     "take "
	     "part; give the master and its slaves the same secret",
	     text);
	return false;
}

static int listen_here(void)
{
	int fd = slp_socket_listen(&meeting.address, sizeof(struct sockaddr_in));
	if (fd < 0)
		fail(SL_EIO,
		     "cannot listen for slave processes at %s, port %s (SL_SLAVES_ADDR, STARPU_TCPIP_MS_PORT): %s",
		     slp_env_or("SL_SLAVES_ADDR", "127.0.0.1"), meeting.port, strerror(errno));
	return fd;
}

/* Strangers are sent away. */
static void receive(const struct slp_caller *who)
{
	const struct slave_hello *h = (const struct slave_hello *)who->hello;
	bool is_slave = !memcmp(h->what, hello.what, sizeof h->what) &&
	                slp_is_proof(meeting.secret, h->what, who->greeting.nonce, h, offsetof(struct slave_hello, mac),
	                             h->mac);
	if (is_slave && meeting.count < MOST) {
		memcpy(meeting.nonces[meeting.count], h->nonce, SLP_NONCE);
		meeting.fds[meeting.count++] = who->fd;
		return;
	}
	meeting.refused += !is_slave;
	close(who->fd);
}

/* A slave sends nothing before it gets the signal: anything that can be read means that it has ended. */
static void drop_gone(void)
{
	int kept = 0;
	for (int i = 0; i < meeting.count; i++) {
		struct pollfd p = {.fd = meeting.fds[i], .events = POLLIN};
		if (poll(&p, 1, 0) > 0) {
			close(meeting.fds[i]);
			continue;
		}
		memmove(meeting.nonces[kept], meeting.nonces[i], SLP_NONCE);
		meeting.fds[kept++] = meeting.fds[i];
	}
	meeting.count = kept;
}

/* With a StarPU that tools/build-starpu has not built it listens at all addresses. */
static bool is_starpus(int fd)
{
	struct sockaddr_storage a;
	int listens = 0;
	socklen_t size = sizeof listens, address = sizeof a;
	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) || !listens) return false;
	if (getsockname(fd, (struct sockaddr *)&a, &address)) return false;
	return a.ss_family == AF_INET && ((struct sockaddr_in *)&a)->sin_port == htons((uint16_t)atoi(meeting.port));
}

/* The master's socket for slaves on this machine exists a moment later. */
static bool is_local(int fd)
{
	int listens = 0, domain = 0;
	socklen_t size = sizeof listens;
	return !getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) && listens &&
	       !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) && domain == AF_UNIX;
}

static bool starpu_listens(void)
{
	bool there = false, local = !atoi(slp_env_or("STARPU_TCPIP_USE_LOCAL_SOCKET", "1"));
	DIR *folder = opendir("/proc/self/fd");
	if (!folder) return false;
	for (const struct dirent *e; (e = readdir(folder));) {
		there |= is_starpus(atoi(e->d_name));
		local |= is_local(atoi(e->d_name));
	}
	closedir(folder);
	return there && local;
}

static void *send_them(void *unused)
{
	while (!atomic_load(&meeting.over) && !starpu_listens()) pause_ms(LOOK_MS);
	for (int i = 0; i < meeting.count && !atomic_load(&meeting.over); i++) {
		struct master_signal s;
		slp_prove(meeting.secret, go, meeting.nonces[i], go, sizeof go, s.mac);
		(void)!send(meeting.fds[i], &s, sizeof s,
		            MSG_NOSIGNAL | MSG_DONTWAIT); /* one that has ended StarPU will miss */
	}
	return unused;
}

static void close_all(void)
{
	for (int i = 0; i < meeting.count; i++) close(meeting.fds[i]);
	meeting.count = 0;
}

static enum sl_status meet_slaves(void)
{
	if (!find_address()) return SL_EINVAL;
	struct slp_acceptor acceptor = {.listener = listen_here(), .hello = sizeof hello};
	if (acceptor.listener < 0) return SL_EIO;
	while (meeting.count < meeting.wanted && sl_time() < meeting.deadline) {
		struct slp_caller who;
		if (slp_acceptor_wait(&acceptor, meeting.deadline, &who)) receive(&who);
		drop_gone();
	}
	slp_acceptor_close(&acceptor);
	if (meeting.count < meeting.wanted) {
		int came = meeting.count;
		close_all();
		return fail(SL_EIO,
		            "%d of %d slave processes (STARPU_TCPIP_MS_SLAVES) came to %s, port %s, within %g seconds "
		            "(SL_DIST_TIMEOUT); a slave is the same program with STARPU_TCPIP_MS_MASTER%s",
		            came, meeting.wanted, slp_env_or("SL_SLAVES_ADDR", "127.0.0.1"), meeting.port,
		            meeting.timeout,
		            meeting.refused ? "; one with a different SL_DIST_SECRET was refused" : "");
	}
	atomic_store(&meeting.over, false);
	meeting.has_thread = !slp_thread_create(&meeting.thread, send_them, NULL);
	if (meeting.has_thread) return SL_OK;
	close_all();
	return fail(SL_ENOMEM, "no thread to meet slave processes");
}

/* ---- a slave ----------------------------------------------------------------------------------------------------- */

/* Says hello to whoever answers as a master does. */
static bool introduce(int fd, struct slave_hello *mine)
{
	struct slp_greeting g;
	double deadline = sl_time() + SAY_HELLO;
	*mine = hello;
	if (!slp_socket_read(fd, &g, sizeof g, deadline) || memcmp(g.magic, SLP_MAGIC, sizeof g.magic)) return false;
	if (getrandom(mine->nonce, SLP_NONCE, 0) != SLP_NONCE) return false;
	slp_prove(meeting.secret, mine->what, g.nonce, mine, offsetof(struct slave_hello, mac), mine->mac);
	return slp_socket_write(fd, mine, sizeof *mine, deadline);
}

/* The master may come later, at any of the addresses. */
static int connect_until(const struct addrinfo *list, struct slave_hello *mine)
{
	for (; sl_time() < meeting.deadline; pause_ms(AGAIN_MS))
		for (const struct addrinfo *to = list; to; to = to->ai_next) {
			struct sockaddr_storage address;
			memcpy(&address, to->ai_addr, to->ai_addrlen);
			int fd = slp_socket_connect(&address, to->ai_addrlen, meeting.deadline);
			if (fd >= 0 && introduce(fd, mine)) return fd;
			if (fd >= 0) close(fd);
		}
	return -1;
}

/* Whether the master has sent the signal; it waits for other slaves from when it came, and StarPU begins after that. */
static bool is_told(int fd, const struct slave_hello *mine)
{
	struct master_signal s;
	return slp_socket_read(fd, &s, sizeof s, sl_time() + 2 * meeting.timeout) &&
	       slp_is_proof(meeting.secret, go, mine->nonce, go, sizeof go, s.mac);
}

static enum sl_status meet_master(const char *host)
{
	struct slave_hello mine;
	struct addrinfo *list = NULL, hints = {.ai_socktype = SOCK_STREAM};
	int error = getaddrinfo(host, meeting.port, &hints, &list);
	if (error) return fail(SL_EIO, "STARPU_TCPIP_MS_MASTER=%s: %s", host, gai_strerror(error));
	int fd = connect_until(list, &mine);
	freeaddrinfo(list);
	if (fd < 0)
		return fail(SL_EIO,
		            "no master came to %s, port %s (STARPU_TCPIP_MS_MASTER, STARPU_TCPIP_MS_PORT) within %g "
		            "seconds (SL_DIST_TIMEOUT)",
		            host, meeting.port, meeting.timeout);
	bool told = is_told(fd, &mine);
	close(fd);
	return told ? SL_OK
	            : fail(SL_EIO,
	                   "the master at %s, port %s, has not started: not all slave processes came, or it has a "
	                   "different SL_DIST_SECRET",
	                   host, meeting.port);
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

enum sl_status slp_slaves_meet(const char *at, int slaves)
{
	if (meeting.met || slaves < 1) return SL_OK;
	const char *master = getenv("STARPU_TCPIP_MS_MASTER");
	meeting.at = at;
	meeting.wanted = slaves;
	meeting.port = slp_env_or("STARPU_TCPIP_MS_PORT", "1234");
	meeting.secret = slp_env_or("SL_DIST_SECRET", "");
	if (slp_dist_timeout(at, &meeting.timeout) != SL_OK) return SL_EINVAL;
	meeting.deadline = sl_time() + meeting.timeout;
	int64_t port;
	if (!slp_whole_given(meeting.port, &port) || port < 1 || port > 65535)
		return fail(SL_EINVAL, "STARPU_TCPIP_MS_PORT=%s is not a port", meeting.port);
	if (slaves > MOST) return fail(SL_EINVAL, "STARPU_TCPIP_MS_SLAVES=%d: there can be %d", slaves, MOST);
	enum sl_status s = master ? meet_master(master) : meet_slaves();
	meeting.met = s == SL_OK;
	return s;
}

void slp_slaves_met(void)
{
	if (!meeting.has_thread) return;
	atomic_store(&meeting.over, true);
	pthread_join(meeting.thread, NULL);
	meeting.has_thread = false;
	close_all();
}

#else

enum sl_status slp_slaves_meet(const char *at, int slaves)
{
	(void)at;
	(void)slaves;
	return SL_OK;
}

void slp_slaves_met(void)
{
}

#endif
