/* Emulated GPUs: settings, devices, errors. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

struct emu_settings emu_settings;
struct emu_device emu_devices[EMU_MAX_DEVICES];

static __thread int current;
static __thread cudaError_t last;

void emu_misuse(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fputs("emulated GPU: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	abort();
}

cudaError_t emu_result(cudaError_t e)
{
	if (e != cudaSuccess) last = e;
	return e;
}

int emu_current(void)
{
	return current;
}

void emu_set_current(int device)
{
	current = device;
}

static int setting(const char *name, int otherwise)
{
	const char *text = getenv(name);
	if (!text || !*text) return otherwise;
	char *end;
	long v = strtol(text, &end, 10);
	if (*end || v < 0 || v > 1 << 20) emu_misuse("%s=%s is no number from 0 on", name, text);
	return (int)v;
}

static enum emu_order thread_order;
static unsigned thread_seed = 1;

static void read_order(void)
{
	const char *text = getenv("SL_EMU_ORDER");
	if (!text || !*text || !strcmp(text, "forward")) return;
	bool random = !strncmp(text, "random", 6);
	if (random && text[6] && sscanf(text + 6, ":%u", &thread_seed) != 1) random = false;
	if (!random && strcmp(text, "backward")) emu_misuse("SL_EMU_ORDER=%s is no order", text);
	thread_order = random ? EMU_RANDOM : EMU_BACKWARD;
}

enum emu_order emu_order(unsigned *seed)
{
	*seed = thread_seed;
	return thread_order;
}

static void start(void)
{
#define X(name, variable, otherwise) emu_settings.name = setting(variable, otherwise);
	EMU_SETTINGS(X)
#undef X
	if (emu_settings.devices > EMU_MAX_DEVICES) emu_misuse("SL_EMU_DEVICES: at most %d", EMU_MAX_DEVICES);
	emu_fail_init();
	read_order();
	for (int i = 0; i < emu_settings.devices; i++) {
		emu_devices[i].id = i;
		emu_memory_init(&emu_devices[i]);
	}
	if (emu_settings.stats) atexit(emu_counts_print);
	if (emu_settings.kernels) atexit(emu_kernels_print);
}

bool emu_start(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, start);
	return current < emu_settings.devices;
}

/* ---- versions --------------------------------------------------------------------------------------------------- */

/* Those of the headers that this was compiled with. */
cudaError_t cudaRuntimeGetVersion(int *version)
{
	*version = CUDART_VERSION;
	return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
	return cudaRuntimeGetVersion(version);
}

/* ---- devices ---------------------------------------------------------------------------------------------------- */

cudaError_t cudaGetDeviceCount(int *count)
{
	emu_start();
	*count = emu_settings.devices;
	return *count ? cudaSuccess : emu_result(cudaErrorNoDevice);
}

cudaError_t cudaSetDevice(int device)
{
	emu_start();
	if (device < 0 || device >= emu_settings.devices) return emu_result(cudaErrorInvalidDevice);
	current = device;
	return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
	*device = current;
	return emu_start() ? cudaSuccess : emu_result(cudaErrorNoDevice);
}

static const char *name = "emulated GPU, test equipment";

void emu_name(const char *now)
{
	name = now;
}

/* Only what is read of them is set. */
cudaError_t cudaDeviceGetPCIBusId(char *bus, int size, int device)
{
	emu_start();
	if (device < 0 || device >= emu_settings.devices) return emu_result(cudaErrorInvalidDevice);
	snprintf(bus, (size_t)size, "0000:%02x:00.0", (unsigned)device + 1);
	return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device)
{
	emu_start();
	if (device < 0 || device >= emu_settings.devices) return emu_result(cudaErrorInvalidDevice);
	memset(p, 0, sizeof *p);
	snprintf(p->name, sizeof p->name, "%s", name);
	p->totalGlobalMem = emu_devices[device].size;
	p->sharedMemPerBlock = 48 << 10;
	p->warpSize = 32;
	p->maxThreadsPerBlock = p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
	p->maxThreadsDim[2] = 64;
	p->maxGridSize[0] = 0x7fffffff;
	p->maxGridSize[1] = p->maxGridSize[2] = 65535;
	p->major = 8;
	p->multiProcessorCount = 4;
	p->canMapHostMemory = p->unifiedAddressing = p->concurrentKernels = 1;
	p->asyncEngineCount = 2;
	p->pciBusID = device + 1;
	return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
	emu_start();
	int n = emu_settings.devices;
	if (device < 0 || peer < 0 || device >= n || peer >= n) return emu_result(cudaErrorInvalidDevice);
	*can = device != peer && emu_settings.peer;
	return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
	bool good = emu_start() && peer >= 0 && peer < emu_settings.devices && peer != current && !flags;
	return good ? cudaSuccess : emu_result(cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceSynchronize(void)
{
	if (!emu_start()) return emu_result(cudaErrorNoDevice);
	EMU_NOT_CAPTURED;
	emu_count_wait(EMU_WAIT_DEVICE);
	emu_drain_device(&emu_devices[current]);
	return cudaSuccess;
}

/* StarPU calls it when it stops.  Memory that is still allocated then is a leak, but StarPU's own. */
cudaError_t cudaDeviceReset(void)
{
	return cudaDeviceSynchronize();
}

/* ---- errors ----------------------------------------------------------------------------------------------------- */

cudaError_t cudaGetLastError(void)
{
	cudaError_t e = last;
	last = cudaSuccess;
	return e;
}

cudaError_t cudaPeekAtLastError(void)
{
	return last;
}

const char *cudaGetErrorString(cudaError_t e)
{
	switch (e) {
/* clang-format off */
#define NAMED(x)                                                                                                       \
	case x:                                                                                                        \
		return #x " (emulated GPU)";
		/* clang-format on */
		NAMED(cudaSuccess)
		NAMED(cudaErrorInvalidValue)
		NAMED(cudaErrorMemoryAllocation)
		NAMED(cudaErrorNoDevice)
		NAMED(cudaErrorInvalidDevice)
		NAMED(cudaErrorNotReady)
		NAMED(cudaErrorInvalidResourceHandle)
		NAMED(cudaErrorHostMemoryAlreadyRegistered)
		NAMED(cudaErrorHostMemoryNotRegistered)
		NAMED(cudaErrorIllegalAddress)
		NAMED(cudaErrorLaunchOutOfResources)
		NAMED(cudaErrorIllegalState)
		NAMED(cudaErrorStreamCaptureUnsupported)
		NAMED(cudaErrorStreamCaptureInvalidated)
		NAMED(cudaErrorStreamCaptureWrongThread)
		NAMED(cudaErrorGraphExecUpdateFailure)
#undef NAMED
	default: return "an error (emulated GPU)";
	}
}
