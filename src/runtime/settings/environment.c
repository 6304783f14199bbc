/* Environment variables: StarPU's numbers (it aborts on other values), and variables that several files read. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"
#include "op.h"
#include "runtime/settings/environment.h"
#include "runtime/process/processes.h"

/* After STARPU_: those of StarPU 1.4 that it reads as an int of at least 0, and as a float. */
static const char ints[] =
        "AUTOHETEROPRIO_FREEZE_GATHERING AUTOHETEROPRIO_ORDERING_INTERVAL AUTOHETEROPRIO_PRINT_AFTER_ORDERING "
        "AUTOHETEROPRIO_PRINT_DATA_ON_UPDATE AUTOHETEROPRIO_PRIORITY_ORDERING_POLICY "
        "AUTOHETEROPRIO_TIME_ESTIMATION_POLICY BACKOFF_MAX BACKOFF_MIN BUS_CALIBRATE BUS_STATS CALIBRATE "
        "CALIBRATE_MINIMUM CATCH_SIGNALS CHECK_ENTIRE_PLATFORM CODELET_PROFILING "
        "CUDA_ONLY_FAST_ALLOC_OTHER_MEMNODES CUDA_PIPELINE CUDA_THREAD_PER_DEV CUDA_THREAD_PER_WORKER "
        "DATA_LOCALITY_ENFORCE DISABLE_ASYNCHRONOUS_COPY DISABLE_ASYNCHRONOUS_CUDA_COPY "
        "DISABLE_ASYNCHRONOUS_HIP_COPY DISABLE_ASYNCHRONOUS_MAX_FPGA_COPY DISABLE_ASYNCHRONOUS_MPI_MS_COPY "
        "DISABLE_ASYNCHRONOUS_OPENCL_COPY DISABLE_ASYNCHRONOUS_TCPIP_MS_COPY DISABLE_KERNELS DISABLE_PINNING "
        "DISK_SWAP_SIZE DISPLAY_BINDINGS ENABLE_CUDA_GPU_GPU_DIRECT ENABLE_MAP ENERGY_PROFILING "
        "EXPECTED_TRANSFER_TIME_WRITEBACK FXT_TRACE GENERATE_TRACE GLOBAL_ARBITER "
        "HETEROPRIO_CODELET_GROUPING_STRATEGY HETEROPRIO_USE_AUTO_CALIBRATION HETEROPRIO_USE_LA HIP_PIPELINE "
        "HIP_THREAD_PER_DEV HIP_THREAD_PER_WORKER HISTORY_MAX_ERROR LIMIT_BANDWIDTH LIMIT_CPU_MEM "
        "LIMIT_CPU_NUMA_MEM LIMIT_CUDA_MEM LIMIT_HIP_MEM LIMIT_MAX_FPGA_MEM LIMIT_MAX_SUBMITTED_TASKS "
        "LIMIT_MIN_SUBMITTED_TASKS LIMIT_OPENCL_MEM MAIN_THREAD_BIND MAIN_THREAD_COREID MAIN_THREAD_CPUID "
        "MALLOC_SIMULATION_FOLD MAX_MEMORY_USE MAX_PRIO MAX_WORKERSIZE MEMORY_STATS MINIMUM_AVAILABLE_MEM "
        "MINIMUM_CLEAN_BUFFERS MIN_PRIO MIN_WORKERSIZE MPI_MASTER_NODE MPI_MS_MULTIPLE_THREAD MPI_THREAD_COREID "
        "MPI_THREAD_CPUID NCPU NCPUS NCUDA NHIP NMAX_FPGA NMPIMSTHREADS NMPI_MS NOPENCL NTASKS_THRESHOLD "
        "NTCPIPMSTHREADS NTCPIP_MS NTHREADS_PER_CORE NWORKER_PER_CUDA NWORKER_PER_HIP OPENCL_ONLY_ON_CPUS "
        "OPENCL_ON_CPUS OPENCL_PIPELINE PCI_FLAT PERF_MODEL_HOMOGENEOUS_CPU PREFETCH PROFILING RAND_SEED "
        "RESERVE_NCPU SCHED_GRAPH_TEST_DESCENDANTS SCHED_READY SCHED_SORTED_ABOVE SCHED_SORTED_BELOW SILENT "
        "SIMGRID SIMGRID_CUDA_MALLOC_COST SIMGRID_CUDA_QUEUE_COST SIMGRID_FETCHING_INPUT_COST "
        "SIMGRID_SCHED_COST SIMGRID_TASK_PUSH_COST SIMGRID_TASK_SUBMIT_COST SIMGRID_TRANSFER_COST "
        "SINGLE_COMBINED_WORKER STATS SUBALLOCATOR SYNTHESIZE_ARITY_COMBINED_WORKER TARGET_AVAILABLE_MEM "
        "TARGET_CLEAN_BUFFERS TASK_BREAK_ON_EXEC TASK_BREAK_ON_POP TASK_BREAK_ON_PUSH TASK_BREAK_ON_SCHED "
        "TASK_PROGRESS TCPIP_MS_MULTIPLE_THREAD TCPIP_MS_PORT TCPIP_MS_SLAVES TCPIP_USE_LOCAL_SOCKET "
        "TRACE_BUFFER_SIZE USE_NUMA WATCHDOG_CRASH WATCHDOG_DELAY WATCHDOG_TIMEOUT WORKERS_GETBIND "
        "WORKERS_NOBIND WORKER_STATS WORKER_TREE ";
