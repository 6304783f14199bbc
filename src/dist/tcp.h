/* The carrier over TCP: a connection between each two processes. */
#ifndef SLP_TCP_H
#define SLP_TCP_H

#include <sys/socket.h>

#include "dist/hmac.h"
#include "dist/transport.h"

#define SLP_TCP_MAGIC "STARLING"

enum { SLP_NONCE = 16, SLP_PENDING_MOST = 64 };

/* What a process says to whoever connects. */
struct slp_greeting {
	char magic[8];
	uint8_t nonce[SLP_NONCE];
};

/* What a process says of itself: all that must be alike comes first. */
struct slp_hello {
	char magic[8];
	uint32_t protocol, size; /* another byte order is another protocol */
	char version[24];
	uint32_t rank, length;
	struct sockaddr_storage address; /* where it listens */
	uint8_t nonce[SLP_NONCE], mac[SLP_HMAC_BYTES];
};

/* ---- tcp_accept.c ------------------------------------------------------------------------------------------------ */

/* A connection whose process has not sent all of its hello. */
struct slp_pending {
	int fd;
	size_t came; /* of its hello */
	struct slp_greeting greeting;
	struct slp_hello hello;
};

struct slp_acceptor {
	int listener; /* -1: none */
	int count;
	struct slp_pending list[SLP_PENDING_MOST];
};

/* Waits for a whole hello, which proves nothing yet; the socket belongs to the caller.  False: the time is over. */
bool slp_acceptor_wait(struct slp_acceptor *a, double deadline, struct slp_pending *who);
void slp_acceptor_close(struct slp_acceptor *a);

/* ---- tcp_start.c ------------------------------------------------------------------------------------------------- */

/* Connects to all: fds[rank], -1 for itself.  An error's text goes to why. */
enum sl_status slp_tcp_meet(const struct slp_place *place, int *fds, char why[SLP_DIST_WHY]);

#endif
