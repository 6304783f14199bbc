/* sl_explain: what it says of calls that ran alone, in segments, fused, in compiled programs; on CPU teams, and where
 * there are GPUs (tests/emu) on these; what it says where there is nothing to tell. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <starling.h>

#include "check.h"
#include "number.h"
#include "gate.h"
#include "runtime/task/segment.h"

static char *told;
static size_t told_size;

static void start(const char *sched, bool explain)
{
	slp_begin((struct sl_config){.teams = 2, .sched = sched, .explain = explain});
}

static void stop(void)
{
	slp_end();
	free(told);
	told = NULL;
}

/* What sl_explain says about a tensor, in `told`. */
static enum sl_status explain(sl_tensor *t)
{
	free(told);
	FILE *f = open_memstream(&told, &told_size);
	enum sl_status s = sl_fexplain(f, t);
	fclose(f);
	return s;
}

#define CHECK_TOLD(text) CHECK_SAYING(strstr(told, text) != NULL, "\"%s\" is not in:\n%s", text, told)
#define CHECK_NOT_TOLD(text) CHECK_SAYING(strstr(told, text) == NULL, "\"%s\" is in:\n%s", text, told)

/* The number before or behind a text in what was said; -1: it is missing. */
static double number_behind(const char *text)
{
	const char *p = strstr(told, text);
	return p ? slp_number_read(p + strlen(text), NULL) : -1;
}

/* Predicted, transfers, took, in milliseconds, of a device's row; -1 for ? and -. */
static void read_row(const char *device, double row[3])
{
	char line[32], field[3][16];
	snprintf(line, sizeof line, "\n  %-8s ", device);
	const char *p = strstr(told, line);
	row[0] = row[1] = row[2] = -1;
	if (!CHECK_SAYING(p != NULL, "no row of %s in:\n%s", device, told)) return;
	p += strlen(line);
	for (int i = 0, n; i < 3 && sscanf(p, "%15s%n", field[i], &n) == 1; i++, p += n) {
		if (strcmp(field[i], "?") == 0 || strcmp(field[i], "-") == 0) continue;
		row[i] = slp_number_read(field[i], NULL);
		p = strstr(p, "ms");
		n = 2;
	}
}

static void rest(int milliseconds)
{
	nanosleep(&(struct timespec){.tv_nsec = milliseconds * 1000000L}, NULL);
}

/* ---- nothing to tell --------------------------------------------------------------------------------------------- */

static void test_off(void)
{
	start(NULL, false);
	SL_SCOPE
		CHECK_STATUS(explain(sl_ones(SL_SHAPE(3))), SL_ESTATE, "sl_explain at ", "SL_EXPLAIN=1",
		             "sl_config.explain");
	CHECK(told_size == 0);
	sl_error_clear();
	stop();
}

static void test_null(void)
{
	start(NULL, true);
	CHECK_STATUS(explain(NULL), SL_EINVAL, "sl_explain at ", "NULL");
	sl_error_clear();
	SL_SCOPE
		CHECK_STATUS(explain(sl_var("data", SL_VAR_SHAPE(2))), SL_ESTATE, "sl_explain", "data");
	sl_error_clear();
	stop();
}

static void test_given(void)
{
	float v[6] = {1, 2, 3, 4, 5, 6};
	start(NULL, true);
	SL_SCOPE {
		sl_tensor *x = sl_from(v, SL_SHAPE(2, 3)), *y = sl_neg(x);
		CHECK_OK(explain(x));
		CHECK_TOLD("float32 (2, 3): no operation computed it");
		CHECK_OK(explain(y));
		CHECK_TOLD("neg at ");
		CHECK_OK(sl_write(y, v, sizeof v));
		CHECK_OK(explain(y));
		CHECK_TOLD("no operation computed it");
	}
	stop();
}

static void test_failed(void)
{
	start(NULL, true);
	SL_SCOPE {
		atomic_store(&slp_fail_kernel, 1);
		CHECK_STATUS(explain(sl_ones(SL_SHAPE(3))), SL_EKERNEL, "told to fail");
	}
	sl_error_clear();
	stop();
}

