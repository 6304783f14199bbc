/* Calls at the edges of what the library takes: after fork(), from threads that end, blocks inside themselves, figures
 * that are none.  Each is an error that says so, and everything works afterwards. */
#include <math.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <starling/own.h>
#include <starling.h>

#include "check.h"
#include "runtime/compat.h"

/* ---- fork -------------------------------------------------------------------------------------------------------- */

/* What a child makes of it: 0 if each call is SL_ESTATE and says why. */
static int in_child(sl_tensor *t)
{
	float value;
	int wrong = 0;
	alarm(SLP_PATIENCE); /* it shall not hang, and will not keep the tests from ending */
	wrong |= sl_ones(SL_SHAPE(2)) || sl_error() != SL_ESTATE || !strstr(sl_error_message(), "fork") ? 1 : 0;
	sl_error_clear();
	wrong |= sl_read(t, &value, sizeof value) != SL_ESTATE || !strstr(sl_error_message(), "forked") ? 2 : 0;
	wrong |= sl_add(t, t) || sl_error() != SL_ESTATE ? 4 : 0;
	wrong |= sl_wait_all() != SL_ESTATE ? 8 : 0;
	wrong |= sl_init(NULL) != SL_ESTATE || sl_is_initialized() ? 16 : 0;
	sl_error_clear();
	sl_release(t);
	sl_shutdown();
	return wrong;
}

