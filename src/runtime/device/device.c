/* Devices: their names, their existence, and their StarPU workers. */
#include <stdlib.h>
#include <string.h>

#include "ascii.h"
#include "op.h"
#include "runtime/device/device.h"
#include "runtime/engine.h"
#include "starling/device.h"

/* The device `auto`: the scheduler chooses a device for each call. */
sl_device sl_auto(void)
{
	return (sl_device){SL_DEVICE_AUTO, -1};
}

/* CPU team `index`, from 0; -1: any. Calls that use it check that it exists. */
sl_device sl_cpu(int index)
{
	return (sl_device){SL_DEVICE_CPU, index};
}

enum { NAMED = 1 << 16 }; /* added to the number of a device of sl_cpu_named */

/* A CPU device of any number from 0, whether there is such a team or not: the name "cpu:NUMBER" is its own, calls run on team
 * `number` modulo the number of teams.  For programs that name CPUs without knowing the teams.  An operation between such a device and
 * another CPU is on the device of its first input.
 *
 *     sl_tensor *x = sl_zeros(SL_SHAPE(2), .device = sl_cpu_named(7)); */
sl_device sl_cpu_named(int number)
{
	return (sl_device){SL_DEVICE_CPU, number < 0 ? -1 : NAMED + number % NAMED};
}

/* The number in the device's name; -1: the name has none. */
int sl_device_number(sl_device device)
{
	if (device.kind < SL_DEVICE_CPU || device.index < 0) return -1;
	return device.kind == SL_DEVICE_CPU ? device.index % NAMED : device.index;
}

static bool is_named(sl_device device)
{
	return device.kind == SL_DEVICE_CPU && device.index >= NAMED;
}

bool slp_device_mixes(sl_device a, sl_device b)
{
	return a.kind == SL_DEVICE_CPU && b.kind == SL_DEVICE_CPU && (is_named(a) || is_named(b));
}

int slp_device_team(sl_device device)
{
	return is_named(device) ? sl_device_number(device) % slp_engine.nteams : device.index;
}

int slp_device_worker(sl_device device)
{
	return device.kind == SL_DEVICE_CPU ? slp_engine.team_worker[slp_device_team(device)]
	                                    : slp_engine.gpu_worker[device.index];
}

/* CUDA device `index`, from 0; -1: any. Calls that use it check that it exists. */
sl_device sl_gpu(int index)
{
	return (sl_device){SL_DEVICE_GPU, index};
}

/* The number of devices of a kind: CPU teams or GPUs; 0 before sl_init. */
int sl_device_count(enum sl_device_kind kind)
{
	SLP_CALL("sl_device_count", NULL);
	if (!sl_is_initialized()) return 0;
	return kind == SL_DEVICE_CPU ? slp_engine.nteams : kind == SL_DEVICE_GPU ? slp_engine.ngpus : 0;
}

/* Whether two devices have the same kind and index.  The default device is not looked up: it equals only itself. */
bool sl_device_equal(sl_device a, sl_device b)
{
	return a.kind == b.kind && (a.kind < SL_DEVICE_CPU || a.index == b.index);
}

/* Writes the name of a device, such as "cpu:0", "gpu" or "auto", into the caller's name, and returns it. */
const char *sl_device_name(sl_device device, char name[SL_DEVICE_NAME_MAX])
{
	static const char *const kinds[] = {"default", "auto", "cpu", "gpu"};
	if (!name) return "";
	const char *kind = (unsigned)device.kind < 4 ? kinds[device.kind] : "?";
	if (device.kind < SL_DEVICE_CPU || device.index < 0) snprintf(name, SL_DEVICE_NAME_MAX, "%s", kind);
	else snprintf(name, SL_DEVICE_NAME_MAX, "%s:%d", kind, sl_device_number(device));
	return name;
}

/* A number up to the end of the digits; -1 if there is none or it is absurd. */
static int parse_index(const char **p)
{
	int n = 0;
	if (!slp_is_digit(**p)) return -1;
	for (; slp_is_digit(**p); ++*p)
		if ((n = 10 * n + (**p - '0')) > 9999) return -1;
	return n;
}

/* One item, "gpu:0-3", of a list.  Returns the number of devices that it names, -1 if it is malformed. */
static int parse_item(const char **p, sl_device *devices, int max)
{
	enum sl_device_kind kind = !strncmp(*p, "cpu", 3)    ? SL_DEVICE_CPU
	                           : !strncmp(*p, "gpu", 3)  ? SL_DEVICE_GPU
	                           : !strncmp(*p, "auto", 4) ? SL_DEVICE_AUTO
	                                                     : SL_DEVICE_DEFAULT;
	if (kind == SL_DEVICE_DEFAULT) return -1;
	*p += kind == SL_DEVICE_AUTO ? 4 : 3;
	int first = -1, last = -1;
	if (**p == ':' && kind != SL_DEVICE_AUTO) {
		++*p;
		if ((first = last = parse_index(p)) < 0) return -1;
		if (**p == '-') {
			++*p;
			if ((last = parse_index(p)) < first) return -1;
		}
	}
	for (int i = 0; i <= last - first; i++)
		if (i < max) devices[i] = (sl_device){kind, first < 0 ? -1 : first + i};
	return last - first + 1;
}

