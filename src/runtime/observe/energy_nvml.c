/* The GPUs' counters of energy, by NVML: a library of NVIDIA's driver, loaded when a program asks for its energy. */
#include "config.h"
#include "runtime/observe/energy.h"

#include <math.h>

#ifdef HAVE_CUDA
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "runtime/compat.h"
#include "runtime/engine.h"
#include "runtime/process/processes.h"

/* X(name, arguments): the functions of NVML; each returns 0 for success. */
#define NVML_FUNCTIONS(X)                                                                                              \
	X(nvmlInit_v2, (void))                                                                                         \
	X(nvmlShutdown, (void))                                                                                        \
	X(nvmlDeviceGetHandleByPciBusId_v2, (const char *bus, void **device))                                          \
	X(nvmlDeviceGetTotalEnergyConsumption, (void *device, unsigned long long *millijoules))

static struct {
	void *library;
	bool on;
	int count;
	void *devices[SLP_MAX_GPUS];
#define X(name, arguments) int(*name) arguments;
	NVML_FUNCTIONS(X)
#undef X
	const char *(*nvmlErrorString)(int status);
} nvml;

static void *find(const char *name)
{
	return nvml.library ? dlsym(nvml.library, name) : NULL;
}

static bool load(char why[SLP_ENERGY_WHY])
{
	const char *missing = NULL;
	void *function;
	if (!nvml.library) nvml.library = dlopen(slp_env_or("SL_NVML", "libnvidia-ml.so.1"), RTLD_NOW | RTLD_LOCAL);
	if (!nvml.library) {
		snprintf(why, SLP_ENERGY_WHY, "%s", dlerror());
		return false;
	}
#define X(name, arguments)                                                                                             \
	if ((function = find(#name))) memcpy(&nvml.name, &function, sizeof function);                                  \
	else missing = #name;
	NVML_FUNCTIONS(X)
	X(nvmlErrorString, )
#undef X
	if (missing) snprintf(why, SLP_ENERGY_WHY, "NVML has no %s", missing);
	return !missing;
}

static bool is_ok(int status, const char *function, char why[SLP_ENERGY_WHY])
{
	if (status) snprintf(why, SLP_ENERGY_WHY, "%s: %s", function, nvml.nvmlErrorString(status));
	return !status;
}

/* By its place on the bus: NVML and CUDA number devices differently. */
static bool add_device(int gpu, char why[SLP_ENERGY_WHY])
{
	char bus[32];
	int device = starpu_worker_get_devid(slp_engine.gpu_worker[gpu]);
	cudaError_t e = cudaDeviceGetPCIBusId(bus, sizeof bus, device);
	if (e != cudaSuccess) {
		snprintf(why, SLP_ENERGY_WHY, "cudaDeviceGetPCIBusId: %s", cudaGetErrorString(e));
		return false;
	}
	return is_ok(nvml.nvmlDeviceGetHandleByPciBusId_v2(bus, &nvml.devices[nvml.count++]),
	             "nvmlDeviceGetHandleByPciBusId", why);
}

bool slp_nvml_start(char why[SLP_ENERGY_WHY])
{
	slp_nvml_stop();
	if (!load(why)) return false;
	nvml.on = is_ok(nvml.nvmlInit_v2(), "nvmlInit", why);
	bool ok = nvml.on;
	for (int i = 0; ok && i < slp_engine.ngpus; i++) ok = add_device(i, why);
	ok = ok && !isnan(slp_nvml_joules(why));
	if (!ok) slp_nvml_stop();
	return ok;
}

double slp_nvml_joules(char why[SLP_ENERGY_WHY])
{
	double sum = 0;
	for (int i = 0; i < nvml.count; i++) {
		unsigned long long mj = 0;
		int status = nvml.nvmlDeviceGetTotalEnergyConsumption(nvml.devices[i], &mj);
		if (!is_ok(status, "nvmlDeviceGetTotalEnergyConsumption", why)) return NAN;
		sum += 1e-3 * (double)mj;
	}
	return sum;
}

void slp_nvml_stop(void)
{
	if (nvml.on) nvml.nvmlShutdown();
	nvml.on = false;
	nvml.count = 0;
}

#else
#include <stdio.h>

bool slp_nvml_start(char why[SLP_ENERGY_WHY])
{
	snprintf(why, SLP_ENERGY_WHY, "Starling was built without CUDA");
	return false;
}

double slp_nvml_joules(char why[SLP_ENERGY_WHY])
{
	(void)why;
	return NAN;
}

void slp_nvml_stop(void)
{
}
#endif