/* The variable does what the field does. */
static void test_variable(void)
{
	setenv("SL_EXPLAIN", "1", 1);
	start(NULL, false);
	SL_SCOPE {
		CHECK_OK(explain(sl_ones(SL_SHAPE(3))));
		CHECK_TOLD("fill");
	}
	stop();
	unsetenv("SL_EXPLAIN");
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static sl_tensor *square(sl_device device, double value)
{
	return sl_full(SL_SHAPE(200, 200), value, .device = device);
}

static void test_alone(void)
{
	double here[3], there[3];
	start(NULL, true);
	SL_SCOPE {
		sl_tensor *x = square(sl_cpu(1), 2);
		sl_tensor *y = sl_dot(x, x);
		CHECK_OK(explain(y));
		CHECK_TOLD("dot at ");
		CHECK_TOLD("test_explain.c:");
		CHECK_TOLD(", float32 (200, 200)\n");
		CHECK_TOLD("ran on cpu:1: its tensors are on cpu:1\n");
		CHECK_NOT_TOLD("in one task");
		read_row("cpu:0", here);
		read_row("cpu:1", there);
		CHECK_SAYING(here[2] < 0 && there[2] > 0, "cpu:0 took %g, cpu:1 %g ms", here[2], there[2]);
		/* 16 Mflop: not less than at 4 Tflop/s, not more than a second. */
		CHECK_SAYING(there[2] > 0.004 && there[2] < 1000, "%g ms", there[2]);
	}
	stop();
}

/* The place reported is that of the call. */
static void test_place(void)
{
	char expected[256];
	const char *at;
	start(NULL, true);
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(3)), *y;
		y = (at = SL_HERE, sl_exp(x));
		CHECK_OK(explain(y));
		snprintf(expected, sizeof expected, "exp at %s, float32 (3,)\n", at);
		CHECK_TOLD(expected);
	}
	stop();
}

static void test_segment(void)
{
	start(NULL, true);
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(3)), *y = sl_exp(x), *z = sl_neg(y);
		CHECK_OK(explain(y));
		CHECK_TOLD("exp at ");
		CHECK_TOLD("call 2 of 3 in one task, whose times these are: fill, exp, neg\n");
		CHECK_OK(explain(z));
		CHECK_TOLD("neg at ");
		CHECK_TOLD("call 3 of 3 ");
		sl_add_(z, y);
		CHECK_OK(explain(z));
		CHECK_TOLD("add at ");
		CHECK_OK(explain(sl_rows(z, 0, 1)));
		CHECK_TOLD("add at ");
	}
	stop();
}

/* Times against a clock of our own: a worker is kept busy for a while before it may run the task. */
static void test_waits(void)
{
	enum { WHILE = 60 };
	start(NULL, true);
	SL_SCOPE {
		sl_tensor *x = square(sl_cpu(0), 1);
		CHECK_OK(sl_wait(x));
		slp_gate_close(0);
		sl_tensor *y = sl_dot(x, x), *z = sl_dot(sl_place(y, sl_cpu(1)), sl_place(x, sl_cpu(1)));
		rest(WHILE);
		slp_gate_open();
		CHECK_OK(explain(y));
		double queued = number_behind("to be computed, ");
		CHECK_SAYING(queued > 0.8 * WHILE && queued < 100 * WHILE, "in the queue for %g ms:\n%s", queued, told);
		CHECK_OK(explain(z));
		double blocked = number_behind("waited ");
		CHECK_SAYING(blocked > 0.8 * WHILE && blocked < 100 * WHILE, "waited for inputs %g ms:\n%s", blocked,
		             told);
		CHECK_TOLD("ran on cpu:1");
	}
	stop();
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static sl_tensor *chain(sl_tensor *x)
{
	return sl_tanh(sl_add_scalar(sl_mul(x, x), 1));
}

static void test_fused(void)
{
	start(NULL, true);
	sl_block *net = sl_lambda("chain", chain);
	CHECK_OK(sl_hybridize(net));
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(300, 300));
		CHECK_OK(explain(sl_forward(net, x)));
		CHECK_TOLD("fused (mul, add, tanh) at ");
		CHECK_TOLD("in task 1 of 1 of the forward program compiled at ");
	}
	sl_block_free(net);
	stop();
}

static void test_gradients(void)
{
	start(NULL, true);
	sl_block *net = sl_dense(100);
	CHECK_OK(sl_initialize(net));
	CHECK_OK(sl_hybridize(net));
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(300, 300)), *y;
		SL_RECORD
			y = sl_sum(sl_square(sl_forward(net, x)));
		CHECK_OK(sl_backward(y));
		CHECK_OK(explain(sl_param_grad(sl_block_find(net, "weight"))));
		CHECK_TOLD("of the backward program compiled at ");
		CHECK_OK(explain(y));
		CHECK_TOLD("sum at ");
		CHECK_NOT_TOLD("compiled");
	}
	sl_block_free(net);
	stop();
}

/* Programs that are small run among other calls: those that are theirs say so. */
static void test_small_program(void)
{
	start(NULL, true);
	sl_block *net = sl_lambda("chain", chain);
	CHECK_OK(sl_hybridize(net));
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(3)), *y = sl_forward(net, x), *z = sl_neg(y);
		CHECK_OK(explain(y));
		CHECK_TOLD("in task 1 of 1 of the forward program");
		CHECK_TOLD("fill, fused (mul, add, tanh), neg\n");
		CHECK_OK(explain(z));
		CHECK_NOT_TOLD("compiled");
	}
	sl_block_free(net);
	stop();
}

