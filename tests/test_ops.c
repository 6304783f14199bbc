/* All operations, from the tables of cases: on every device against the reference in double precision, against
 * literal values, in place, in segments, from views, on one team or two, in traced code, and their gradients against
 * finite differences.  An operation without cases fails. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <CUnit/CUnit.h>
#include <starling.h>

#include "config.h"
#include "op_grad.h"
#include "op_second.h"
#include "op_run.h"
#include "op_traced.h"
#include "runtime/device/team.h"
#include "runtime/engine.h"

/* ---- one case ---------------------------------------------------------------------------------------------------- */

static struct slp_choice choice_of(const struct slp_operands *o, enum sl_device_kind kind)
{
	return slp_kernel_for(o->op, slp_operands_types(o), kind);
}

/* A kernel of its own runs: neither the reference nor a promoted one. */
static bool is_fast(const struct slp_operands *o)
{
	struct slp_choice c = choice_of(o, SL_DEVICE_CPU);
	return c.kernel && !c.promote && c.kernel != o->op->ref;
}

static bool runs_on(const struct slp_operands *o, sl_device device)
{
	return choice_of(o, device.kind).kernel;
}

/* Emulated GPUs (tests/emu) are slow: SLP_GPU_CASES leaves everything to GPUs, and cases of a higher cost out. */
static double gpu_cases(void)
{
	const char *text = getenv("SLP_GPU_CASES");
	return text ? atof(text) : 0;
}

/* What the CPU kernel gives, called directly on memory of exactly the size: the bits that a CPU team must give too.
 * Here slp_parallel_for has one thread; libraries are told the team's number, because their bits may depend on it. */
static struct slp_operands run_directly(struct slp_place_of_test at, const struct slp_operands *o, int threads)
{
	struct slp_operands r = slp_operands_copy(o);
	at.how = "called directly";
	omp_set_num_threads(threads);
	r.threads = threads;
	enum sl_status s = slp_operands_compute(&r);
	if (s != SL_OK) slp_case_fail(at, "%s", sl_status_name(s));
	return r;
}

static bool has_half(const struct slp_operands *o)
{
	struct slp_types t = slp_operands_types(o);
	return (t.first | t.floats) & SLP_HALVES;
}

/* The ways that tell something: without a fast kernel for these types the reference runs, and once is enough for
 * large operands. */
static enum slp_way last_way(const struct slp_operands *o, sl_device device)
{
	bool slow = device.kind == SL_DEVICE_CPU && choice_of(o, SL_DEVICE_CPU).kernel == o->op->ref;
	bool emulated = device.kind == SL_DEVICE_GPU && gpu_cases() > 0 && gpu_cases() < 5000; /* not in the long run */
	return (slow || has_half(o)) && (emulated || slp_operands_cost(o) > 20000) ? SLP_PLAIN : SLP_WAY_COUNT - 1;
}

void emu_counts_get(void *counts) __attribute__((weak)); /* there on emulated GPUs (tests/emu/emulated.h) */

/* cuBLAS and cuDNN choose kernels by where operands begin, too: those of views may add up in another order. */
static bool has_the_same_bits(const struct slp_operands *o, sl_device device, enum slp_way way)
{
	static const char *const by_libraries[] = {"attention", "conv2d", "dot", "linear", "matmul", "recurrent"};
	if (device.kind != SL_DEVICE_GPU || way != SLP_VIEWS || emu_counts_get) return true;
	for (size_t i = 0; i < sizeof by_libraries / sizeof *by_libraries; i++)
		if (strstr(o->op->name, by_libraries[i])) return false;
	return true;
}

/* The reference adds up one after another: of many numbers in double precision, a GPU's sum is the better one. */
static double tolerance_on(struct slp_place_of_test at, sl_device device, const struct slp_operands *o)
{
	bool in_parts = device.kind == SL_DEVICE_GPU && o->nin && o->in[0].type.dtype == SL_FLOAT64;
	return slp_case_tolerance(at.c) * (in_parts ? 1 + sqrt(slp_operands_cost(o)) / 32 : 1);
}

