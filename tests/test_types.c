/* Every operation with every type of integers: its cases, with whole numbers in the place of floats.  What is taken is
 * compared with the reference in double precision on the same numbers; what is refused says which types are taken.
 * (Floats and half types: test_ops.c.  Two types in one call: test_mixed.c.) */
#include <math.h>
#include <string.h>

#include "check.h"
#include "op_case.h"

#define OF_FLOAT(symbol)
#define OF_INT(symbol) symbol,
#define OF_BOOL OF_INT
static const enum sl_dtype integers[] = {
#define X(symbol, name, type, kind, ...) OF_##kind(symbol)
        SL_DTYPE_LIST(X)
#undef X
};
enum { TYPES = sizeof integers / sizeof *integers };

static struct {
	int taken[TYPES], refused[TYPES];
} count;

static const double lowest[SL_DTYPE_COUNT] = {
#define X(symbol, name, type, kind, compute, low, high, ...) [symbol] = low,
        SL_DTYPE_LIST(X)
#undef X
};
static const double highest[SL_DTYPE_COUNT] = {
#define X(symbol, name, type, kind, compute, low, high, ...) [symbol] = high,
        SL_DTYPE_LIST(X)
#undef X
};

/* A number that each of the types can hold, not far from x. */
static double whole(double x, enum sl_dtype type)
{
	double v = lowest[type] < 0 ? trunc(x) : fabs(trunc(x));
	return type == SL_BOOL ? v != 0 : fmin(fmax(v, -100), 100);
}

/* Cases of larger inputs are for make check-long. */
static bool tried(const struct slp_case *c)
{
	int64_t elements = 0;
	for (int i = 0; i < c->nin; i++) elements += sl_shape_size(c->in[i].shape);
	return !c->reject && !c->own_types && (elements < 20000 || slp_long());
}

/* The case with whole numbers for floats; false: it has none. */
static bool make_whole(struct slp_case *k, const struct slp_case *c, enum sl_dtype type)
{
	bool any = false;
	*k = *c;
	for (int i = 0; i < c->nin; i++) {
		struct slp_case_input *in = &k->in[i];
		if (in->dtype != SL_FLOAT32) continue;
		any = true;
		in->dtype = type;
		for (int v = 0; v < in->nvalues; v++) in->values[v] = whole(in->values[v], type);
		if (!(in->low < in->high)) continue;
		in->low = lowest[type] < 0 ? floor(in->low) : 0;
		in->high = type == SL_BOOL ? 2 : fmax(ceil(in->high), in->low + 2);
	}
	return any;
}

/* The same numbers in double precision. */
static bool make_wide(struct slp_operands *wide, const struct slp_case *c, const struct slp_operands *from)
{
	if (slp_operands_make(wide, c, SL_FLOAT64, SL_FLOAT64) != SL_OK) return false;
	for (int i = 0; i < from->nin; i++)
		for (int64_t e = 0; e < slp_size(&from->in[i]); e++) slp_set(&wide->in[i], e, slp_get(&from->in[i], e));
	return slp_operands_run(wide, wide->op->ref) == SL_OK;
}

/* A real result as a type holds it: integers are rounded towards 0, and saturate; NaN is 0. */
static double held(double x, enum sl_dtype type)
{
	if (slp_is_float(type)) return x;
	if (type == SL_BOOL) return x != 0;
	return x != x ? 0 : fmin(fmax(trunc(x), lowest[type]), highest[type]);
}

static void compare(struct slp_place_of_test at, const struct slp_view *got, const struct slp_view *expected)
{
	double tolerance = slp_is_float(got->type.dtype) ? 1e-5 : 0;
	for (int64_t e = 0; e < slp_size(got); e++) {
		double a = slp_get(got, e), b = held(slp_get(expected, e), got->type.dtype);
		if (fabs(a - b) <= tolerance * fmax(1, fabs(b)) || (a != a && b != b)) continue;
		slp_case_fail(at, "%s: element %lld is %.17g, in double precision %.17g",
		              sl_dtype_name(got->type.dtype), (long long)e, a, b);
		return;
	}
	slp_check(true, "op", 0, "values");
}

static void check_taken(struct slp_place_of_test at, const struct slp_case *c, struct slp_operands *o)
{
	struct slp_operands wide;
	bool known = make_wide(&wide, c, o);
	sl_error_clear();
	if (slp_operands_compute(o) != SL_OK) slp_case_fail(at, "%s", sl_error_message());
	for (int i = 0; known && i < o->nout; i++) compare(at, &o->out[i], &wide.out[i]);
	slp_operands_free(&wide);
}

/* The message names what the operation takes. */
static void check_refused(struct slp_place_of_test at)
{
	const char *message = sl_error_message();
	bool says = strstr(message, at.c->op) &&
	            (strstr(message, "float") || strstr(message, "int") || strstr(message, "type"));
	if (sl_error() != SL_EDTYPE || !says) slp_case_fail(at, "refused with: %s", message);
	else slp_check(true, "op", 0, "refused");
}

static void check_case(const struct slp_case *c, int type)
{
	struct slp_place_of_test at = {c, "cpu", sl_dtype_name(integers[type])};
	struct slp_case k;
	struct slp_operands o;
	if (!make_whole(&k, c, integers[type])) return;
	at.c = &k;
	enum sl_status s = slp_operands_make(&o, &k, SL_FLOAT32, SL_FLOAT32);
	bool row = s == SL_OK && slp_kernel_for(o.op, slp_operands_types(&o), SL_DEVICE_CPU).kernel;
	if (row) check_taken(at, c, &o);
	else if (s != SL_OK) check_refused(at);
	(row ? count.taken : count.refused)[type]++;
	sl_error_clear();
	slp_operands_free(&o);
}

static void test_integers(void)
{
	for (const struct slp_case *const *t = slp_case_tables; *t; t++)
		for (const struct slp_case *c = *t; c->op; c++)
			for (int type = 0; type < TYPES && tried(c); type++) check_case(c, type);
	for (int type = 0; type < TYPES; type++)
		CHECK_SAYING(count.taken[type] > 20 && count.refused[type] > 100, "%s: %d cases taken, %d refused",
		             sl_dtype_name(integers[type]), count.taken[type], count.refused[type]);
}

static const struct slp_test tests[] = {{"integers", test_integers}, {0}};

int main(int argc, char **argv)
{
	return slp_test_main(
	        argc, argv,
	        (const struct slp_suite[]){
	                {.name = "types", .tests = tests, .start = slp_start_engine, .stop = slp_stop_engine}, {0}});
}
