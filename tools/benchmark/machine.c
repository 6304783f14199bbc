/* The line that describes the measured machine. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <starpu.h>
#ifdef HAVE_ONEDNN
#include <dnnl.h>
#endif
#ifdef HAVE_OPENBLAS
#include <cblas.h>
#endif

#include "../../models/driver/compiler.h"
#include "bench.h"

enum { GPU_LINE = 256 };

/* Cores that this process may use. */
int bench_cores(void)
{
	cpu_set_t may;
	return sched_getaffinity(0, sizeof may, &may) ? 1 : CPU_COUNT(&may);
}

static void cpu_model(char *text, size_t size)
{
	snprintf(text, size, "unknown CPU");
	FILE *file = fopen("/proc/cpuinfo", "r");
	char line[256];
	while (file && fgets(line, sizeof line, file)) {
		char *value = strchr(line, ':');
		if (strncmp(line, "model name", 10) || !value) continue;
		snprintf(text, size, "%s", value + 2);
		text[strcspn(text, "\n")] = '\0';
		break;
	}
	if (file) fclose(file);
}

static void libraries(char *text, size_t size)
{
	int major, minor, release, n;
	starpu_get_version(&major, &minor, &release);
	const char *sched = getenv("STARPU_SCHED");
	n = snprintf(text, size, "Starling %s, %s, StarPU %d.%d.%d (%s)", sl_version(), DRV_COMPILER, major, minor,
	             release, sched && *sched ? sched : "lws");
#ifdef HAVE_ONEDNN
	const dnnl_version_t *v = dnnl_version();
	n += snprintf(text + n, size - (size_t)n, ", oneDNN %d.%d.%d", v->major, v->minor, v->patch);
#endif
#ifdef HAVE_OPENBLAS
	char config[64]; /* "OpenBLAS 0.3.21 NO_LAPACKE ..." */
	snprintf(config, sizeof config, "%s", openblas_get_config());
	char *end = strchr(config, ' ');
	if (end) end = strchr(end + 1, ' ');
	if (end) *end = '\0';
	n += snprintf(text + n, size - (size_t)n, ", %s", config);
#endif
	if (bench_peer_name()) snprintf(text + n, size - (size_t)n, ", peer %s", bench_peer_name());
}

struct figures {
	double one, all, read, copied, price;
};

static void measure(const void *arg, void *result)
{
	enum { AREA = 256 << 20 };
	int threads = *(const int *)arg;
	*(struct figures *)result = (struct figures){
	        .one = bench_gemm_peak(1),
	        .all = bench_gemm_peak(threads),
	        .read = bench_bandwidth(AREA, 0, threads),
	        .copied = bench_bandwidth(AREA / 2, AREA / 2, threads),
	};
	struct sl_config config = {.gpus = -1};
	if (sl_init(&config) != SL_OK) return;
	bench_task_price();
	((struct figures *)result)->price = bench_task_price();
	sl_shutdown();
}

/* The description of a GPU, followed by a semicolon; nothing for CPUs. */
static void gpu_figures(const void *arg, void *result)
{
	int device = *(const int *)arg;
	char name[64], *line = result;
	bench_gpu_name(device, name, sizeof name);
	snprintf(line, GPU_LINE,
	         "%s, sgemm %.1f TFLOP/s, memory %.0f GB/s copied (read and written), link %.1f GB/s to it and %.1f "
	         "back; ",
	         name, 1e-12 * bench_gpu_gemm_peak(device, BENCH_FLOAT32),
	         1e-9 * bench_gpu_bandwidth(device, 512 << 20, 512 << 20), 1e-9 * bench_gpu_link(device, true),
	         1e-9 * bench_gpu_link(device, false));
}

void bench_machine(char *line, size_t size, const struct bench_options *o)
{
	int threads = o->threads;
	char model[128], with[256], gpu[GPU_LINE] = "";
	struct figures f = {NAN, NAN, NAN, NAN, NAN};
	double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / (1 << 30);
	cpu_model(model, sizeof model);
	libraries(with, sizeof with);
	double load = 0;
	getloadavg(&load, 1);
	bench_in_child(measure, &threads, &f, sizeof f);
	if (o->device.kind == SL_DEVICE_GPU) bench_in_child(gpu_figures, &o->device.index, gpu, sizeof gpu);
	snprintf(line, size,
	         "%s%s, %d cores, %.0f GiB; %s; sgemm %.0f GFLOP/s on one core, %.0f on all; "
	         "memory %.0f GB/s read, %.0f GB/s copied (read and written); a StarPU task %.1f µs; "
	         "load before: %.1f",
	         gpu, model, threads, memory, with, 1e-9 * f.one, 1e-9 * f.all, 1e-9 * f.read, 1e-9 * f.copied,
	         1e6 * f.price, load);
}
