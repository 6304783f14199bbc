/* One interface to StarPU 1.3.10 and 1.4: all differences between them are handled here. */
#ifndef SLP_COMPAT_H
#define SLP_COMPAT_H

#include <stdbool.h>

#include <starpu.h>

#ifndef STARPU_CODELET_NOPLANS /* 1.4: no partitioning plans to look for when a task is submitted */
#define STARPU_CODELET_NOPLANS 0
#endif

#if STARPU_MAJOR_VERSION > 1 || (STARPU_MAJOR_VERSION == 1 && STARPU_MINOR_VERSION >= 4)
#define SLP_STARPU_1_4 1
#else
#define SLP_STARPU_1_4 0
#endif

#ifdef STARPU_USE_TCPIP_MASTER_SLAVE /* workers of other processes, which run CPU kernels */
#define SLP_CPU_WORKERS (STARPU_CPU | STARPU_TCPIP_MS)
#else
#define SLP_CPU_WORKERS STARPU_CPU
#endif

/* Keeps the time of a task that did not do its work out of the performance models; 1.3 has no way to. */
static inline void slp_task_time_is_void(struct starpu_task *task)
{
#if SLP_STARPU_1_4
	task->failed = 1;
#else
	(void)task;
#endif
}

/* Whether a trace is being recorded; Debian's 1.3 cannot. */
static inline bool slp_fxt_recorded(void)
{
#if SLP_STARPU_1_4
	return starpu_fxt_is_enabled();
#else
	return false;
#endif
}

/* The user's place of the task's call; 1.3 does not keep it. */
static inline void slp_task_set_call_site(struct starpu_task *task, const char *file, int line)
{
#if SLP_STARPU_1_4
	task->file = file;
	task->line = line;
#else
	(void)task;
	(void)file;
	(void)line;
#endif
}

/* StarPU's macro of the name would set another call site. */
static inline int slp_task_submit(struct starpu_task *task)
{
	return (starpu_task_submit)(task);
}

/* Bytes in use on a memory node; 1.3 does not report them. */
static inline size_t slp_node_used(unsigned node)
{
#if SLP_STARPU_1_4
	return starpu_memory_get_used(node);
#else
	(void)node;
	return 0;
#endif
}

#endif