/* On one device.  bits: what CPUs must give; GPUs must give the same each way. */
static void check_ways(struct slp_place_of_test at, sl_device device, const struct slp_operands *o,
                       const struct slp_operands *expected, const struct slp_operands *bits)
{
	struct slp_operands first, r;
	at.how = slp_way_name(SLP_PLAIN);
	if (!slp_case_run(at, device, SLP_PLAIN, o, &first)) return;
	if (slp_compare_values(at, &first, expected, tolerance_on(at, device, o))) slp_check(true, "op", 0, "values");
	if (!has_half(o)) slp_compare_literals(at, &first);
	if (device.kind == SL_DEVICE_CPU) slp_compare_bits(at, &first, bits);
	for (enum slp_way way = SLP_AGAIN; way <= last_way(o, device); way++) {
		if (!slp_way_applies(way, o) || !slp_case_run(at, device, way, o, &r)) continue;
		at.how = slp_way_name(way);
		bool same = has_the_same_bits(o, device, way)
		                    ? slp_compare_bits(at, &r, &first)
		                    : slp_compare_values(at, &r, expected, tolerance_on(at, device, o));
		if (same) slp_check(true, "op", 0, "bits");
		slp_operands_free(&r);
	}
	slp_operands_free(&first);
}

/* A call on operands of some types: directly, and on each device.  `reference`: the expected results are already those
 * of the reference on these types. */
static void check_operands(struct slp_place_of_test at, const sl_device *devices, const struct slp_operands *o,
                           const struct slp_operands *expected, bool reference)
{
	struct slp_operands made;
	bool known = reference && !is_fast(o) && !choice_of(o, SL_DEVICE_CPU).promote;
	if (!known) made = run_directly(at, o, slp_team_threads(0));
	for (; devices->kind; devices++) {
		char name[SL_DEVICE_NAME_MAX];
		at.device = sl_device_name(*devices, name);
		if (runs_on(o, *devices)) check_ways(at, *devices, o, expected, known ? expected : &made);
		else slp_case_unsupported(at, *devices, o);
	}
	if (!known) slp_operands_free(&made);
}

/* Footprints, schedulers and simulation need them. */
static void check_cost(struct slp_place_of_test at, const struct slp_operands *o)
{
	at.how = "cost";
	double cost = slp_operands_cost(o);
	if (!(cost >= 0 && cost < 1e15)) slp_case_fail(at, "%g", cost);
}

/* What tracing makes of a call does not depend on how large its operands are. */
static void check_traced(struct slp_place_of_test at, const sl_device *devices, const struct slp_operands *o)
{
	enum { WORTH_TRACING = 5000 };
	if (slp_operands_cost(o) > WORTH_TRACING || !runs_on(o, devices[0])) return;
	char name[SL_DEVICE_NAME_MAX];
	at.device = sl_device_name(devices[0], name);
	slp_case_traced(at, devices[0], o);
}

/* The case with a half type for float32: against the reference in double precision, on the same numbers. */
static void check_half(struct slp_place_of_test at, const sl_device *devices, enum sl_dtype half)
{
	struct slp_operands o, wide;
	bool made = slp_operands_make(&wide, at.c, SL_FLOAT64, half) == SL_OK;
	made = slp_operands_make(&o, at.c, half, half) == SL_OK && made;
	sl_error_clear();
	bool quick = made && slp_operands_cost(&o) < 100000;
	if (quick && slp_operands_run(&wide, wide.op->ref) == SL_OK) check_operands(at, devices, &o, &wide, false);
	slp_operands_free(&wide);
	slp_operands_free(&o);
}

static void check_halves(struct slp_place_of_test at, const sl_device *devices)
{
	bool any = false;
	int64_t elements = 0;
	for (int i = 0; i < at.c->nin; i++) {
		any |= at.c->in[i].dtype == SL_FLOAT32;
		elements += sl_shape_size(at.c->in[i].shape);
	}
	if (!any || at.c->own_types || elements > 20000) return; /* types do not depend on sizes; it is to be quick */
	check_half(at, devices, SL_BFLOAT16);
	check_half(at, devices, SL_FLOAT16);
}