static void test_fork(void)
{
	slp_begin((struct sl_config){.teams = 1});
	sl_tensor *t = NULL;
	SL_SCOPE
		t = sl_retain(sl_full(SL_SHAPE(1), 7));
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		int wrong = in_child(t);
		_exit(wrong);
	}
	int status = -1;
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	CHECK_SAYING(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with %x", (unsigned)status);
	SL_SCOPE
		CHECK_ALL(sl_add(t, t), 14);
	sl_release(t);
	slp_end_well();
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static void *make_mistake(void *unused)
{
	(void)unused;
	SL_SCOPE
		sl_add(sl_ones(SL_SHAPE(2)), sl_ones(SL_SHAPE(3)));
	return NULL;
}

static void *make_and_see(void *unused)
{
	make_mistake(unused);
	return sl_wait_all() == SL_ESHAPE ? unused : NULL;
}

static void run_thread(void *(*body)(void *))
{
	pthread_t thread;
	int here = 0;
	void *result = NULL;
	CHECK(pthread_create(&thread, NULL, body, &here) == 0 && pthread_join(thread, &result) == 0);
	CHECK(body != make_and_see || result == &here);
}

static void test_ended_thread(void)
{
	slp_begin((struct sl_config){.teams = 1});
	run_thread(make_mistake);
	CHECK(sl_error() == SL_OK); /* it was not mine */
	CHECK_STATUS(sl_wait_all(), SL_ESHAPE, "add(", "test_misuse.c:");
	CHECK_OK(sl_wait_all()); /* once */
	run_thread(make_and_see);
	CHECK_OK(sl_wait_all());
	slp_end_well();
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

static void test_block_in_itself(void)
{
	sl_block *outer = sl_sequential(sl_dense(2)), *inner = sl_sequential(sl_dense(3));
	sl_block_add(outer, "inner", inner);
	CHECK_NULL(sl_block_add(outer, "me", outer), SL_EINVAL, "inside itself");
	CHECK_NULL(sl_block_add(inner, "out", outer), SL_EINVAL, "inside itself");
	CHECK(sl_block_children(outer) == 2 && sl_block_children(inner) == 1); /* both are still there */
	sl_block_free(outer);
}

/* ---- figures ----------------------------------------------------------------------------------------------------- */

static void test_learning_rate(void)
{
	const double wrong[] = {NAN, INFINITY, -1};
	sl_block *net = sl_sequential(sl_dense(2));
	sl_trainer *t = sl_trainer_new(net, sl_sgd(.lr = 0.5));
	for (int i = 0; i < 3; i++) {
		sl_trainer_set_lr(t, wrong[i]);
		CHECK(sl_error() == SL_EINVAL && strstr(sl_error_message(), "sl_trainer_set_lr") &&
		      sl_trainer_lr(t) == 0.5);
		sl_error_clear();
	}
	sl_trainer_set_lr(t, 0);
	CHECK(sl_error() == SL_OK && sl_trainer_lr(t) == 0);
	sl_trainer_free(t);
	sl_block_free(net);
}

/* Each figure of an optimiser and of its schedule is a number that can be. */
static void test_optimizers(void)
{
	static const double wrong[] = {NAN, INFINITY, -INFINITY, -1};
	sl_block *net = sl_sequential(sl_dense(2));
	for (int i = 0; i < 4; i++) {
		double x = wrong[i];
		const struct sl_optimizer all[] = {sl_sgd(.lr = x),
		                                   sl_sgd(.momentum = x),
		                                   sl_sgd(.weight_decay = x),
		                                   sl_sgd(.clip_norm = x),
		                                   sl_sgd(.clip_value = x),
		                                   sl_adam(.beta1 = x),
		                                   sl_adam(.beta2 = x),
		                                   sl_adam(.eps = x),
		                                   sl_rmsprop(.alpha = x),
		                                   sl_sgd(.schedule = {SL_STEPS, .every = 1, .factor = x}),
		                                   sl_sgd(.schedule = {SL_COSINE, .total = 5, .final_lr = x}),
		                                   sl_sgd(.schedule = {SL_POLYNOMIAL, .total = 5, .power = x})};
		for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
			CHECK_SAYING(!sl_trainer_new(net, all[k]) && sl_error() == SL_EINVAL, "optimiser %zu takes %g",
			             k, x);
			sl_error_clear();
		}
	}
	sl_block_free(net);
}

static void test_values_at_null(void)
{
	slp_begin((struct sl_config){.teams = 1});
	SL_SCOPE {
		sl_tensor *t = sl_ones(SL_SHAPE(2));
		CHECK_STATUS(sl_read(t, NULL, 8), SL_EINVAL, "data is NULL");
		CHECK_STATUS(sl_write(t, NULL, 8), SL_EINVAL, "data is NULL");
		CHECK_ALL(t, 1);
	}
	slp_end_well();
}

static void test_teams(void)
{
	slp_end();
	CHECK_STATUS(sl_init(&(struct sl_config){.teams = 100000}), SL_EDEVICE, "100000 CPU devices; there can be");
	sl_error_clear();
	CHECK(!sl_is_initialized());
}

static void check_refused(const char *name, const char *value, enum sl_status status, const char *text)
{
	const char *set = getenv(name);
	char *before = set ? strdup(set) : NULL;
	slp_end();
	setenv(name, value, 1);
	if (!CHECK_STATUS(sl_init(NULL), status, text)) printf("%s=%s\n", name, value);
	CHECK(!sl_is_initialized());
	sl_error_clear();
	if (before) setenv(name, before, 1);
	else unsetenv(name);
	free(before);
}

/* StarPU would abort on each of them. */
static void test_environment(void)
{
	static const char *const names[] = {
	        "STARPU_CALIBRATE",      "STARPU_HISTORY_MAX_ERROR", "STARPU_BUS_STATS",
	        "STARPU_NCPU",           "STARPU_LIMIT_CPU_MEM",     "STARPU_RESERVE_NCPU",
	        "STARPU_MAX_PRIO",       "STARPU_SCHED_ALPHA",       "STARPU_SCHED_READY",
	        "STARPU_DISK_SWAP_SIZE", "STARPU_USE_NUMA",          "STARPU_BACKOFF_MAX",
	        "STARPU_SUBALLOCATOR",   "STARPU_MAIN_THREAD_BIND",  "STARPU_TCPIP_MS_SLAVES",
	        "STARPU_IDLE_POWER",     "STARPU_MAIN_THREAD_CPUID", "STARPU_MINIMUM_AVAILABLE_MEM"};
	static const char *const values[] = {"zz", "-1", "1x", "99999999999999999999", "nan"};
	enum { NAMES = sizeof names / sizeof *names, VALUES = sizeof values / sizeof *values };
	for (int v = 0; v < VALUES; v++)
		for (int i = 0; i < NAMES; i++)
			if (!(strstr(names[i], "ALPHA") || strstr(names[i], "POWER")) ||
			    (v != 1 && v != 3)) /* any number */
				check_refused(names[i], values[v], SL_EINVAL, names[i]);
	check_refused("SL_BULK", "many", SL_EINVAL, "SL_BULK=many");
	check_refused("SL_TF32", "half", SL_EINVAL, "SL_TF32=half");
}

static void test_environment_refused(void)
{
	check_refused("STARPU_SCHED", "unknown", SL_EINVAL, "unknown");
	check_refused("STARPU_SCHED", "graph_test", SL_EUNSUPPORTED, "starpu_do_schedule");
	check_refused("STARPU_HOME", "/proc/no/such", SL_EIO, "STARPU_HOME");
	check_refused("STARPU_NCPU", "100000", SL_EDEVICE, "100000 CPU devices");
}

/* The policy is left to the environment: by sl_init, and by an operation that starts the engine. */
static void test_policies(void)
{
	static const char *const wrong[] = {"lsw", "LWS", "lws ", "modular-", "/", "%s%n"};
	const char *set = getenv("STARPU_SCHED");
	char *before = set ? strdup(set) : NULL;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		slp_end();
		setenv("STARPU_SCHED", wrong[i], 1);
		CHECK_STATUS(sl_init(&(struct sl_config){.teams = 1}), SL_EINVAL, "no scheduling policy", wrong[i],
		             " lws");
		sl_error_clear();
		CHECK_NULL(sl_ones(SL_SHAPE(2)), SL_EINVAL, "no scheduling policy", wrong[i]);
		CHECK(!sl_is_initialized());
		slp_begin((struct sl_config){.teams = 1, .sched = "eager"}); /* what is named wins */
		slp_end_well();
	}
	setenv("STARPU_SCHED", "", 1);
	slp_begin((struct sl_config){.teams = 1});
	SL_SCOPE
		CHECK_ALL(sl_ones(SL_SHAPE(2)), 1);
	slp_end_well();
	if (before) setenv("STARPU_SCHED", before, 1);
	else unsetenv("STARPU_SCHED");
	free(before);
}

