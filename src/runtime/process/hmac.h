/* Proof of a shared secret: HMAC with SHA-256 (RFC 2104, FIPS 180-4). */
#ifndef SLP_HMAC_H
#define SLP_HMAC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SLP_HMAC_BYTES = 32 };
/* Of n pieces one after the other. */
struct slp_piece {
	const void *data;
	size_t bytes;
};
void slp_hmac(const char *secret, const struct slp_piece *pieces, int n, uint8_t mac[SLP_HMAC_BYTES]);
bool slp_hmac_equal(const uint8_t a[SLP_HMAC_BYTES], const uint8_t b[SLP_HMAC_BYTES]);

#endif