/* The case as it is, and with float64 for float32 where that differs and is allowed. */
static void check_case(struct slp_place_of_test at, const sl_device *devices)
{
	struct slp_operands o, wide;
	if (slp_operands_make(&o, at.c, SL_FLOAT32, SL_FLOAT32) != SL_OK) {
		slp_case_fail(at, "%s", sl_error_message());
		sl_error_clear();
		return;
	}
	if (gpu_cases() > 0 && slp_operands_cost(&o) > gpu_cases()) {
		slp_operands_free(&o);
		return;
	}
	bool allowed = slp_operands_make(&wide, at.c, SL_FLOAT64, SL_FLOAT32) == SL_OK && !at.c->own_types;
	sl_error_clear();
	struct slp_operands expected = slp_operands_copy(allowed ? &wide : &o);
	if (slp_operands_run(&expected, o.op->ref) != SL_OK) slp_case_fail(at, "the reference fails");
	at.how = "the reference";
	slp_compare_literals(at, &expected);
	check_cost(at, &o);
	check_operands(at, devices, &o, &expected, !allowed);
	check_traced(at, devices, &o);
	bool differs = false;
	for (int i = 0; i < o.nin; i++) differs |= o.in[i].type.dtype != wide.in[i].type.dtype;
	if (allowed && differs) check_operands(at, devices, &wide, &expected, true);
	if (allowed && differs) check_traced(at, devices, &wide);
	check_halves(at, devices);
	if (allowed && devices[0].kind == SL_DEVICE_CPU) {
		slp_case_gradient(at, devices[0], &wide);
		slp_case_second(at, devices[0], &wide);
	}
	slp_operands_free(&expected);
	slp_operands_free(&wide);
	slp_operands_free(&o);
}

static void check_rejected(struct slp_place_of_test at, const sl_device *devices)
{
	struct slp_operands o;
	slp_operands_make(&o, at.c, SL_FLOAT32, SL_FLOAT32);
	sl_error_clear();
	slp_case_reject(at, devices[0], &o);
	slp_operands_free(&o);
}

/* ---- one operation ----------------------------------------------------------------------------------------------- */

static sl_device devices[SLP_MAX_TEAMS + SLP_MAX_GPUS + 1]; /* those there are; ends with a zeroed one */

/* The operation that the running test is named after. */
static void test_operation(void)
{
	const char *name = CU_get_current_test()->pName;
	for (const struct slp_case *const *t = slp_case_tables; *t; t++)
		for (const struct slp_case *c = *t; c->op; c++) {
			if (strcmp(c->op, name)) continue;
			struct slp_place_of_test at = {c, "cpu", "inputs"};
			if (c->reject) check_rejected(at, devices);
			else check_case(at, devices);
		}
	if (sl_wait_all() != SL_OK) slp_check(false, name, 0, "%s", sl_error_message());
}

/* On further teams, which have other numbers of threads, only the bits are looked at. */
static void check_bits(const struct slp_case *c)
{
	struct slp_place_of_test at = {c, "cpu", "alone, as one of two teams"};
	struct slp_operands o, r;
	if (slp_operands_make(&o, c, SL_FLOAT32, SL_FLOAT32) == SL_OK) {
		for (const sl_device *d = devices; d->kind == SL_DEVICE_CPU; d++) {
			char name[SL_DEVICE_NAME_MAX];
			at.device = sl_device_name(*d, name);
			if (!slp_case_run(at, *d, SLP_PLAIN, &o, &r)) continue;
			struct slp_operands bits = run_directly(at, &o, slp_team_threads(d->index));
			if (slp_compare_bits(at, &r, &bits)) slp_check(true, "op", 0, "bits");
			slp_operands_free(&bits);
			slp_operands_free(&r);
		}
	}
	slp_operands_free(&o);
}

