/* Makes expressions of elementwise functions (fused.c): which operations can be steps, and how their calls become
 * steps.
 *
 * A step of an operation that a program has registered names it by its place among all operations.  Its attributes are
 * written to the expression's numbers, so that they are printed and compared like all others. */
#include <math.h>
#include <string.h>

#include "fill/fill.h"
#include "fused.h"
#include "op_list/binary.h"
#include "op_list/unary.h"

/* ---- the functions of fused.def ---------------------------------------------------------------------------------- */

/* The operation of a step. */
static const struct sl_op *const functions[SLP_FUSED_CODES] = {
#define X(name) [SLP_FUSED_##name] = &slp_op_##name,
#include "fused.def"
#undef X
};

/* Operations with a number are steps of the function of two, one operand of which is the number. */
static const struct form {
	const struct sl_op *op;
	enum slp_fused_code code;
	bool swapped;
} forms[] = {
#define BINARY(name, ...) {&slp_op_##name##_scalar, SLP_FUSED_##name, false},
#define COMPARE BINARY
#define SWAPPED(name, of, ...) {&slp_op_##name##_scalar, SLP_FUSED_##of, true},
#include "binary.def"
};

enum { FORMS = sizeof forms / sizeof *forms };

static int code_of(const struct sl_op *op)
{
	for (int i = SLP_FUSED_END + 1; i < SLP_FUSED_CODES; i++)
		if (functions[i] == op) return i;
	return SLP_FUSED_END;
}

static const struct form *form_of(const struct sl_op *op)
{
	for (int i = 0; i < FORMS; i++)
		if (forms[i].op == op) return &forms[i];
	return NULL;
}

/* ---- operations of programs -------------------------------------------------------------------------------------- */

/* The number of doubles that its attributes take. */
static int attr_numbers(const struct sl_op *op)
{
	int n = 0;
	for (const struct slp_attr *a = op->attr_table; a && a->name; a++) n += (int)a->count;
	return n;
}

/* An integer attribute that doubles may not hold exactly. */
static bool is_exact(const struct slp_attr *a, double value)
{
	return a->kind != SLP_INT64 || fabs(value) < 0x1p53;
}

/* Numbers from a program's text may have any value. */
static int64_t whole_number(double number, int64_t least, int64_t most)
{
	if (!(number > (double)least)) return least;
	return number < (double)most ? (int64_t)number : most;
}

static void from_number(enum slp_attr_kind kind, double number, void *to)
{
	switch (kind) {
	case SLP_INT: *(int *)to = (int)whole_number(number, INT_MIN, INT_MAX); break;
	case SLP_INT64: *(int64_t *)to = whole_number(number, -(INT64_C(1) << 53), INT64_C(1) << 53); break;
	case SLP_DOUBLE: *(double *)to = number; break;
	case SLP_BOOL: *(bool *)to = number != 0; break;
	}
}

void slp_fused_unpack(const struct slp_fused_attrs *f, struct slp_fused_step s, void *attrs)
{
	const double *number = f->number + s.own - 1;
	for (const struct slp_attr *a = slp_ops[s.code]->attr_table; a && a->name; a++)
		for (unsigned i = 0; i < a->count; i++)
			from_number(a->kind, *number++, (char *)attrs + a->offset + i * slp_attr_size(a->kind));
}

/* Appends the attributes to the n numbers; false if they do not fit. */
static bool pack(struct slp_fused_attrs *f, int n, const struct sl_op *op, const void *attrs)
{
	if (n + attr_numbers(op) > SLP_FUSED_NUMBERS) return false;
	for (const struct slp_attr *a = op->attr_table; a && a->name; a++)
		for (unsigned i = 0; i < a->count; i++) {
			f->number[n] = slp_attr_value(a, attrs, i);
			if (!is_exact(a, f->number[n++])) return false;
		}
	return true;
}

/* ---- making an expression ---------------------------------------------------------------------------------------- */

bool slp_fused_takes(const struct sl_op *op)
{
	return code_of(op) || form_of(op);
}

const struct sl_op *slp_fused_function(struct slp_fused_step s)
{
	return s.own ? slp_ops[s.code] : functions[s.code];
}

