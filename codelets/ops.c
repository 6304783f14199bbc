/* The table of all operations: those of ops.def, then those that programs register. */
#include <stdatomic.h>
#include <string.h>

#include "op_list/all.h"

const struct sl_op *slp_ops[SLP_MAX_OPS + 1] = {
#define X(name) &slp_op_##name,
#include "ops.def"
#undef X
};

enum {
	BUILT_IN = 0
#define X(name) +1
#include "ops.def"
#undef X
};
static _Atomic int count = BUILT_IN;

int slp_op_count(void)
{
	return atomic_load_explicit(&count, memory_order_acquire);
}

bool slp_ops_append(const struct sl_op *op)
{
	int n = slp_op_count();
	if (n == SLP_MAX_OPS) return false;
	slp_ops[n] = op;
	atomic_store_explicit(&count, n + 1, memory_order_release);
	return true;
}

const struct sl_op *slp_op_find(const char *name)
{
	for (int i = 0, n = slp_op_count(); i < n; i++)
		if (!strcmp(slp_ops[i]->name, name)) return slp_ops[i];
	return NULL;
}

int slp_op_number(const struct sl_op *op)
{
	static _Thread_local const struct sl_op *last;
	static _Thread_local int number;
	if (op == last) return number;
	for (int i = 0, n = slp_op_count(); i < n; i++)
		if (slp_ops[i] == op) {
			last = op;
			return number = i;
		}
	return -1;
}

/* Families and the operations that follow each, up to the next one. */
static const struct {
	const struct sl_op *op; /* NULL: a family begins */
	unsigned colour;
	const char *family;
} list[] = {
#define FAMILY(name, colour) {NULL, colour, #name},
#define X(name) {.op = &slp_op_##name},
#include "ops.def"
#undef X
};

enum { LISTED = sizeof list / sizeof *list };

/* LISTED: a program's own operation. */
static size_t family_of(const struct sl_op *op)
{
	size_t family = 0, i = 0;
	for (; i < LISTED && list[i].op != op; i++)
		if (!list[i].op) family = i;
	return i < LISTED ? family : LISTED;
}

unsigned slp_op_colour(const struct sl_op *op)
{
	size_t i = family_of(op);
	return i < LISTED ? list[i].colour : 0x808080;
}

const char *slp_op_family(const struct sl_op *op)
{
	size_t i = family_of(op);
	return i < LISTED ? list[i].family : "OWN";
}
