/* The machine and its environment, for bug reports, with hints where a setting makes programs slow. */
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <hwloc.h>

#include "config.h"
#ifdef HAVE_OPENBLAS
#include <cblas.h>
#endif

#include "../../models/driver/common.h"
#include "../../models/driver/compiler.h"
#include "info.h"

extern char **environ;

/* The rest of the line of a file that begins with a key, after a colon; empty if there is none. */
static void line_of(const char *path, const char *key, char *text, size_t size)
{
	char line[512];
	FILE *f = fopen(path, "r");
	*text = '\0';
	while (f && !*text && fgets(line, sizeof line, f)) {
		const char *colon = strchr(line, ':');
		if (strncmp(line, key, strlen(key)) || !colon) continue;
		snprintf(text, size, "%s", colon + 1 + strspn(colon + 1, " \t"));
		text[strcspn(text, "\n")] = '\0';
	}
	if (f) fclose(f);
}

static double load(void)
{
	double average[1];
	return getloadavg(average, 1) == 1 ? average[0] : -1;
}

/* Caches and cores, as hwloc sees them: "2 packages, 16 cores, 32 threads", "L1 48 KiB, L2 2048 KiB, L3 36864 KiB". */
static void add_topology(json_t *o)
{
	static const hwloc_obj_type_t levels[] = {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE};
	hwloc_topology_t topology;
	char text[160], *end = text;
	if (hwloc_topology_init(&topology)) return;
	if (!hwloc_topology_load(topology)) {
		snprintf(text, sizeof text, "%d packages, %d cores, %d threads, %d NUMA nodes",
		         hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE),
		         hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE),
		         hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU),
		         hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE));
		json_object_set_new(o, "topology", json_string(text));
		*text = '\0';
		for (int i = 0; i < 3; i++) {
			hwloc_obj_t cache = hwloc_get_obj_by_type(topology, levels[i], 0);
			if (cache)
				end += sprintf(end, "%sL%d %llu KiB", end > text ? ", " : "", i + 1,
				               (unsigned long long)cache->attr->cache.size / 1024);
		}
		json_object_set_new(o, "caches", json_string(*text ? text : "unknown"));
	}
	hwloc_topology_destroy(topology);
}

json_t *info_host(void)
{
	json_t *o = json_object();
	struct utsname system;
	char text[512];
	line_of("/proc/cpuinfo", "model name", text, sizeof text);
	json_object_set_new(o, "CPU", json_string(*text ? text : "unknown"));
	add_topology(o);
	if (!uname(&system)) {
		snprintf(text, sizeof text, "%s %s %s", system.sysname, system.release, system.machine);
		json_object_set_new(o, "kernel", json_string(text));
	}
	json_object_set_new(o, "compiled by", json_string(DRV_COMPILER));
	json_object_set_new(o, "commit", drv_commit() ? json_string(drv_commit()) : json_string("unknown"));
	json_object_set_new(o, "load", drv_json_real(load()));
	return o;
}

/* Variables that change how programs run, as they are set. */
json_t *info_environment(void)
{
	static const char *const prefixes[] = {"SL_",   "STARPU_", "OMP_",  "OPENBLAS_",
	                                       "GOMP_", "KMP_",    "CUDA_", "DNNL_"};
	json_t *o = json_object();
	for (char **v = environ; *v; v++)
		for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
			const char *equal = strchr(*v, '=');
			char name[64];
			if (!equal || strncmp(*v, prefixes[i], strlen(prefixes[i]))) continue;
			snprintf(name, sizeof name, "%.*s", (int)(equal - *v), *v);
			json_object_set_new(o, name, json_string(equal + 1));
		}
	return o;
}

/* ---- hints ------------------------------------------------------------------------------------------------------- */

static void add(json_t *hints, const char *about, const char *text)
{
	json_object_set_new(hints, about, json_string(text));
}

/* Advice for faster programs, as far as it can be seen from here; "none" if there is none. */
json_t *info_hints(void)
{
	json_t *hints = json_object();
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	if (load() > 0.5 * (double)cores) {
		add(hints, "load", "other programs use this machine: figures will be worse than it can do");
		if (!getenv("STARPU_WORKERS_NOBIND"))
			add(hints, "STARPU_WORKERS_NOBIND", "1 lets the system move workers away from busy cores");
	}
#ifndef HAVE_ONEDNN
	add(hints, "oneDNN", "not built in: products and convolutions are slower (Debian: libdnnl-dev)");
#endif
#ifdef HAVE_OPENBLAS
	static const char *const old[] = {"Prescott", "Katmai", "Northwood", "Core2", "Generic"};
	for (size_t i = 0; i < sizeof old / sizeof *old; i++)
		if (!strcmp(openblas_get_corename(), old[i]))
			add(hints, "OpenBLAS",
			    "takes this CPU for an old one; OPENBLAS_CORETYPE=Haswell says otherwise");
#endif
#ifndef HAVE_CUDA
	if (access("/dev/nvidia0", F_OK) == 0)
		add(hints, "GPU", "there is one, but Starling was built without CUDA; configure says why");
#endif
#ifdef __x86_64__
	if (!__builtin_cpu_supports("avx512vl"))
		add(hints, "CPU", "has no AVX-512: vectors are half as long as they could be");
#endif
	info_cores_hints(hints);
	info_others_hints(hints);
	if (!json_object_size(hints)) add(hints, "none", "nothing here looks slow");
	return hints;
}
