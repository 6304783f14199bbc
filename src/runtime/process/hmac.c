/* HMAC with SHA-256, for the handshake of processes. */
#include "runtime/process/hmac.h"

#include <string.h>

enum { BLOCK = 64 };

struct sha {
	uint32_t h[8];
	uint8_t block[BLOCK];
	uint64_t bytes;
};

/* Fractions of the cube roots of the first 64 primes. */
static const uint32_t k[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
        0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
        0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
        0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
        0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
        0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
        0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

static uint32_t big_endian(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void spread(const uint8_t *block, uint32_t w[64])
{
	for (int i = 0; i < 16; i++) w[i] = big_endian(block + 4 * i);
	for (int i = 16; i < 64; i++) {
		uint32_t a = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
		uint32_t b = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
		w[i] = w[i - 16] + a + w[i - 7] + b;
	}
}

static void compress(struct sha *s)
{
	uint32_t w[64], v[8];
	spread(s->block, w);
	memcpy(v, s->h, sizeof v);
	for (int i = 0; i < 64; i++) {
		uint32_t e = v[4], a = v[0];
		uint32_t one = v[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & v[5]) ^ (~e & v[6])) +
		               k[i] + w[i];
		uint32_t two =
		        (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
		memmove(v + 1, v, 7 * sizeof *v);
		v[4] += one;
		v[0] = one + two;
	}
	for (int i = 0; i < 8; i++) s->h[i] += v[i];
}

static void begin(struct sha *s)
{
	*s = (struct sha){
	        .h = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

static void add(struct sha *s, const void *data, size_t bytes)
{
	const uint8_t *p = data;
	for (size_t i = 0; i < bytes; i++) {
		s->block[s->bytes++ % BLOCK] = p[i];
		if (s->bytes % BLOCK == 0) compress(s);
	}
}

static void end(struct sha *s, uint8_t digest[SLP_HMAC_BYTES])
{
	uint64_t bits = 8 * s->bytes;
	add(s, "\x80", 1);
	while (s->bytes % BLOCK != BLOCK - 8) add(s, "", 1);
	for (int i = 7; i >= 0; i--) add(s, &(uint8_t){(uint8_t)(bits >> 8 * i)}, 1);
	for (int i = 0; i < SLP_HMAC_BYTES; i++) digest[i] = (uint8_t)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}

static void begin_keyed(struct sha *s, const uint8_t key[BLOCK], uint8_t mask)
{
	uint8_t block[BLOCK];
	for (int i = 0; i < BLOCK; i++) block[i] = key[i] ^ mask;
	begin(s);
	add(s, block, BLOCK);
}

void slp_hmac(const char *secret, const struct slp_piece *pieces, int n, uint8_t mac[SLP_HMAC_BYTES])
{
	struct sha s;
	uint8_t key[BLOCK] = {0};
	size_t length = strlen(secret);
	begin(&s);
	add(&s, secret, length);
	if (length > BLOCK) end(&s, key);
	else memcpy(key, secret, length);
	begin_keyed(&s, key, 0x36);
	for (int i = 0; i < n; i++) add(&s, pieces[i].data, pieces[i].bytes);
	end(&s, mac);
	begin_keyed(&s, key, 0x5c);
	add(&s, mac, SLP_HMAC_BYTES);
	end(&s, mac);
}

/* In the same time whatever differs. */
bool slp_hmac_equal(const uint8_t a[SLP_HMAC_BYTES], const uint8_t b[SLP_HMAC_BYTES])
{
	uint8_t difference = 0;
	for (int i = 0; i < SLP_HMAC_BYTES; i++) difference |= a[i] ^ b[i];
	return difference == 0;
}
