/* Files from which samples read their part on demand.  They are read with pread, not mapped: the system caches the
 * same pages either way, and a file that is truncated meanwhile is an error here, not a SIGBUS. */
#ifndef SLP_DISK_H
#define SLP_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct slp_disk {
	int file; /* -1: none */
	char *path;
	int64_t size;
};

/* Opens a regular file; false with an error that names it (slp_data_fail). */
bool slp_disk_open(struct slp_disk *k, const char *path);
/* Reads bytes from a place on, all of them; by any thread. */
bool slp_disk_read(const struct slp_disk *k, int64_t from, void *to, size_t bytes);
/* A checksum of its size, its first and last bytes and some between. */
bool slp_disk_sum(const struct slp_disk *k, uint32_t *sum);
void slp_disk_close(struct slp_disk *k);

#endif
