/* Devices: their existence, StarPU workers and memory nodes (device.c). */
#ifndef SLP_DEVICE_H
#define SLP_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/compat.h"
#include "starling/base.h"

struct starpu_task;

/* DEFAULT becomes the default device; an error if the device does not exist. */
enum sl_status slp_device_resolve(const char *at, sl_device *device);
int slp_device_team(sl_device device);           /* its index; of sl_cpu_named: its team's */
int slp_device_worker(sl_device device);         /* a device with an index: its worker */
bool slp_device_mixes(sl_device a, sl_device b); /* CPUs of which one has a name alone: operations take both */
int slp_device_pool(sl_device device);           /* index of its pool, below SLP_POOLS */
int slp_pool_workers(int pool);                  /* number of workers that share it */
uint64_t slp_device_nodes(const sl_device *devices, int n); /* the memory nodes of these devices, as bits */
/* "main memory", "gpu:0", "a slave process" */
const char *slp_node_name(unsigned node, char name[SL_DEVICE_NAME_MAX]);
void slp_device_place(struct starpu_task *task, sl_device device, bool cuda);

#endif