#if defined STARPU_USE_TCPIP_MASTER_SLAVE && !defined SLP_SIMULATION
/* StarPU would wait for ever. */
static void test_missing_slaves(void)
{
	struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t size = sizeof here;
	char port[8];
	int other = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(!bind(other, (struct sockaddr *)&here, size) && !listen(other, 1) &&
	      !getsockname(other, (struct sockaddr *)&here, &size));
	snprintf(port, sizeof port, "%d", ntohs(here.sin_port));
	setenv("SL_DIST_TIMEOUT", "0.2", 1);
	setenv("STARPU_TCPIP_MS_PORT", port, 1);
	check_refused("STARPU_TCPIP_MS_SLAVES", "3", SL_EIO, "cannot listen for slave processes");
	close(other);
	check_refused("STARPU_TCPIP_MS_SLAVES", "3", SL_EIO, "0 of 3 slave processes (STARPU_TCPIP_MS_SLAVES) came");
	setenv("STARPU_TCPIP_MS_MASTER", "127.0.0.1", 1);
	check_refused("STARPU_TCPIP_MS_SLAVES", "3", SL_EIO, "no master came to 127.0.0.1");
	check_refused("STARPU_TCPIP_MS_SLAVES", "100000", SL_EINVAL, "there can be 64");
	setenv("STARPU_TCPIP_MS_SLAVES", "1", 1);
	check_refused("STARPU_TCPIP_MS_PORT", "70000", SL_EINVAL, "is not a port");
	check_refused("SL_DIST_TIMEOUT", "nan", SL_EINVAL, "not a time in seconds");
	unsetenv("STARPU_TCPIP_MS_SLAVES");
	unsetenv("STARPU_TCPIP_MS_MASTER");
	unsetenv("STARPU_TCPIP_MS_PORT");
	unsetenv("SL_DIST_TIMEOUT");
	slp_begin((struct sl_config){.teams = 1});
	SL_SCOPE
		CHECK_ALL(sl_ones(SL_SHAPE(2)), 1);
	slp_end_well();
}
#else
static void test_missing_slaves(void)
{
}
#endif

/* What returns no status has nothing to do there. */
static void test_null(void)
{
	sl_stats_print(NULL);
	sl_scope_open(NULL);
	sl_scope_close(NULL);
	sl_mode_enter(NULL, 1, 1);
	sl_mode_leave(NULL);
	sl_autocast_enter_at(SL_HERE, NULL, SL_BFLOAT16);
	sl_autocast_leave(NULL);
	CHECK(!sl_is_recording() && !sl_is_training());
	CHECK(!*sl_device_name(sl_auto(), NULL) && !*sl_shape_string(SL_SHAPE(2), NULL));
	CHECK(sl_graph_inputs(NULL, NULL, 0) == 0 && sl_graph_outputs(NULL, NULL, 0) == 0);
	CHECK(!sl_plan_graph(NULL) && sl_plan_info(NULL).segments == 0);
	CHECK(sl_error() == SL_OK);
}

