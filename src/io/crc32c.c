/* CRC-32C (Castagnoli's polynomial, reflected): by the processor's instruction, or by tables, eight bytes a step
 * (M. Kounavis, F. Berry, "A systematic approach to building high performance software-based CRC generators", 2005). */
#include <pthread.h>
#include <string.h>
#ifdef __aarch64__
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "io/crc32c.h"

static uint32_t tables[8][256];

static void make_tables(void)
{
	const uint32_t polynomial = 0x82f63b78;
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;
		for (int bit = 0; bit < 8; bit++) c = c & 1 ? c >> 1 ^ polynomial : c >> 1;
		tables[0][i] = c;
	}
	for (int t = 1; t < 8; t++)
		for (int i = 0; i < 256; i++) tables[t][i] = tables[t - 1][i] >> 8 ^ tables[0][tables[t - 1][i] & 255];
}

static uint64_t eight_bytes(const unsigned char *p)
{
	uint64_t v;
	memcpy(&v, p, 8);
	return v;
}

static uint32_t by_tables(uint32_t c, const unsigned char *p, size_t size)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, make_tables);
	for (; size >= 8; p += 8, size -= 8) {
		uint64_t v = eight_bytes(p) ^ c;
		c = 0;
		for (int i = 0; i < 8; i++) c ^= tables[7 - i][v >> 8 * i & 255];
	}
	for (; size; p++, size--) c = c >> 8 ^ tables[0][(c ^ *p) & 255];
	return c;
}

/* EIGHT, ONE: the instruction, of as many bytes; TARGET compiles for it, HAS asks the processor. */
#if defined(__x86_64__)
#define TARGET "sse4.2"
#define EIGHT(c, v) __builtin_ia32_crc32di(c, v)
#define ONE(c, v) __builtin_ia32_crc32qi(c, v)
#define HAS __builtin_cpu_supports("sse4.2")
#elif defined(__aarch64__) && defined(__GNUC__) && !defined(__clang__)
#define TARGET "+crc"
#define EIGHT(c, v) __builtin_aarch64_crc32cx(c, v)
#define ONE(c, v) __builtin_aarch64_crc32cb(c, v)
#define HAS (getauxval(AT_HWCAP) & HWCAP_CRC32)
#endif

#ifdef TARGET
__attribute__((target(TARGET))) static uint32_t by_instruction(uint32_t c, const unsigned char *p, size_t size)
{
	for (; size >= 8; p += 8, size -= 8) c = (uint32_t)EIGHT(c, eight_bytes(p));
	for (; size; p++, size--) c = ONE(c, *p);
	return c;
}
#endif

uint32_t slp_crc32c(uint32_t before, const void *data, size_t size)
{
#ifdef TARGET
	if (HAS) return ~by_instruction(~before, data, size);
#endif
	return ~by_tables(~before, data, size);
}
