/* The machine as StarPU sees it: devices, memory, links; and the engine's settings. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <starling/tensor.h>

#include "fixed.h"
#include "info.h"
#include "runtime/device/auto.h"
#include "runtime/device/cores.h"
#include "runtime/device/device.h"
#include "runtime/device/team.h"
#include "runtime/engine.h"
#include "runtime/memory/memory_limit.h"

/* ---- devices ----------------------------------------------------------------------------------------------------- */

static json_t *device(sl_device d, int worker, const char *kind)
{
	char name[SL_DEVICE_NAME_MAX], worker_name[64];
	starpu_worker_get_name(worker, worker_name, sizeof worker_name);
	return json_pack("{s:s, s:s, s:s}", "device", sl_device_name(d, name), "kind", kind, "worker", worker_name);
}

/* The hardware threads that a team's threads may run on, "0-3,8"; its NUMA nodes, "0" or "0-1"; how many threads. */
static void add_team(json_t *d, int team)
{
	char cpus[256] = "any", nodes[64] = "";
	hwloc_bitmap_t set = hwloc_bitmap_alloc();
	if (set && slp_team_mask(team, set)) hwloc_bitmap_list_snprintf(cpus, sizeof cpus, set);
	if (set) slp_team_nodes(team, set);
	if (set) hwloc_bitmap_list_snprintf(nodes, sizeof nodes, set);
	hwloc_bitmap_free(set);
	json_object_set_new(d, "CPUs", json_string(cpus));
	json_object_set_new(d, "NUMA", json_string(nodes));
	json_object_set_new(d, "threads", json_integer(slp_team_threads(team)));
	json_object_set_new(d, "cores", json_integer(slp_team_cores(team)));
}

static void add_no_team(json_t *d)
{
	static const char *const columns[] = {"CPUs", "NUMA", "threads", "cores"};
	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) json_object_set_new(d, columns[i], json_null());
}

json_t *info_devices(void)
{
	json_t *list = json_array();
	int teams = slp_engine.nteams - slp_engine.nslaves;
	for (int i = 0; i < slp_engine.nteams; i++) {
		json_t *d = device(sl_cpu(i), slp_engine.team_worker[i], i < teams ? "CPU team" : "slave process");
		if (i < teams) add_team(d, i);
		else add_no_team(d);
		json_array_append_new(list, d);
	}
	for (int i = 0; i < slp_engine.ngpus; i++) {
		json_t *d = device(sl_gpu(i), slp_engine.gpu_worker[i], "CUDA device");
		add_no_team(d);
		json_array_append_new(list, d);
	}
	return list;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static json_t *node_name(unsigned node)
{
	char name[SL_DEVICE_NAME_MAX];
	return json_string(slp_node_name(node, name));
}

/* StarPU's limit of memory; it bounds main memory only if a bound is set. */
static double node_bytes(unsigned node)
{
	starpu_ssize_t total = starpu_memory_get_total(node);
	if (total > 0) return (double)total;
	bool main_memory = starpu_node_get_kind(node) == STARPU_CPU_RAM;
	return main_memory ? (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) : 0;
}

/* What programs may still take: the most that a limit of memory can be (`.memory`, `--memory`), on GPUs; in main memory, what
 * the limits of the process allow, of which spilled values take half by default (sl_spill). */
static double free_bytes(unsigned node)
{
	if (starpu_node_get_kind(node) == STARPU_CPU_RAM) return (double)slp_memory_available();
	starpu_ssize_t there = starpu_memory_get_available(node);
	return there > 0 ? (double)there : 0;
}

json_t *info_memory(void)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < starpu_memory_nodes_get_count(); i++)
		json_array_append_new(list, json_pack("{s:o, s:f, s:f}", "memory", node_name(i), "MiB for StarPU",
		                                      node_bytes(i) / 1048576, "MiB free", free_bytes(i) / 1048576));
	return list;
}

/* Bandwidths and latencies as StarPU measured them when it first saw this machine. */
json_t *info_links(void)
{
	json_t *list = json_array();
	unsigned n = starpu_memory_nodes_get_count();
	for (unsigned i = 0; i < n; i++)
		for (unsigned j = 0; j < n; j++) {
			if (i == j) continue;
			json_array_append_new(list, json_pack("{s:o, s:o, s:f, s:f}", "from", node_name(i), "to",
			                                      node_name(j), "MB/s", starpu_transfer_bandwidth(i, j),
			                                      "latency us", starpu_transfer_latency(i, j)));
		}
	return list;
}

/* ---- settings ---------------------------------------------------------------------------------------------------- */

/* The folder that StarPU names; "" if it names none. */
static void calibration_folder(char *path, int size)
{
	FILE *f = tmpfile();
	*path = '\0';
	if (!f) return;
	starpu_perfmodel_directory(f);
	rewind(f);
	if (!fgets(path, size, f)) *path = '\0';
	fclose(f);
	path[strcspn(path, "\n")] = '\0';
	char *name = strchr(path, '/');
	if (name) memmove(path, name, strlen(name) + 1); /* "directory: <...>" */
	path[strcspn(path, ">")] = '\0';
}

static const char *why_policy(void)
{
	const char *variable = getenv("STARPU_SCHED");
	if (variable && *variable) return "STARPU_SCHED";
	return slp_engine.ngpus ? "default with GPUs" : "default without GPUs";
}

json_t *info_settings(void)
{
	const struct sl_config *c = &slp_engine.config;
	char folder[4096];
	calibration_folder(folder, sizeof folder);
	const char *placing = slp_auto_gpus()          ? "placed on GPUs; on CPUs what has no CUDA kernel"
	                      : slp_auto_devices() > 1 ? "placed by the policy; shards of a step, on teams"
	                                               : "placed by the policy";
	return json_pack("{s:s, s:s, s:s, s:i, s:i, s:I, s:b, s:s, s:s}", "policy", c->sched, "policy from",
	                 why_policy(), "tasks on auto", placing, "operations a task (SL_BULK)", c->bulk,
	                 "tasks ahead (SL_RUNAHEAD_TASKS)", c->runahead_tasks, "bytes ahead (SL_RUNAHEAD_BYTES)",
	                 (json_int_t)c->runahead_bytes, "kept for sl_explain (SL_EXPLAIN)", c->explain,
	                 "bits (SL_FIXED_SUMS)",
	                 slp_fixed_sums() ? "do not depend on threads" : "gradients of convolutions depend on threads",
	                 "calibration", folder);
}
