/* The proof of a shared secret: the test vectors of RFC 4231, in one piece and in several. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "runtime/process/hmac.h"

#define TIMES_5(text) text text text text text
#define TIMES_10(text) TIMES_5(text) TIMES_5(text)
#define TIMES_20(text) TIMES_10(text) TIMES_10(text)
#define KEY_OF_131                                                                                                     \
	TIMES_20("\xaa")                                                                                               \
	TIMES_20("\xaa") TIMES_20("\xaa") TIMES_20("\xaa") TIMES_20("\xaa") TIMES_20("\xaa") TIMES_10("\xaa") "\xaa"

static const struct vector {
	const char *key, *data, *mac;
} vectors[] = {
        {TIMES_20("\x0b"), "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
        {"Jefe", "what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
        {TIMES_20("\xaa"), TIMES_20("\xdd") TIMES_20("\xdd") TIMES_10("\xdd"),
         "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
        {"\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19",
         TIMES_20("\xcd") TIMES_20("\xcd") TIMES_10("\xcd"),
         "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
        {TIMES_20("\x0c"), "Test With Truncation", "a3b6167473100ee06e0c796c2955552b"}, /* 128 bits of it */
        {KEY_OF_131, "Test Using Larger Than Block-Size Key - Hash Key First",
         "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
        {KEY_OF_131,
         "This is a test using a larger than block-size key and a larger than block-size data. The key needs to be "
         "hashed before being used by the HMAC algorithm.",
         "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
};

static void hexadecimal(const uint8_t mac[SLP_HMAC_BYTES], char text[2 * SLP_HMAC_BYTES + 1])
{
	for (int i = 0; i < SLP_HMAC_BYTES; i++) snprintf(text + 2 * i, 3, "%02x", mac[i]);
}

static void check_vector(const struct vector *v, const struct slp_piece *pieces, int n)
{
	uint8_t mac[SLP_HMAC_BYTES];
	char text[2 * SLP_HMAC_BYTES + 1];
	slp_hmac(v->key, pieces, n, mac);
	hexadecimal(mac, text);
	CHECK_SAYING(!strncmp(text, v->mac, strlen(v->mac)), "%.20s... in %d pieces: %s instead of %s", v->data, n,
	             text, v->mac);
}

static void test_vectors(void)
{
	for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
		const struct vector *v = &vectors[i];
		size_t length = strlen(v->data);
		check_vector(v, (struct slp_piece[]){{v->data, length}}, 1);
		check_vector(v, (struct slp_piece[]){{v->data, 3}, {"", 0}, {v->data + 3, length - 3}}, 3);
	}
}

static void test_equal(void)
{
	uint8_t a[SLP_HMAC_BYTES] = {1, 2, 3}, b[SLP_HMAC_BYTES] = {1, 2, 3};
	CHECK(slp_hmac_equal(a, b));
	for (int i = 0; i < SLP_HMAC_BYTES; i++) {
		b[i] ^= 0x80;
		CHECK(!slp_hmac_equal(a, b));
		b[i] ^= 0x80;
	}
}

int main(int argc, char **argv)
{
	static const struct slp_test tests[] = {{"RFC 4231", test_vectors}, {"equal", test_equal}, {NULL, NULL}};
	static const struct slp_suite suites[] = {{.name = "hmac", .tests = tests}, {.name = NULL}};
	return slp_test_main(argc, argv, suites);
}
