/* Energy of a run: of the processors from the kernel's counters (RAPL, the files of powercap), of the GPUs from NVML.
 *
 * A counter of RAPL counts microjoules up to a limit and begins again at 0, every quarter of an hour at worst; it is
 * read often enough that it cannot do so unnoticed.  What cannot be read is NAN, with the reason. */
#include "runtime/observe/energy.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "number.h"
#include "op.h"
#include "runtime/engine.h"
#include "runtime/forked.h"
#include "runtime/observe/fxt.h"
#include "runtime/process/processes.h"
#include "starling/base.h"

enum { MAX_ZONES = 64 };

/* A counter: a processor's package, or memory. */
struct zone {
	char path[PATH_MAX];
	uint64_t last, range; /* microjoules; after range comes 0 */
};

static struct {
	pthread_mutex_t lock;
	_Atomic bool on;
	_Atomic double sampled; /* sl_time */
	double since;
	int nzones;
	struct zone zones[MAX_ZONES];
	double cpu, gpu, gpu_begin; /* joules */
	char no_cpu[SLP_ENERGY_WHY], no_gpu[SLP_ENERGY_WHY];
} energy = {.lock = PTHREAD_MUTEX_INITIALIZER};
SLP_FORK_MUTEX(energy.lock);

/* ---- the processors' counters ------------------------------------------------------------------------------------ */

/* The first line of a file of a zone; false with the reason. */
static bool read_line(const char *zone, const char *file, char *line, int size)
{
	char path[PATH_MAX + 32];
	snprintf(path, sizeof path, "%s/%s", zone, file);
	FILE *f = fopen(path, "r");
	bool ok = f && fgets(line, size, f);
	if (!ok) snprintf(energy.no_cpu, SLP_ENERGY_WHY, "%.100s: %s", path, f ? "empty" : strerror(errno));
	if (f) fclose(f);
	if (ok) line[strcspn(line, "\n")] = '\0';
	return ok;
}

static bool read_count(const char *zone, const char *file, uint64_t *count)
{
	char line[64];
	if (!read_line(zone, file, line, sizeof line)) return false;
	if (slp_size_read(line, count)) return true;
	snprintf(energy.no_cpu, SLP_ENERGY_WHY, "%.80s/%s is not a number: %.20s", zone, file, line);
	return false;
}

/* Of "core", "uncore" and "psys" the first two are in their package, and the last contains packages. */
static bool is_counted(const char *zone)
{
	char name[64];
	return read_line(zone, "name", name, sizeof name) &&
	       (!strncmp(name, "package", strlen("package")) || !strcmp(name, "dram"));
}

static bool add_zone(const char *folder, const char *name)
{
	struct zone *z = &energy.zones[energy.nzones];
	int n = snprintf(z->path, sizeof z->path, "%s/%s", folder, name);
	if (n >= (int)sizeof z->path || !is_counted(z->path)) return true;
	if (!read_count(z->path, "max_energy_range_uj", &z->range) || !read_count(z->path, "energy_uj", &z->last))
		return false;
	energy.nzones++;
	return true;
}

/* Zones of intel-rapl-mmio are the same counters once more. */
static bool is_zone(const char *name)
{
	static const char prefix[] = "intel-rapl:";
	return !strncmp(name, prefix, strlen(prefix));
}

static bool find_zones(void)
{
	const char *folder = slp_env_or("SL_POWERCAP", "/sys/class/powercap");
	DIR *d = opendir(folder);
	bool ok = d;
	energy.nzones = 0;
	if (!d) snprintf(energy.no_cpu, SLP_ENERGY_WHY, "%.100s: %s", folder, strerror(errno));
	for (struct dirent *e; ok && (e = readdir(d)) && energy.nzones < MAX_ZONES;)
		if (is_zone(e->d_name)) ok = add_zone(folder, e->d_name);
	if (d) closedir(d);
	if (ok && !energy.nzones) snprintf(energy.no_cpu, SLP_ENERGY_WHY, "%.100s has no counters of RAPL", folder);
	if (!ok) energy.nzones = 0;
	return energy.nzones > 0;
}

