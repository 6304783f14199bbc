/* The carrier over TCP: a connection between each two processes. */
#ifndef SLP_TCP_H
#define SLP_TCP_H

#include <sys/socket.h>

#include "dist/hmac.h"
#include "dist/transport.h"

#define SLP_TCP_MAGIC "STARLING"

enum { SLP_NONCE = 16, SLP_DOOR_MOST = 64 };

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

/* ---- tcp_door.c: who comes ----------------------------------------------------------------------------------------- */

struct slp_visitor {
	int fd;
	size_t came; /* of its hello */
	struct slp_greeting greeting;
	struct slp_hello hello;
};

struct slp_door {
	int listener; /* -1: none */
	int count;
	struct slp_visitor list[SLP_DOOR_MOST]; /* those that have not said all of it */
};

/* One that has said a whole hello, which proves nothing yet; its socket belongs to the caller.  False: the time is over. */
bool slp_door_wait(struct slp_door *d, double deadline, struct slp_visitor *who);
void slp_door_close(struct slp_door *d);

/* ---- tcp_start.c --------------------------------------------------------------------------------------------------- */

/* Connects to all: fds[rank], -1 for itself.  An error's text goes to why. */
enum sl_status slp_tcp_meet(const struct slp_place *place, int *fds, char why[SLP_DIST_WHY]);

#endif
