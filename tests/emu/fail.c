/* Emulated GPUs: failures on demand. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static atomic_long left[EMU_FAILURE_COUNT];

static const struct {
	const char *text;
	cudaError_t error;
} kinds[] = {
#define X(name, text, error) {text, error},
        EMU_FAILURES(X)
#undef X
};

void emu_fail(enum emu_failure what, long k)
{
	atomic_store(&left[what], k);
}

/* Whether this call shall fail. */
bool emu_fails(enum emu_failure what, cudaError_t *error)
{
	long k = atomic_load_explicit(&left[what], memory_order_relaxed);
	*error = kinds[what].error;
	if (k == 0 || k == -1) return k;
	return k > 0 ? atomic_fetch_sub(&left[what], 1) == 1 : atomic_fetch_add(&left[what], 1) >= -1;
}

/* Reads "malloc:3,launch:10". */
void emu_fail_init(void)
{
	const char *p = getenv("SL_EMU_FAIL");
	while (p && *p) {
		int i = 0;
		size_t n = strcspn(p, ":");
		while (i < EMU_FAILURE_COUNT && (strlen(kinds[i].text) != n || strncmp(kinds[i].text, p, n))) i++;
		if (i == EMU_FAILURE_COUNT || p[n] != ':') emu_misuse("SL_EMU_FAIL: \"%s\" is no list of failures", p);
		emu_fail(i, atol(p + n + 1));
		p += strcspn(p, ",");
		p += *p == ',';
	}
}
