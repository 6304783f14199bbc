/* Slave processes meet their master before StarPU starts in any of them: StarPU would wait for missing slaves for
 * ever, and an early slave would end.  Until all have connected, the master listens at the port that StarPU will
 * use; a thread informs the slaves when StarPU listens. */
#include "starling/base.h"

#include "runtime/runtime.h"

#if defined STARPU_USE_TCPIP_MASTER_SLAVE && !defined SLP_SIMULATION

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "number.h"
#include "runtime/processes.h"
#include "runtime/sockets.h"
#include "runtime/thread.h"

enum { MOST = 64, HELLO = 16, SAY_HELLO = 2, LOOK_MS = 5, AGAIN_MS = 20 };
static const char hello[HELLO] = "starling slave", go = 'g';

static struct {
	bool met; /* StarPU finds slaves once in a process */
	const char *at, *port;
	double timeout, deadline;
	int wanted, count, fds[MOST];
	pthread_t thread;
	bool has_thread;
	atomic_bool over;
} meeting;

static enum sl_status fail(enum sl_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
static enum sl_status fail(enum sl_status status, const char *format, ...)
{
	char text[512];
	va_list args;
	va_start(args, format);
	slp_vsnprintf(text, sizeof text, format, args);
	va_end(args);
	slp_call_fail(meeting.at, "sl_init", status, "%s", text);
	return status;
}

static void pause_ms(int ms)
{
	nanosleep(&(struct timespec){.tv_nsec = 1000000L * ms}, NULL);
}

/* ---- the master -------------------------------------------------------------------------------------------------- */

static int listen_here(void)
{
	struct sockaddr_storage here = {.ss_family = AF_INET};
	((struct sockaddr_in *)&here)->sin_port = htons((uint16_t)atoi(meeting.port));
	int fd = slp_socket_listen(&here, sizeof(struct sockaddr_in));
	if (fd < 0)
		fail(SL_EIO, "cannot listen for slave processes at port %s (STARPU_TCPIP_MS_PORT): %s", meeting.port,
		     strerror(errno));
	return fd;
}

/* Strangers are sent away. */
static void receive(int fd)
{
	char said[HELLO] = "";
	bool is_slave = slp_socket_read(fd, said, HELLO, sl_time() + SAY_HELLO) && !memcmp(said, hello, HELLO);
	if (is_slave) meeting.fds[meeting.count++] = fd;
	else close(fd);
}

/* A slave sends nothing before it gets the signal: anything that can be read means that it has ended. */
static void drop_gone(void)
{
	int kept = 0;
	for (int i = 0; i < meeting.count; i++) {
		struct pollfd p = {.fd = meeting.fds[i], .events = POLLIN};
		if (poll(&p, 1, 0) > 0) close(meeting.fds[i]);
		else meeting.fds[kept++] = meeting.fds[i];
	}
	meeting.count = kept;
}

static bool is_starpus(int fd)
{
	struct sockaddr_storage a;
	int listens = 0;
	socklen_t size = sizeof listens, address = sizeof a;
	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) || !listens) return false;
	if (getsockname(fd, (struct sockaddr *)&a, &address)) return false;
	return a.ss_family == AF_INET && ((struct sockaddr_in *)&a)->sin_port == htons((uint16_t)atoi(meeting.port));
}

/* Its socket for slaves on this machine is there a moment later. */
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
	for (int i = 0; i < meeting.count && !atomic_load(&meeting.over); i++)
		(void)!send(meeting.fds[i], &go, 1,
		            MSG_NOSIGNAL | MSG_DONTWAIT); /* one that has ended StarPU will miss */
	return unused;
}

static void close_all(void)
{
	for (int i = 0; i < meeting.count; i++) close(meeting.fds[i]);
	meeting.count = 0;
}

static enum sl_status meet_slaves(void)
{
	int listener = listen_here();
	if (listener < 0) return SL_EIO;
	while (meeting.count < meeting.wanted && sl_time() < meeting.deadline) {
		int fd = slp_socket_accept(listener, meeting.deadline);
		if (fd >= 0) receive(fd);
		drop_gone();
	}
	close(listener);
	if (meeting.count < meeting.wanted) {
		int came = meeting.count;
		close_all();
		return fail(SL_EIO,
		            "%d of %d slave processes (STARPU_TCPIP_MS_SLAVES) came to port %s within %g seconds "
		            "(SL_DIST_TIMEOUT); a slave is the same program with STARPU_TCPIP_MS_MASTER",
		            came, meeting.wanted, meeting.port, meeting.timeout);
	}
	atomic_store(&meeting.over, false);
	meeting.has_thread = !slp_thread_create(&meeting.thread, send_them, NULL);
	if (meeting.has_thread) return SL_OK;
	close_all();
	return fail(SL_ENOMEM, "no thread to meet slave processes");
}

/* ---- a slave ----------------------------------------------------------------------------------------------------- */

/* The master may come later, at any of the addresses. */
static int connect_until(const struct addrinfo *list)
{
	for (; sl_time() < meeting.deadline; pause_ms(AGAIN_MS))
		for (const struct addrinfo *to = list; to; to = to->ai_next) {
			struct sockaddr_storage address;
			memcpy(&address, to->ai_addr, to->ai_addrlen);
			int fd = slp_socket_connect(&address, to->ai_addrlen, meeting.deadline);
			if (fd >= 0 && slp_socket_write(fd, hello, HELLO, meeting.deadline)) return fd;
			if (fd >= 0) close(fd);
		}
	return -1;
}

static enum sl_status meet_master(const char *host)
{
	char said = 0;
	struct addrinfo *list = NULL, hints = {.ai_socktype = SOCK_STREAM};
	int error = getaddrinfo(host, meeting.port, &hints, &list);
	if (error) return fail(SL_EIO, "STARPU_TCPIP_MS_MASTER=%s: %s", host, gai_strerror(error));
	int fd = connect_until(list);
	freeaddrinfo(list);
	if (fd < 0)
		return fail(SL_EIO,
		            "no master came to %s, port %s (STARPU_TCPIP_MS_MASTER, STARPU_TCPIP_MS_PORT) within %g "
		            "seconds (SL_DIST_TIMEOUT)",
		            host, meeting.port, meeting.timeout);
	/* The master waits for other slaves from when it came; StarPU begins there after that. */
	bool told = slp_socket_read(fd, &said, 1, sl_time() + 2 * meeting.timeout) && said == go;
	close(fd);
	return told ? SL_OK
	            : fail(SL_EIO, "the master at %s, port %s, has not started: not all slave processes came", host,
	                   meeting.port);
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

enum sl_status slp_slaves_meet(const char *at, int slaves)
{
	if (meeting.met || slaves < 1) return SL_OK;
	const char *master = getenv("STARPU_TCPIP_MS_MASTER");
	meeting.at = at;
	meeting.wanted = slaves;
	meeting.port = slp_env_or("STARPU_TCPIP_MS_PORT", "1234");
	if (slp_dist_timeout(at, &meeting.timeout) != SL_OK) return SL_EINVAL;
	meeting.deadline = sl_time() + meeting.timeout;
	if (atoi(meeting.port) < 1 || atoi(meeting.port) > 65535)
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
