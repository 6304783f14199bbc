/* Which instructions oneDNN may use, chosen while the library is loaded, before oneDNN makes its first kernel.
 *
 * Intel's processors with AVX512_BF16, of which many virtual machines hide AMX, multiply pairs of bfloat16 at a quarter
 * of the rate of float32's instructions, so half as many products a second (doc/performance.md); AMD's twice as many.
 * There, oneDNN multiplies bfloat16 by float32's instructions, and products are computed in float32. */
#include "config.h"

#if defined(HAVE_ONEDNN) && defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <dnnl.h>
#include <stdbool.h>
#include <stdlib.h>

static bool is_set(const char *name)
{
	const char *value = getenv(name);
	return value && *value;
}

/* Whether AMX has instructions for bfloat16: in leaf 7, EDX, bit 22. */
static bool has_amx_bf16(void)
{
	unsigned a, b, c, d;
	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 22 & 1);
}

__attribute__((constructor)) static void limit(void)
{
	__builtin_cpu_init();
	bool slow = __builtin_cpu_is("intel") && __builtin_cpu_supports("avx512bf16") && !has_amx_bf16();
	if (!slow || is_set("ONEDNN_MAX_CPU_ISA") || is_set("DNNL_MAX_CPU_ISA")) return;
	(void)dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx512_core_vnni); /* a wish: others may use oneDNN already */
}
#endif
