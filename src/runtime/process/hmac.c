/* HMAC with SHA-256, from libsodium.  These functions of it need no sodium_init: they use neither random numbers nor code
 * that is chosen by the processor.  They return 0 always. */
#include "runtime/process/hmac.h"

#include <sodium.h>
#include <string.h>

_Static_assert(SLP_HMAC_BYTES == crypto_auth_hmacsha256_BYTES, "libsodium has another length");

void slp_hmac(const char *secret, const struct slp_piece *pieces, int n, uint8_t mac[SLP_HMAC_BYTES])
{
	crypto_auth_hmacsha256_state state;
	crypto_auth_hmacsha256_init(&state, (const unsigned char *)secret, strlen(secret));
	for (int i = 0; i < n; i++) crypto_auth_hmacsha256_update(&state, pieces[i].data, pieces[i].bytes);
	crypto_auth_hmacsha256_final(&state, mac);
	sodium_memzero(&state, sizeof state);
}

/* In the same time whatever differs. */
bool slp_hmac_equal(const uint8_t a[SLP_HMAC_BYTES], const uint8_t b[SLP_HMAC_BYTES])
{
	return sodium_memcmp(a, b, SLP_HMAC_BYTES) == 0;
}