/* ---- why --------------------------------------------------------------------------------------------------------- */

static void explain_often(sl_tensor *x, int times)
{
	for (int i = 0; i < times; i++)
		SL_SCOPE
			CHECK_OK(explain(sl_dot(x, x)));
}

/* StarPU throws times away that differ much, as they may on a busy machine. */
static void explain_until(sl_tensor *x, bool (*told_so)(void))
{
	double deadline = sl_time() + SLP_PATIENCE;
	do explain_often(x, 60);
	while (!told_so() && sl_time() < deadline);
}

static bool all_measured(void)
{
	return !strstr(told, "measured these shapes") && !strchr(told, '?');
}

static bool here_predicted(void)
{
	double row[3];
	read_row("cpu:0", row);
	return row[0] >= 0;
}

static void test_policies(void)
{
	start("eager", true);
	if (!sl_device_count(SL_DEVICE_GPU))
		SL_SCOPE {
			explain_often(square(sl_auto(), 1), 1);
			CHECK_TOLD("eager chose it, without considering times or transfers\n");
		}
	stop();
	start("dmda", true);
	SL_SCOPE {
		sl_tensor *x = sl_full(SL_SHAPE(211, 211), 1); /* shapes that nobody has measured */
		explain_often(x, 1);
		CHECK_TOLD("dmda chose it: it has not measured these shapes");
		explain_until(x, all_measured);
		CHECK_TOLD("dmda chose it: ");
		CHECK_NOT_TOLD("measured these shapes");
		CHECK_NOT_TOLD("?");
	}
	stop();
}

/* Predictions are there under policies that ask for none, once the shapes have run often enough. */
static void test_predictions(void)
{
	double row[3];
	start("lws", true);
	SL_SCOPE {
		sl_tensor *x = sl_full(SL_SHAPE(213, 213), 1, .device = sl_cpu(0));
		explain_often(x, 1);
		read_row("cpu:0", row);
		CHECK_SAYING(row[0] < 0, "predicted %g ms at the first time", row[0]);
		explain_until(x, here_predicted);
		read_row("cpu:0", row);
		CHECK_SAYING(row[0] > 0.004 && row[0] < 1000, "predicted %g ms, took %g ms", row[0], row[2]);
	}
	stop();
}

/* ---- GPUs, where there are some --------------------------------------------------------------------------------- */

static void test_gpu(void)
{
	double row[3];
	start(NULL, true);
	if (sl_device_count(SL_DEVICE_GPU) < 2) {
		stop();
		return;
	}
	SL_SCOPE {
		sl_tensor *x = square(sl_cpu(0), 1), *y, *z;
		CHECK_OK(sl_wait(x));
		y = sl_dot(sl_place(x, sl_gpu(0)), sl_place(x, sl_gpu(0)));
		CHECK_OK(explain(y));
		CHECK_TOLD("ran on gpu:0: its tensors are on gpu:0\n");
		CHECK_TOLD("  0.156 MiB transferred from main memory\n"); /* 160000 bytes: the size class 163840 */
		read_row("gpu:0", row);
		CHECK_SAYING(row[1] > 0 && row[2] > 0, "transfers %g, took %g ms:\n%s", row[1], row[2], told);
		z = sl_neg(sl_place(y, sl_gpu(1)));
		CHECK_OK(explain(z));
		CHECK_TOLD("ran on gpu:1");
		CHECK_TOLD("MiB transferred from gpu:0\n");
		CHECK_OK(explain(sl_neg(sl_place(y, sl_gpu(0)))));
		CHECK_NOT_TOLD("travelled");
	}
	stop();
}

static const struct slp_test tests[] = {
        {"not switched on", test_off},
        {"NULL, symbols", test_null},
        {"values that the program gave", test_given},
        {"a call that failed", test_failed},
        {"SL_EXPLAIN", test_variable},
        {"a call alone", test_alone},
        {"the place of a call", test_place},
        {"calls in one task", test_segment},
        {"waiting", test_waits},
        {"a fused call", test_fused},
        {"gradients of a program", test_gradients},
        {"a small program", test_small_program},
        {"policies", test_policies},
        {"predictions", test_predictions},
        {"GPUs", test_gpu},
        {0},
};

int main(int argc, char **argv)
{
	setenv("STARPU_CALIBRATE", "2", 1); /* times of earlier runs are forgotten */
	return slp_test_main(argc, argv, (const struct slp_suite[]){{.name = "explain", .tests = tests}, {0}});
}