/* Reads a list of devices: items "auto", "cpu", "cpu:1", "gpu:0-3", separated by commas.  Writes at most max of them
 * and returns their number, or 0 with SL_EINVAL for a malformed list.  Does not check that they exist; works before
 * sl_init.
 *
 *     sl_device devices[8];
 *     int n = sl_device_parse("gpu:0-1,cpu", devices, 8); */
int sl_device_parse_at(const char *at, const char *text, sl_device *devices, int max)
{
	SLP_CALL("sl_device_parse", at);
	int n = 0;
	if (max > 0 && !slp_given(at, "sl_device_parse", "array of devices", devices)) return 0;
	for (const char *p = text; p; p++) {
		int more = parse_item(&p, n < max ? devices + n : NULL, n < max ? max - n : 0);
		if (more < 0 || (*p && *p != ',')) break;
		n += more;
		if (!*p) return n;
	}
	slp_call_fail(at, "sl_device_parse", SL_EINVAL,
	              "\"%s\" is not a list of devices such as cpu, cpu:1, gpu:0-3, auto", text ? text : "(null)");
	return 0;
}

static enum sl_status absent(const char *at, sl_device device)
{
	char name[SL_DEVICE_NAME_MAX];
	const char *how = device.kind == SL_DEVICE_CPU
	                          ? "more CPU devices: sl_config.teams or STARPU_NCPU"
	                          : "GPUs need StarPU and Starling built with CUDA, and STARPU_NCUDA not 0";
	slp_call_fail(at, "device", SL_EDEVICE, "%s does not exist; there are %d cpu and %d gpu devices (%s)",
	              sl_device_name(device, name), slp_engine.nteams, slp_engine.ngpus, how);
	return SL_EDEVICE;
}

const char *slp_node_name(unsigned node, char name[SL_DEVICE_NAME_MAX])
{
	if (starpu_node_get_kind(node) == STARPU_CPU_RAM) return "main memory";
	if (starpu_node_get_kind(node) != STARPU_CUDA_RAM) return "a slave process";
	return sl_device_name(sl_gpu(starpu_memory_node_get_devid(node)), name);
}

enum sl_status slp_device_resolve(const char *at, sl_device *device)
{
	if (device->kind == SL_DEVICE_DEFAULT) *device = slp_engine.device;
	if (device->kind == SL_DEVICE_DEFAULT) *device = sl_auto(); /* the engine has not run yet */
	if (device->kind == SL_DEVICE_AUTO) return SL_OK;
	int count = device->kind == SL_DEVICE_CPU ? slp_engine.nteams : slp_engine.ngpus;
	return (device->index < count || is_named(*device)) && count > 0 ? SL_OK : absent(at, *device);
}

int slp_device_pool(sl_device device)
{
	if (device.kind == SL_DEVICE_CPU) return device.index < 0 ? 1 : 3 + slp_device_team(device);
	if (device.kind == SL_DEVICE_GPU) return device.index < 0 ? 2 : 3 + SLP_MAX_TEAMS + device.index;
	return 0;
}

int slp_pool_workers(int pool)
{
	return pool == 0 ? slp_engine.nworkers : pool == 1 ? slp_engine.nteams : pool == 2 ? slp_engine.ngpus : 1;
}

uint64_t slp_device_nodes(const sl_device *devices, int n)
{
	uint64_t nodes = 0;
	for (int i = 0; i < n; i++) {
		if (devices[i].kind < SL_DEVICE_CPU || devices[i].index < 0) continue;
		nodes |= (uint64_t)1 << starpu_worker_get_memory_node((unsigned)slp_device_worker(devices[i]));
	}
	return nodes;
}

/* Restricts a task to the workers of a device, and to CPUs if it has no CUDA kernel. */
void slp_device_place(struct starpu_task *task, sl_device device, bool cuda)
{
	if (device.kind == SL_DEVICE_CPU || !cuda) task->where = slp_engine.nslaves ? SLP_CPU_WORKERS : STARPU_CPU;
	else if (device.kind == SL_DEVICE_GPU) task->where = STARPU_CUDA;
	if (device.kind < SL_DEVICE_CPU || device.index < 0) return;
	if (device.kind == SL_DEVICE_CPU && slp_engine.nteams == 1) return; /* let the policy queue it as usual */
	task->execute_on_a_specific_worker = 1;
	task->workerid = (unsigned)slp_device_worker(device);
}