static void read_zones(void)
{
	for (int i = 0; i < energy.nzones; i++) {
		struct zone *z = &energy.zones[i];
		uint64_t now;
		if (!read_count(z->path, "energy_uj", &now)) {
			energy.nzones = 0;
			energy.cpu = NAN;
			return;
		}
		energy.cpu += 1e-6 * (double)(now >= z->last ? now - z->last : z->range - z->last + now);
		z->last = now;
	}
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

static void read_all(void)
{
	double cpu = energy.cpu, gpu = energy.gpu;
	atomic_store(&energy.sampled, sl_time());
	read_zones();
	if (!isnan(energy.gpu)) energy.gpu = slp_nvml_joules(energy.no_gpu) - energy.gpu_begin;
	slp_fxt_energy(energy.cpu - cpu, energy.gpu - gpu);
}

/* A trace shows the power over time. */
static bool is_due(void)
{
	double seconds = slp_fxt_on ? 0.1 : 10;
	return atomic_load(&energy.on) && sl_time() - atomic_load(&energy.sampled) >= seconds;
}

void slp_energy_sample(void)
{
	if (!is_due()) return;
	pthread_mutex_lock(&energy.lock);
	read_all();
	pthread_mutex_unlock(&energy.lock);
}

static void begin(void)
{
	bool simulated = sl_is_simulated();
	*energy.no_cpu = *energy.no_gpu = '\0';
	if (simulated) snprintf(energy.no_cpu, SLP_ENERGY_WHY, "the machine is simulated");
	energy.cpu = !simulated && find_zones() ? 0 : NAN;
	energy.gpu = NAN;
	if (simulated || !slp_engine.ngpus)
		snprintf(energy.no_gpu, SLP_ENERGY_WHY, simulated ? "the machine is simulated" : "no GPU is used");
	else if (slp_nvml_start(energy.no_gpu)) energy.gpu = 0;
	energy.gpu_begin = isnan(energy.gpu) ? 0 : slp_nvml_joules(energy.no_gpu);
	energy.since = sl_time();
	atomic_store(&energy.on, true);
	read_all();
}

void slp_energy_start(void)
{
	pthread_mutex_lock(&energy.lock);
	begin();
	pthread_mutex_unlock(&energy.lock);
}

/* Counts the energy of the machine from now on: of the processors' packages and their memory, by RAPL, and of the GPUs of
 * the engine, by NVML; other programs' share included.  sl_energy_get reads the counts, and sl_stats_print prints them.  While
 * nothing is submitted for a quarter of an hour, call sl_energy_get in between: a counter of RAPL may begin again at 0.
 * SL_OK even if nothing can be read: sl_energy_get has the reasons. */
enum sl_status sl_energy_start_at(const char *at)
{
	SLP_CALL("sl_energy_start", at);
	if (slp_engine_need(at) != SL_OK) return sl_error();
	slp_energy_start();
	return SL_OK;
}

/* Fills the caller's energy with the joules since sl_energy_start.  No effect if energy is NULL. */
void sl_energy_get(struct sl_energy *to)
{
	SLP_CALL("sl_energy_get", NULL);
	if (!to) return;
	*to = (struct sl_energy){.cpu = NAN, .gpu = NAN};
	pthread_mutex_lock(&energy.lock);
	bool on = atomic_load(&energy.on);
	if (on) {
		read_all();
		*to = (struct sl_energy){.seconds = sl_time() - energy.since, .cpu = energy.cpu, .gpu = energy.gpu};
	}
	snprintf(to->no_cpu, sizeof to->no_cpu, "%s", on ? energy.no_cpu : "sl_energy_start was not called");
	snprintf(to->no_gpu, sizeof to->no_gpu, "%s", on ? energy.no_gpu : "sl_energy_start was not called");
	pthread_mutex_unlock(&energy.lock);
}

void slp_energy_stop(void)
{
	pthread_mutex_lock(&energy.lock);
	if (atomic_load(&energy.on)) read_all();
	atomic_store(&energy.on, false);
	slp_nvml_stop();
	pthread_mutex_unlock(&energy.lock);
}
