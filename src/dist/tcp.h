/* The carrier over TCP: one connection for each pair of processes. */
#ifndef SLP_TCP_H
#define SLP_TCP_H

#include <sys/socket.h>

#include "dist/transport.h"
#include "runtime/process/acceptor.h"
#include "starling/base.h"

/* The description that a process sends: fields that must be equal on all ranks come first. */
struct slp_hello {
	char magic[8] SLP_NONSTRING;
	uint32_t protocol, size; /* another byte order is another protocol */
	char version[24];
	uint32_t rank, length;
	struct sockaddr_storage address; /* where it listens */
	uint8_t nonce[SLP_NONCE], mac[SLP_HMAC_BYTES];
};

/* Connects to all: fds[rank], -1 for itself.  An error's text goes to why. */
enum sl_status slp_tcp_meet(const struct slp_place *place, int *fds, char why[SLP_DIST_WHY]);

#endif
