/* The report at the end of a simulated run: how busy each device was, the bytes over each link, the memory used, and
 * the distance of the run from the lower bound of its time. */
#include "config.h"
#include "number.h"
#include "runtime/compat.h"
#include "runtime/engine.h"
#include "runtime/simulation/simulate.h"

#ifdef SLP_SIMULATION
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double start;
struct slp_simulated_traffic slp_simulated_traffic;

void slp_report_begin(void)
{
	starpu_profiling_status_set(STARPU_PROFILING_ENABLE);
	start = sl_time();
}

static double seconds(const struct timespec *t)
{
	return (double)t->tv_sec + 1e-9 * (double)t->tv_nsec;
}

static void print_device(FILE *out, const char *kind, int i, int worker, double elapsed)
{
	struct starpu_profiling_worker_info info;
	if (starpu_profiling_worker_get_info(worker, &info)) return;
	double busy = seconds(&info.executing_time);
	slp_fprintf(out, "simulated device %s:%d: %d tasks, busy %.6f s, share %.3f\n", kind, i, info.executed_tasks,
	            busy, elapsed > 0 ? busy / elapsed : 0);
}

static const char *node_name(int node, char text[32])
{
	if (starpu_node_get_kind((unsigned)node) == STARPU_CPU_RAM) return "ram";
	snprintf(text, 32, "gpu:%d", starpu_memory_node_get_devid((unsigned)node));
	return text;
}

static void print_memory(FILE *out, const struct sl_stats *s)
{
	char name[32], other[32];
	for (int i = 0; i < s->nodes; i++)
		slp_fprintf(out, "simulated memory %s: at most %.1f MiB\n", node_name(i, name),
		            (double)s->node_peak[i] / 1048576);
	for (int i = 0; i < s->nodes; i++)
		for (int j = 0; j < s->nodes; j++)
			if (s->link_bytes[i][j])
				slp_fprintf(out, "simulated link %s to %s: %.3f MiB\n", node_name(i, name),
				            node_name(j, other), (double)s->link_bytes[i][j] / 1048576);
}

static void print_network(FILE *out, double elapsed)
{
	const struct slp_simulated_traffic *t = &slp_simulated_traffic;
	if (!t->nodes) return;
	slp_fprintf(out,
	            "simulated network: %d nodes, %" PRIu64
	            " exchanges, %.3f MiB sent by this one, busy %.6f s, share %.3f, of which adding %.6f s\n",
	            t->nodes, t->exchanges, (double)t->bytes / 1048576, t->seconds,
	            elapsed > 0 ? t->seconds / elapsed : 0, t->adding);
}

static void print_bound(FILE *out, double elapsed)
{
	struct slp_bound b;
	slp_bound_get(&b);
	double least = fmax(b.area, fmax(b.path, b.pinned));
	const char *why = least == b.path   ? "longest chain"
	                  : least == b.area ? "all work on all devices"
	                                    : "pinned work";
	slp_fprintf(out, "simulated bound: %.6f s (%s); area %.6f, path %.6f, pinned %.6f\n", least, why, b.area,
	            b.path, b.pinned);
	if (least > 0) slp_fprintf(out, "simulated distance: %.3f times the bound\n", elapsed / least);
}

/* To the file that SL_SIMULATION_REPORT names, else to standard error. */
void slp_report_end(void)
{
	struct sl_stats s;
	const char *path = getenv("SL_SIMULATION_REPORT");
	FILE *out = path && *path ? fopen(path, "a") : stderr;
	if (!out) {
		perror(path);
		out = stderr;
	}
	double elapsed = sl_time() - start;
	sl_stats_get(&s);
	slp_fprintf(out, "simulated time: %.6f s\n", elapsed);
	for (int i = 0; i < slp_engine.nteams; i++) print_device(out, "cpu", i, slp_engine.team_worker[i], elapsed);
	for (int i = 0; i < slp_engine.ngpus; i++) print_device(out, "gpu", i, slp_engine.gpu_worker[i], elapsed);
	print_memory(out, &s);
	print_network(out, elapsed);
	print_bound(out, elapsed);
	slp_bound_clear();
	if (out != stderr) fclose(out);
}
#endif
