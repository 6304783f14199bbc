/* Sockets with deadlines (as of sl_time); a missed deadline sets errno. */
#ifndef SLP_SOCKETS_H
#define SLP_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>

struct sockaddr_storage;

/* All of it; false: not in time, or the connection has ended. */
bool slp_socket_write(int fd, const void *data, size_t bytes, double deadline);
bool slp_socket_read(int fd, void *data, size_t bytes, double deadline);

/* Whether only this machine reaches it: 127.0.0.0/8, ::1. */
bool slp_address_is_loopback(const struct sockaddr_storage *address);

/* These return a socket, or -1.  Port 0 is any. */
int slp_socket_listen(const struct sockaddr_storage *address, unsigned length);
int slp_socket_accept(int fd, double deadline);
int slp_socket_connect(const struct sockaddr_storage *address, unsigned length, double deadline);
int slp_socket_connect_later(const struct sockaddr_storage *address, unsigned length,
                             double deadline); /* it may listen only later */

#endif