static const char floats[] =
        "EXP_LEN_THRESHOLD HETEROPRIO_AURT_DOT_DIFF_10_NOD_OFFSET HETEROPRIO_BEST_NODS_SCORE_EXP_SELECTIVITY "
        "HETEROPRIO_NOD_TIME_COMBINATION_EXP_SELECTIVITY HETEROPRIO_NOD_TIME_COMBINATION_NOD_MULTIPLIER "
        "HETEROPRIO_URTS_TIME_COMBINATION_EXP_SELECTIVITY HETEROPRIO_URTS_TIME_COMBINATION_NOD_MULTIPLIER "
        "HETEROPRIO_URT_2_ARCH_NEED_MULTIPLIER HETEROPRIO_URT_2_URT_MULTIPLIER "
        "HETEROPRIO_URT_DOT_DIFF_10_ARCH_DIFF_OFFSET HETEROPRIO_URT_DOT_DIFF_11_ARCH_DIFF_OFFSET "
        "HETEROPRIO_URT_DOT_DIFF_11_NOD_OFFSET HETEROPRIO_URT_DOT_DIFF_2_ARCH_NEED_MULTIPLIER "
        "HETEROPRIO_URT_DOT_DIFF_3_ARCH_NEED_MULTIPLIER HETEROPRIO_URT_DOT_DIFF_4_ARCH_NEED_MULTIPLIER "
        "HETEROPRIO_URT_DOT_DIFF_5_ARCH_DIFF_OFFSET HETEROPRIO_URT_DOT_DIFF_5_NOD_OFFSET "
        "HETEROPRIO_URT_DOT_DIFF_9_ARCH_DIFF_OFFSET HETEROPRIO_URT_DOT_DIFF_9_NOD_OFFSET "
        "HETEROPRIO_URT_URT_MULTIPLIER IDLE_POWER SCHED_ALPHA SCHED_BETA SCHED_GAMMA WINDOW_TIME_SIZE ";

/* A value that is no such number: StarPU would abort. */
static bool refuse(const char *at, const char *name, const char *text, const char *wanted)
{
	slp_call_fail(at, "sl_init", SL_EINVAL, "%s=%s in the environment is not a number%s", name, text, wanted);
	return false;
}

/* Whether the value needs no change. */
static bool is_good(const char *text, bool is_float)
{
	double f = 0;
	int64_t v = 0;
	return (is_float ? slp_real_given(text, &f) : slp_whole_given(text, &v)) && v >= 0 && v <= INT_MAX;
}

static bool check_list(const char *at, const char *list, bool is_float)
{
	char name[128];
	for (const char *word = list; *word; word = strchr(word, ' ') + 1) {
		snprintf(name, sizeof name, "STARPU_%.*s", (int)strcspn(word, " "), word);
		const char *text = getenv(name);
		if (text && *text && !is_good(text, is_float))
			return refuse(at, name, text, is_float ? "" : " of at least 0");
	}
	return true;
}

/* "0 1 4-7", "0,2", "3-": lists of cores.  They are read where no error can be reported. */
static bool is_cores(const char *text)
{
	for (const char *p = text; *p; p += strspn(p, " ,\t")) {
		size_t n = strspn(p, "0123456789"), to = 0;
		if (!n) return false;
		unsigned long from = strtoul(p, NULL, 10);
		p += n;
		if (*p == '-') to = strspn(++p, "0123456789");
		if (to && strtoul(p, NULL, 10) < from) return false;
		p += to;
		if (*p && !strchr(" ,\t", *p)) return false;
	}
	return true;
}

static bool check_cores(const char *at, const char *name)
{
	const char *text = getenv(name);
	if (!text || is_cores(text)) return true;
	slp_call_fail(at, "sl_init", SL_EINVAL, "%s=%s in the environment is no list of numbers such as 0-3,8", name,
	              text);
	return false;
}

bool slp_env_check(const char *at)
{
	return check_list(at, ints, false) && check_list(at, floats, true) && check_cores(at, "STARPU_WORKERS_CPUID") &&
	       check_cores(at, "STARPU_WORKERS_COREID");
}

const char *slp_env_or(const char *name, const char *otherwise)
{
	const char *text = getenv(name);
	return text && *text ? text : otherwise;
}

bool slp_env_unbound(void)
{
	return strcmp(slp_env_or("STARPU_WORKERS_NOBIND", "0"), "0") != 0;
}

const char *slp_starpu_home(void)
{
	static const char *const variables[] = {"STARPU_HOME", "XDG_CACHE_HOME", "HOME"};
	const char *home = NULL;
	for (int i = 0; !home && i < 3; i++) home = slp_env_or(variables[i], NULL);
	return home;
}

int slp_starpu_folder(char *path, size_t size)
{
	const char *models = slp_env_or("STARPU_PERF_MODEL_DIR", NULL), *home = slp_starpu_home();
	if (models) return snprintf(path, size, "%s", models);
	return home ? snprintf(path, size, "%s/.starpu/sampling", home) : 0;
}

enum sl_status slp_dist_timeout(const char *at, double *seconds)
{
	if (slp_real_given(slp_env_or("SL_DIST_TIMEOUT", "10"), seconds) && *seconds > 0 && *seconds <= 1e6)
		return SL_OK;
	slp_call_fail(at, "sl_init", SL_EINVAL, "SL_DIST_TIMEOUT is not a time in seconds");
	return SL_EINVAL;
}
