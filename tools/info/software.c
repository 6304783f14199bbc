/* The versions of libraries, and the kernels that were chosen for this CPU. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <hwloc.h>
#include <starpu.h>
#include <starling/base.h>
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#ifdef HAVE_ONEDNN
#include <dnnl.h>
#endif
#ifdef HAVE_OPENBLAS
#include <cblas.h>
#endif

#include "dist/gpu.h"
#include "info.h"
#include "op_inner.h"

/* ---- libraries --------------------------------------------------------------------------------------------------- */

static void add_version(json_t *all, const char *name, int major, int minor, int patch)
{
	json_object_set_new(all, name, json_sprintf("%d.%d.%d", major, minor, patch));
}

static void add_starpu(json_t *all)
{
	int major, minor, release;
	starpu_get_version(&major, &minor, &release);
	const char *cuda = "", *trace = "", *simulation = "";
#ifdef STARPU_USE_CUDA
	cuda = ", CUDA";
#endif
#ifdef STARPU_USE_FXT
	trace = ", FxT";
#endif
#ifdef STARPU_SIMGRID
	simulation = ", SimGrid";
#endif
	json_object_set_new(all, "StarPU",
	                    json_sprintf("%d.%d.%d, %d buffers a task%s%s%s", major, minor, release, STARPU_NMAXBUFS,
	                                 cuda, trace, simulation));
}

#ifdef HAVE_CUDA
static void add_cuda(json_t *all)
{
	int driver = 0, runtime = 0;
	if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
	if (cudaRuntimeGetVersion(&runtime) != cudaSuccess) runtime = 0;
	json_object_set_new(all, "CUDA",
	                    json_sprintf("%d.%d, driver for %d.%d", runtime / 1000, runtime % 1000 / 10, driver / 1000,
	                                 driver % 1000 / 10));
	char nccl[SLP_DIST_WHY];
	slp_nccl_find(nccl);
	json_object_set_new(all, "NCCL", json_string(nccl));
}
#endif

json_t *info_libraries(void)
{
	json_t *all = json_object();
	json_object_set_new(all, "Starling", json_string(sl_version()));
	add_starpu(all);
#ifdef HAVE_CUDA
	add_cuda(all);
#else
	json_object_set_new(all, "CUDA", json_string("not built in"));
#endif
#ifdef HAVE_ONEDNN
	const dnnl_version_t *v = dnnl_version();
	add_version(all, "oneDNN", v->major, v->minor, v->patch);
#else
	json_object_set_new(all, "oneDNN", json_string("not built in"));
#endif
#ifdef HAVE_OPENBLAS
	json_object_set_new(all, "OpenBLAS", json_string(openblas_get_config()));
#else
	json_object_set_new(all, "OpenBLAS", json_string("not built in"));
#endif
	unsigned hwloc = hwloc_get_api_version();
	add_version(all, "hwloc", (int)(hwloc >> 16), (int)(hwloc >> 8 & 255), (int)(hwloc & 255));
	json_object_set_new(all, "jansson", json_string(JANSSON_VERSION));
	json_object_set_new(all, "zlib", json_string(zlibVersion()));
	return all;
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

/* The loader's choice among the variants that SLP_CLONES makes, by the same tests. */
static const char *variant(void)
{
#ifdef SLP_TARGETS
	__builtin_cpu_init();
	if (__builtin_cpu_supports(SLP_TARGET_512)) return SLP_TARGET_512 ": the CPU has AVX-512";
	if (__builtin_cpu_supports(SLP_TARGET_256)) return SLP_TARGET_256 ": the CPU has AVX2, but not all of AVX-512";
	return "baseline: the CPU has no AVX2";
#else
#ifdef __x86_64__
	return "one only: the compiler made no variants; they are slow unless configured with --enable-native";
#else
	return "one only: this architecture needs no variants";
#endif
#endif
}

#ifdef HAVE_ONEDNN
static json_t *onednn_isa(void)
{
	static const struct {
		dnnl_cpu_isa_t isa;
		const char *name;
	} names[] = {{dnnl_cpu_isa_sse41, "SSE4.1"},
	             {dnnl_cpu_isa_avx, "AVX"},
	             {dnnl_cpu_isa_avx2, "AVX2"},
	             {dnnl_cpu_isa_avx512_core, "AVX-512"},
	             {dnnl_cpu_isa_avx512_core_vnni, "AVX-512 with VNNI"},
	             {dnnl_cpu_isa_avx512_core_bf16, "AVX-512 with bfloat16"},
	             {dnnl_cpu_isa_avx512_core_amx, "AMX"}};
	dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].isa == isa) return json_string(names[i].name);
	return json_sprintf("number %#x of dnnl_cpu_isa_t", (unsigned)isa);
}
#endif

static const char *convolutions(void)
{
#ifdef HAVE_ONEDNN
	return slp_conv_has_n16() ? "own ones of few channels, else oneDNN" : "oneDNN";
#else
	return slp_conv_has_n16() ? "own ones of few channels, else products of matrices" : "products of matrices";
#endif
}

json_t *info_kernels(void)
{
	json_t *all = json_pack("{s:s, s:s, s:s, s:s}", "own", variant(), "products", slp_sgemm_library(),
	                        "products because", slp_sgemm_reason(), "convolutions", convolutions());
#ifdef HAVE_ONEDNN
	const char *winograd = getenv("SL_WINOGRAD");
	json_object_set_new(all, "Winograd", json_boolean(!winograd || strcmp(winograd, "0") != 0));
	json_object_set_new(all, "oneDNN uses", onednn_isa());
#endif
#ifdef HAVE_OPENBLAS
	json_object_set_new(all, "OpenBLAS uses", json_string(openblas_get_corename()));
#endif
	return all;
}