static void test_teams(void)
{
	for (const struct slp_case *const *t = slp_case_tables; *t; t++)
		for (const struct slp_case *c = *t; c->op; c++)
			if (!c->reject && slp_op_find(c->op)) check_bits(c);
	sl_wait_all();
}

/* ---- the registry ------------------------------------------------------------------------------------------------ */

/* The order of bytes in the results is a library's: tests/test_onnx_quantised compares products with them. */
static bool is_packing(const char *op)
{
	return !strcmp(op, "qconv2d_pack") || !strcmp(op, "qmatmul_pack");
}

static bool has_case(const char *op)
{
	for (const struct slp_case *const *t = slp_case_tables; *t; t++)
		for (const struct slp_case *c = *t; c->op; c++)
			if (!strcmp(c->op, op) && (!c->reject || is_packing(op))) return true;
	return false;
}

static void test_cases_complete(void)
{
	for (const struct sl_op **op = slp_ops; *op; op++)
		CHECK_SAYING(has_case((*op)->name), "the operation %s has no test case", (*op)->name);
	for (const struct slp_case *const *t = slp_case_tables; *t; t++)
		for (const struct slp_case *c = *t; c->op; c++) {
			CHECK_SAYING(slp_op_find(c->op), "a test case is for \"%s\", which is no operation", c->op);
			CHECK_SAYING(c->label && *c->label, "a test case of %s has no label", c->op);
		}
}

/* How many names there are in a list; -1 if there is no end to them. */
static int count_names(const char *args)
{
	int n = 0;
	for (const char *p = args ? args : ""; *p; p += strcspn(p, " "), p += *p == ' ') {
		if (!strcmp(p, "...")) return -1;
		n++;
	}
	return n;
}

static void check_documented(const struct sl_op *op)
{
	CHECK_SAYING(op->doc && *op->doc && !strchr(op->doc, '\n'), "%s has no doc of one line", op->name);
	int names = count_names(op->args);
	CHECK_SAYING(names < 0 ? op->nin_max > op->nin_min : names == op->nin_max, "%s has %d inputs, but args \"%s\"",
	             op->name, op->nin_max, op->args ? op->args : "");
	CHECK_SAYING(op->nin_min >= 0 && op->nin_min <= op->nin_max, "%s takes %d to %d inputs", op->name, op->nin_min,
	             op->nin_max);
	CHECK_SAYING(!op->attrs_size || op->attr_table, "%s has attributes without a table", op->name);
	for (const struct slp_attr *a = op->attr_table; a && a->name; a++)
		CHECK_SAYING(a->doc && *a->doc && *a->name, "%s: the attribute %s has no doc", op->name, a->name);
}

static void check_sizes(const struct sl_op *op)
{
	static const size_t sizes[] = {
	        [SLP_INT] = sizeof(int), [SLP_INT64] = 8, [SLP_DOUBLE] = 8, [SLP_BOOL] = sizeof(bool)};
	CHECK_SAYING(op->attrs_size <= SLP_MAX_ATTRS, "%s: attributes of %zu bytes", op->name, op->attrs_size);
	CHECK_SAYING(op->nout <= SLP_MAX_OUTPUTS, "%s: %d outputs", op->name, op->nout);
	for (const struct slp_attr *a = op->attr_table; a && a->name; a++)
		CHECK_SAYING(a->count >= 1 && a->offset + a->count * sizes[a->kind] <= op->attrs_size,
		             "%s: the attribute %s lies outside the structure", op->name, a->name);
}

/* Whether rows for GPUs alone have a kernel. */
#if defined HAVE_CUDA || defined SLP_SIMULATION
enum { GPU_ROWS = 1 };
#else
enum { GPU_ROWS = 0 };
#endif

/* Each row has a kernel, for types that none before it takes on that device; float32 is always taken, or no float
 * is, or float64 alone (sums). */
