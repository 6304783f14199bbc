/* NVML for tests: devices by their places on the bus, as emulated GPUs name them, whose counters rise by 1 J times the
 * device's weight at every reading; they fail while NVML_FAILS is set. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { OK, INVALID_ARGUMENT = 2, LOST = 15, DEVICES = 8 };

static unsigned long long millijoules[DEVICES];
static int users;

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device);
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules);
const char *nvmlErrorString(int status);

int nvmlInit_v2(void)
{
	users++;
	return OK;
}

int nvmlShutdown(void)
{
	return users-- > 0 ? OK : INVALID_ARGUMENT;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device)
{
	unsigned number;
	if (!users || sscanf(bus, "0000:%x:00.0", &number) != 1 || number < 1 || number > DEVICES)
		return INVALID_ARGUMENT;
	*device = &millijoules[number - 1];
	return OK;
}

int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *to)
{
	unsigned long long *count = device;
	if (!users || getenv("NVML_FAILS")) return LOST;
	*to = *count += count == millijoules ? 1000 : 10000;
	return OK;
}

const char *nvmlErrorString(int status)
{
	return status == LOST ? "GPU is lost" : "Invalid Argument";
}