/* Arrays and files that are not there; tests/misuse.sh has found each. */
static void test_null_arrays(void)
{
	slp_begin((struct sl_config){.teams = 1});
	sl_block *net = sl_dense(2, .in_units = 3);
	sl_plan *plan = NULL;
	SL_SCOPE {
		sl_tensor *t = sl_ones(SL_SHAPE(2, 2)), *in[] = {t};
		sl_graph *g = sl_graph_parse("input x: float32 (2,2)\ny = add(x, x)\nreturn y");
		plan = sl_compile(g);
		CHECK_STATUS(sl_plan_run(plan, in, 1, NULL), SL_EINVAL, "sl_plan_run", "results is NULL"),
		        sl_error_clear();
		CHECK_STATUS(sl_plan_run(plan, NULL, 1, in), SL_EINVAL, "sl_plan_run", "inputs is NULL"),
		        sl_error_clear();
		CHECK(sl_graph_inputs(g, NULL, 5) == 1 && sl_graph_outputs(g, NULL, 5) == 1);
		CHECK(sl_block_params(net, NULL, 5) == 2);
		sl_graph_free(g);
		CHECK_NULL(sl_einsum_at(SL_HERE, "ij->ji", NULL, 1), SL_EINVAL, "sl_einsum", "tensors is NULL");
		CHECK_NULL(sl_forward_at(SL_HERE, net, NULL, 1), SL_EINVAL, "sl_forward", "inputs is NULL");
		CHECK_NULL(sl_graph_define_at(SL_HERE, NULL, 1), SL_EINVAL, "sl_graph_define", "heads is NULL");
		CHECK_NULL(sl_transpose(t, .naxes = 2), SL_EINVAL, "sl_transpose", "axes is NULL");
		CHECK_NULL(sl_flip(t, .naxes = 1), SL_EINVAL, "sl_flip", "axes is NULL");
		CHECK_NULL(sl_flip(t, .naxes = -1), SL_EINVAL, "sl_flip", "-1 axes");
		CHECK_NULL(sl_stack(NULL, 2, 0), SL_EINVAL, "sl_stack", "tensors is NULL");
		CHECK_NULL(sl_recurrent(SL_CELL_TANH, NULL, t, NULL), SL_EINVAL, "sl_recurrent", "gates is NULL");
		CHECK_NULL(sl_param_use(sl_block_find(net, "weight"), NULL), SL_EINVAL, "sl_param_use", "NULL");
		CHECK_STATUS(sl_split(t, 0, 2, NULL), SL_EINVAL, "sl_split", "parts is NULL"), sl_error_clear();
		CHECK_STATUS(sl_export(net, "x", .nshapes = 1), SL_EINVAL, "sl_export", "shapes is NULL"),
		        sl_error_clear();
		CHECK_STATUS(sl_export(net, "x", SL_SHAPES(SL_SHAPE(1, 3)), .ndtypes = 1), SL_EINVAL, "sl_export",
		             "data types is NULL"),
		        sl_error_clear();
		CHECK_STATUS(sl_export(net, "x", SL_SHAPES(SL_SHAPE(1, 3)), SL_DTYPES(SL_FLOAT32, SL_INT32)), SL_EINVAL,
		             "sl_export", "2 data types", "1 shapes"),
		        sl_error_clear();
		CHECK_STATUS(sl_param_fit(NULL, SL_SHAPE(1)), SL_EINVAL, "sl_param_fit", "NULL"), sl_error_clear();
		CHECK_STATUS(sl_fprint(NULL, t), SL_EINVAL, "sl_fprint", "file is NULL"), sl_error_clear();
		CHECK_STATUS(sl_summary(NULL, net, SL_SHAPE(1, 3)), SL_EINVAL, "sl_summary", "file is NULL"),
		        sl_error_clear();
		sl_profile_print(NULL);
		CHECK(sl_sample_uniform(NULL) == 0);
		CHECK(!sl_device_parse("cpu", NULL, 1) && sl_error() == SL_EINVAL);
		sl_error_clear();
	}
	sl_plan_free(plan);
	sl_block_free(net);
	slp_end_well();
}

static sl_tensor *program_tensor;

/* A kernel that waits would wait for itself. */
static enum sl_status calling_kernel(const struct sl_op_call *c)
{
	float v;
	enum sl_status waited = sl_wait(program_tensor), all = sl_wait_all(),
	               read = sl_read(program_tensor, &v, sizeof v);
	*(float *)c->out[0].data = (float)(waited * 10000 + all * 100 + read);
	return SL_OK;
}

static enum sl_status careless_kernel(const struct sl_op_call *c)
{
	*(float *)c->out[0].data = 1;
	sl_shutdown();
	sl_ones(SL_SHAPE(2));
	return SL_OK;
}

