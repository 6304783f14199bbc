/* Accepts connections of processes that know a secret.  Each connection is greeted with a random number; a Starling
 * process answers with a hello that begins with SLP_MAGIC and contains a proof made from that number. */
#ifndef SLP_ACCEPTOR_H
#define SLP_ACCEPTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "runtime/process/hmac.h"

/* Eight bytes without a 0 at their end. */
#define SLP_MAGIC "STARLING"
#ifdef __has_attribute
#if __has_attribute(nonstring)
#define SLP_NONSTRING __attribute__((nonstring))
#endif
#endif
#ifndef SLP_NONSTRING
#define SLP_NONSTRING
#endif

enum { SLP_NONCE = 16, SLP_CALLERS_MOST = 512, SLP_HELLO_MOST = 256 };

struct slp_greeting {
	char magic[8] SLP_NONSTRING;
	uint8_t nonce[SLP_NONCE];
};

/* A connection whose process may not have sent all of its hello yet. */
struct slp_caller {
	int fd;
	size_t came; /* bytes of its hello */
	struct slp_greeting greeting;
	_Alignas(16) char hello[SLP_HELLO_MOST];
};

struct slp_acceptor {
	int listener; /* -1: none */
	int count;
	size_t hello;            /* bytes of a hello */
	struct slp_caller *list; /* of SLP_CALLERS_MOST; NULL: nobody has come */
};

/* Waits for a whole hello, which proves nothing yet; the socket belongs to the caller.  False: the time is over. */
bool slp_acceptor_wait(struct slp_acceptor *a, double deadline, struct slp_caller *who);
void slp_acceptor_close(struct slp_acceptor *a);

/* The proof of the secret that `role` gives about some data, for the nonce of the other side. */
void slp_prove(const char *secret, const char *role, const uint8_t nonce[SLP_NONCE], const void *data, size_t bytes,
               uint8_t mac[SLP_HMAC_BYTES]);
bool slp_is_proof(const char *secret, const char *role, const uint8_t nonce[SLP_NONCE], const void *data, size_t bytes,
                  const uint8_t mac[SLP_HMAC_BYTES]);

#endif