static void check_rows(const struct sl_op *op)
{
	unsigned all = 0, cpu = 0, cuda = 0;
	CHECK_SAYING(op->rows && op->rows[0].types, "%s has no kernels", op->name);
	for (const struct slp_row *row = op->rows; row && row->types; row++) {
		if (!GPU_ROWS && !row->cpu) continue;
		CHECK_SAYING(row->cpu || row->cuda, "%s has a row without kernels", op->name);
		CHECK_SAYING((row->cpu && row->types & ~cpu) || (row->cuda && row->types & ~cuda),
		             "%s has a row that is never chosen", op->name);
		if (row->cpu) cpu |= row->types;
		if (row->cuda) cuda |= row->types;
		all |= row->types;
	}
	CHECK_SAYING((all & SLP_F32) || !(all & (SLP_FLOATS | SLP_HALVES)) || all == SLP_F64,
	             "%s takes floats, but not float32", op->name);
}

static void check_consistent(const struct sl_op *op)
{
	int named = op->period ? op->period : op->nin_max < 16 ? op->nin_max : 16;
	unsigned inputs = (1u << named) - 1, outputs = (1u << op->nout) - 1;
	CHECK_SAYING(op->infer && op->ref, "%s lacks infer or ref", op->name);
	CHECK_SAYING((op->saves & ~(inputs | outputs << 16)) == 0, "%s saves what it has not", op->name);
	CHECK_SAYING((op->mutates & ~inputs) == 0, "%s mutates what it has not", op->name);
	CHECK_SAYING(op->grad || !op->saves, "%s saves for a gradient that it has not", op->name);
	check_rows(op);
	CHECK_SAYING(op->inplace <= op->nout && op->inplace <= op->nin_min, "%s cannot run in place", op->name);
	CHECK_SAYING(slp_op_find(op->name) == op, "two operations are called %s", op->name);
}

static void test_registry(void)
{
	int n = 0;
	for (const struct sl_op **op = slp_ops; *op; op++, n++) {
		check_documented(*op);
		check_sizes(*op);
		check_consistent(*op);
	}
	CHECK(n == slp_op_count());
	CHECK(slp_op_find("no such operation") == NULL);
}

/* ---- suites ------------------------------------------------------------------------------------------------------ */

static int start(int teams)
{
	struct sl_config config = {.teams = teams};
	if (sl_init(&config) != SL_OK) return 1;
	memset(devices, 0, sizeof devices);
	int n = 0, cpus = sl_device_count(SL_DEVICE_CPU), gpus = sl_device_count(SL_DEVICE_GPU);
	for (int i = 0; i < cpus && !gpu_cases(); i++) devices[n++] = sl_cpu(i);
	for (int i = 0; i < gpus; i++) devices[n++] = sl_gpu(i);
	return 0;
}

static int start_one(void)
{
	return start(1);
}

static int start_two(void)
{
	return start(2);
}

static int stop(void)
{
	sl_shutdown();
	return 0;
}

/* A test for each operation. */
static struct slp_test *tests_of_operations(void)
{
	struct slp_test *tests = calloc((size_t)slp_op_count() + 1, sizeof *tests);
	for (int i = 0; tests && slp_ops[i]; i++) tests[i] = (struct slp_test){slp_ops[i]->name, test_operation};
	return tests;
}

static const struct slp_test registry_tests[] = {
        {"documented and consistent", test_registry}, {"every operation has cases", test_cases_complete}, {0}};
static const struct slp_test team_tests[] = {{"the same bits on two teams", test_teams}, {0}};

int main(int argc, char **argv)
{
	struct slp_test *operations = tests_of_operations();
	int status =
	        operations
	                ? slp_test_main(
	                          argc, argv,
	                          (const struct slp_suite[]){
	                                  {.name = "registry", .tests = registry_tests},
	                                  {.name = "operation", .tests = operations, .start = start_one, .stop = stop},
	                                  {.name = "teams", .tests = team_tests, .start = start_two, .stop = stop},
	                                  {0},
	                          })
	                : 1;
	free(operations);
	return status;
}