static void test_calls_from_kernels(void)
{
	slp_begin((struct sl_config){.teams = 1});
	const sl_op *calls = sl_op_register(.name = "calls", .args = "x", .nin = 1, .cpu = calling_kernel);
	const sl_op *careless = sl_op_register(.name = "careless", .args = "x", .nin = 1, .cpu = careless_kernel);
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(1));
		program_tensor = x;
		CHECK_ALL(sl_op_apply(calls, &x, 1), SL_ESTATE * 10101);
		CHECK_STATUS(sl_wait(sl_op_apply(careless, &x, 1)), SL_ESTATE, "careless", "called by a kernel",
		             "test_misuse.c:");
		CHECK_ALL(sl_add(x, x), 2);
	}
	while (sl_wait_all() != SL_OK) continue;
	slp_end_well();
}

/* What is no value while a program is traced. */
static sl_tensor *place_nothing(sl_tensor *x)
{
	CHECK_NULL(sl_place(NULL, sl_cpu(0)), SL_EINVAL, "sl_place", "NULL");
	CHECK_NULL(sl_copy_to(NULL, sl_cpu(0)), SL_EINVAL, "sl_copy_to", "NULL");
	return x;
}

static void test_null_in_traces(void)
{
	slp_begin((struct sl_config){.teams = 1});
	sl_block *b = sl_lambda("nothing", place_nothing);
	CHECK_OK(sl_hybridize(b));
	SL_SCOPE
		CHECK_ALL(sl_forward(b, sl_ones(SL_SHAPE(2))), 1);
	sl_block_free(b);
	slp_end_well();
}

/* Numbers of layers that multiplied are past an int, and so small again. */
static void test_sizes(void)
{
	CHECK_NULL(sl_rnn(1, .layers = 1 << 30), SL_EINVAL, "sl_rnn", "1073741824 layers");
	CHECK_NULL(sl_lstm(1LL << 61), SL_EINVAL, "sl_lstm", "impossible");
	CHECK_NULL(sl_multi_head_attention(INT64_MAX, 1), SL_EINVAL, "sl_multi_head_attention", "width");
	SL_SCOPE
		CHECK_NULL(sl_tile(sl_ones(SL_SHAPE(3)), 0, INT64_MAX), SL_EINVAL, "sl_tile", "times");
}

static void test_statistics(void)
{
	sl_stats_get(NULL);
	CHECK(sl_error() == SL_OK);
}

/* ---- printing ---------------------------------------------------------------------------------------------------- */

/* A mistake before stays to be reported, and the graph is whole. */
static void test_print_with_error(void)
{
	slp_begin((struct sl_config){.teams = 1});
	char *text = NULL;
	size_t size;
	sl_graph *g = sl_graph_parse("input x: float32 (2,)\nconst c: float32 (2,) = [1, 2]\ny = add(x, c)\nreturn y");
	FILE *file = open_memstream(&text, &size);
	make_mistake(NULL);
	CHECK(sl_error() == SL_ESHAPE && sl_graph_print(file, g) == SL_OK && sl_error() == SL_ESHAPE);
	fclose(file);
	CHECK_SAYING(strstr(text, "[1, 2]") && strstr(text, "return y"), "printed %s", text);
	free(text);
	CHECK_STATUS(sl_wait_all(), SL_ESHAPE, "add(");
	sl_graph_free(g);
	slp_end_well();
}

static const struct slp_test tests[] = {
        {"fork", test_fork},
        {"a thread ends with an error", test_ended_thread},
        {"a block inside itself", test_block_in_itself},
        {"learning rates", test_learning_rate},
        {"too many teams", test_teams},
        {"environment", test_environment},
        {"environment, refused", test_environment_refused},
        {"scheduling policies", test_policies},
        {"missing slaves", test_missing_slaves},
        {"optimisers", test_optimizers},
        {"values at NULL", test_values_at_null},
        {"statistics", test_statistics},
        {"NULL", test_null},
        {"NULL for arrays and files", test_null_arrays},
        {"NULL while a program is traced", test_null_in_traces},
        {"sizes of layers", test_sizes},
        {"calls from kernels", test_calls_from_kernels},
        {"printing after a mistake", test_print_with_error},
        {0},
};

int main(int argc, char **argv)
{
	return slp_test_main(argc, argv,
	                     (const struct slp_suite[]){{.name = "misuse", .tests = tests, .after = slp_end}, {0}});
}
