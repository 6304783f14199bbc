/* Codelets: one for each operation and one for segments of several, each with a history-based performance model, whose
 * file is named starling_OP_THREADS: other programs' models are in the same folder, and times depend on the threads of
 * a team. */
#include <stdio.h>
#include <string.h>

#include "op.h"
#include "runtime/device/team.h"
#include "runtime/engine.h"
#include "runtime/simulation/simulate.h"
#include "runtime/task/codelet.h"

enum { MAX_CODELETS = SLP_MAX_OPS + 1 };
static struct starpu_codelet codelets[MAX_CODELETS];
static struct starpu_perfmodel models[MAX_CODELETS];
static char model_names[MAX_CODELETS][64];
static char threads[32]; /* in the names of models: "_2", "_1-2" where teams differ, "" without CPU teams */

/* Tasks of one footprint take the same time: same calls, shapes, dtypes and attributes. */
static uint32_t footprint(struct starpu_task *task)
{
	return ((const struct slp_segment *)task->callback_arg)->calls->footprint;
}

/* Teams have as many threads as others, or one more. */
static void name_threads(void)
{
	int least = 0, most = 0;
	for (int i = 0; i < slp_engine.nteams - slp_engine.nslaves; i++) {
		int n = slp_team_threads(i);
		if (!least || n < least) least = n;
		if (n > most) most = n;
	}
	threads[0] = '\0';
	if (least < most) snprintf(threads, sizeof threads, "_%d-%d", least, most);
	else if (most) snprintf(threads, sizeof threads, "_%d", most);
}

static void codelet_init(int i, const char *name)
{
	struct starpu_perfmodel *model = &models[i];
	memset(model, 0, sizeof *model);
	snprintf(model_names[i], sizeof model_names[i], "starling_%s%s", name, threads);
	model->type = STARPU_HISTORY_BASED;
	model->symbol = model_names[i];
	model->footprint = footprint;
#ifdef SLP_SIMULATION
	slp_simulate_model(model, i - 1);
#endif
	struct starpu_codelet *cl = &codelets[i];
	starpu_codelet_init(cl);
	cl->where = slp_engine.nslaves ? SLP_CPU_WORKERS : STARPU_CPU;
	cl->cpu_funcs[0] = slp_cpu_segment;
	cl->cpu_funcs_name[0] = "sl_slave_segment"; /* in slave processes */
#if defined HAVE_CUDA || defined SLP_SIMULATION
	cl->where |= STARPU_CUDA;
	cl->cuda_funcs[0] = slp_cuda_segment;
	cl->cuda_flags[0] = STARPU_CUDA_ASYNC;
#endif
	cl->nbuffers = STARPU_VARIABLE_NBUFFERS;
	cl->flags = STARPU_CODELET_NOPLANS;
	cl->model = model;
	cl->name = name;
}

void slp_codelets_init(void)
{
	name_threads();
	for (int i = 0; i < slp_op_count(); i++) codelet_init(i + 1, slp_ops[i]->name);
	codelet_init(0, "segment");
}

/* For an operation that is registered while the engine runs. */
void slp_codelet_add(int op)
{
#ifdef SLP_SIMULATION
	slp_simulate_op(op);
#endif
	codelet_init(op + 1, slp_ops[op]->name);
}

struct starpu_codelet *slp_codelet_of(int op)
{
	return &codelets[op + 1];
}
