/* The table of all operations, from ops.def. */
#include <string.h>

#include "op.h"

const struct sl_op *const slp_ops[] = {
#define X(name) &slp_op_##name,
#include "ops.def"
#undef X
	NULL,
};

int slp_op_count(void)
{
	return (int)(sizeof slp_ops / sizeof *slp_ops) - 1;
}

const struct sl_op *slp_op_find(const char *name)
{
	for (const struct sl_op *const *op = slp_ops; *op; op++)
		if (!strcmp((*op)->name, name)) return *op;
	return NULL;
}

/* Families and the operations that follow each, up to the next one. */
static const struct {
	const struct sl_op *op; /* NULL: here a family begins */
	unsigned colour;
	const char *family;
} list[] = {
#define FAMILY(name, colour) {NULL, colour, #name},
#define X(name) {.op = &slp_op_##name},
#include "ops.def"
#undef X
};

static size_t family_of(const struct sl_op *op)
{
	size_t family = 0;
	for (size_t i = 0; i < sizeof list / sizeof *list && list[i].op != op; i++)
		if (!list[i].op) family = i;
	return family;
}

unsigned slp_op_colour(const struct sl_op *op)
{
	return list[family_of(op)].colour;
}

const char *slp_op_family(const struct sl_op *op)
{
	return list[family_of(op)].family;
}
