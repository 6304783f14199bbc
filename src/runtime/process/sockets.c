/* Sockets with deadlines. */
#include "runtime/process/sockets.h"
#include "starling/base.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Until something can be done; false once the time is over. */
static bool wait_for(int fd, short events, double deadline)
{
	for (;;) {
		double left = deadline - sl_time();
		struct pollfd p = {.fd = fd, .events = events};
		int n = poll(&p, 1, left > 0 ? (int)(1000 * left) + 1 : 0);
		if (n > 0) return true;
		if (n == 0 && left <= 0) return errno = ETIMEDOUT, false;
		if (n < 0 && errno != EINTR) return false;
	}
}

static bool is_temporary(void)
{
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

bool slp_socket_write(int fd, const void *data, size_t bytes, double deadline)
{
	for (const char *p = data; bytes;) {
		if (!wait_for(fd, POLLOUT, deadline)) return false;
		ssize_t n = send(fd, p, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && !is_temporary()) return false;
		if (n < 0) continue;
		p += n;
		bytes -= (size_t)n;
	}
	return true;
}

bool slp_socket_read(int fd, void *data, size_t bytes, double deadline)
{
	for (char *p = data; bytes;) {
		if (!wait_for(fd, POLLIN, deadline)) return false;
		ssize_t n = recv(fd, p, bytes, MSG_DONTWAIT);
		if (n == 0) return errno = ECONNRESET, false;
		if (n < 0 && !is_temporary()) return false;
		if (n < 0) continue;
		p += n;
		bytes -= (size_t)n;
	}
	return true;
}

/* Small messages are sent at once. */
static int ready(int fd)
{
	int one = 1;
	if (fd >= 0) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	return fd;
}

static int give_up(int fd)
{
	int error = errno;
	close(fd);
	errno = error;
	return -1;
}

bool slp_address_is_loopback(const struct sockaddr_storage *address)
{
	if (address->ss_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
	uint32_t bits = ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr);
	return address->ss_family == AF_INET && bits >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
}

int slp_socket_listen(const struct sockaddr_storage *address, unsigned length)
{
	int one = 1, fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0) return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one); /* after a run that has just ended */
	if (bind(fd, (const struct sockaddr *)address, length) || listen(fd, SOMAXCONN)) return give_up(fd);
	return fd;
}

int slp_socket_accept(int fd, double deadline)
{
	for (;;) {
		if (!wait_for(fd, POLLIN, deadline)) return -1;
		int to = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		if (to >= 0) return ready(to);
		if (!is_temporary() && errno != ECONNABORTED) return -1;
	}
}

int slp_socket_connect(const struct sockaddr_storage *address, unsigned length, double deadline)
{
	int fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error = 0;
	socklen_t size = sizeof error;
	if (fd < 0) return -1;
	if (connect(fd, (const struct sockaddr *)address, length)) {
		if (errno != EINPROGRESS || !wait_for(fd, POLLOUT, deadline)) return give_up(fd);
		getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
		errno = error;
		if (error) return give_up(fd);
	}
	return ready(fd);
}

int slp_socket_connect_later(const struct sockaddr_storage *address, unsigned length, double deadline)
{
	for (;;) {
		int fd = slp_socket_connect(address, length, deadline);
		bool early = errno == ECONNREFUSED || errno == EAGAIN || errno == ENETUNREACH || errno == EHOSTUNREACH;
		if (fd >= 0 || !early || sl_time() > deadline) return fd;
		nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	}
}