bool slp_fused_step_exists(struct slp_fused_step s)
{
	if (!s.own) return s.code < SLP_FUSED_CODES;
	return s.code < slp_op_count() && slp_ops[s.code]->by_parts &&
	       s.own - 1 + attr_numbers(slp_ops[s.code]) <= SLP_FUSED_NUMBERS;
}

static int largest(int a, int b)
{
	return a > b ? a : b;
}

/* The number of numbers that an expression uses. */
static int numbers_of(const struct slp_fused_attrs *f)
{
	int n = 0;
	for (int i = 0; i < slp_fused_count(f); i++) {
		struct slp_fused_step s = slp_fused_step_at(f, i);
		n = largest(n, largest(s.a, s.b) + 1 - SLP_FUSED_NUMBER);
		if (s.own) n = largest(n, s.own - 1 + attr_numbers(slp_ops[s.code]));
	}
	return n;
}

/* The operand for a number; -1 if there is no room for one more. */
static int number_operand(struct slp_fused_attrs *f, double value)
{
	int i = 0, n = numbers_of(f);
	while (i < n && memcmp(&f->number[i], &value, sizeof value)) i++;
	if (i == SLP_FUSED_NUMBERS) return -1;
	f->number[i] = value;
	return SLP_FUSED_NUMBER + i;
}

/* The step; with code 0 if there is no room for it. */
static struct slp_fused_step step_of(struct slp_fused_attrs *f, const struct sl_op *op, const void *attrs, int a, int b)
{
	const struct slp_fused_step none = {0};
	int code = code_of(op);
	const struct form *form = code ? NULL : form_of(op);
	if (form) {
		int number = number_operand(f, ((const struct slp_value *)attrs)->value);
		if (number < 0) return none;
		return form->swapped ? (struct slp_fused_step){form->code, number, a, 0}
		                     : (struct slp_fused_step){form->code, a, number, 0};
	}
	if (op->nin_max == 1) b = a;
	if (code) return (struct slp_fused_step){code, a, b, 0};
	int n = numbers_of(f);
	int number = slp_op_number(op); /* which a step has eight bits for */
	if (!op->by_parts || number > UINT8_MAX || !pack(f, n, op, attrs)) return none;
	return (struct slp_fused_step){number, a, b, n + 1};
}

/* Adds a step; -1 if there is no room for it. */
static int add_step(struct slp_fused_attrs *f, struct slp_fused_step s)
{
	int n = slp_fused_count(f);
	if (n == SLP_FUSED_STEPS || !s.code) return -1;
	f->step[n] = s.code | s.a << 8 | s.b << 16 | s.own << 24;
	return SLP_FUSED_RESULT + n;
}

int slp_fused_add(struct slp_fused_attrs *f, const struct sl_op *op, const void *attrs, int a, int b)
{
	struct slp_fused_attrs with = *f;
	int result = add_step(&with, step_of(&with, op, attrs, a, b));
	if (result >= 0) *f = with;
	return result;
}

/* Operand v of a part, in the expression that it becomes a part of; -1 if there is no room for a number. */
static int moved(struct slp_fused_attrs *f, const struct slp_fused_attrs *part, const int *in, int first, int v)
{
	if (v >= SLP_FUSED_NUMBER) return number_operand(f, part->number[v - SLP_FUSED_NUMBER]);
	return v >= SLP_FUSED_RESULT ? v + first : in[v - SLP_FUSED_INPUT];
}

int slp_fused_append(struct slp_fused_attrs *f, const struct slp_fused_attrs *part, const int *in)
{
	struct slp_fused_attrs with = *f;
	int result = -1, first = slp_fused_count(f), count = slp_fused_count(part);
	for (int i = 0; i < count; i++) {
		struct slp_fused_step s = slp_fused_step_at(part, i);
		if (s.own) return -1;
		int a = moved(&with, part, in, first, s.a), b = moved(&with, part, in, first, s.b);
		if (a < 0 || b < 0) return -1;
		result = add_step(&with, (struct slp_fused_step){s.code, a, b, 0});
		if (result < 0) return -1;
	}
	if (result >= 0) *f = with;
	return result;
}
