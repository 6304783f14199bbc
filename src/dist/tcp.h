/* The carrier over TCP: a connection between each two processes. */
#ifndef SLP_TCP_H
#define SLP_TCP_H

#include "dist/transport.h"

/* tcp_start.c */
/* Connects to all: fds[rank], -1 for itself.  An error's text goes to why. */
enum sl_status slp_tcp_meet(const struct slp_place *place, int *fds, char why[SLP_DIST_WHY]);

/* tcp_wire.c: whole messages, before a deadline; false: not in time, or the connection has ended. */
bool slp_tcp_write(int fd, const void *data, size_t bytes, double deadline);
bool slp_tcp_read(int fd, void *data, size_t bytes, double deadline);
/* A socket that listens at an address, port 0: any; -1 with errno. */
struct sockaddr_storage;
int slp_tcp_listen(const struct sockaddr_storage *address, unsigned length);
int slp_tcp_accept(int fd, double deadline);  /* -1: nobody came */
int slp_tcp_connect(const struct sockaddr_storage *address, unsigned length, double deadline); /* -1 with errno */

#endif
