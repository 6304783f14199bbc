/* The carrier over TCP: a connection between each two processes. */
#ifndef SLP_TCP_H
#define SLP_TCP_H

#include "dist/transport.h"

/* tcp_start.c */
/* Connects to all: fds[rank], -1 for itself.  An error's text goes to why. */
enum sl_status slp_tcp_meet(const struct slp_place *place, int *fds, char why[SLP_DIST_WHY]);

#endif
