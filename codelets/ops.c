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

unsigned slp_op_colour(const struct sl_op *op)
{
	static const struct {
		const struct sl_op *op;
		unsigned colour; /* from here on, where op is NULL */
	} list[] = {
#define FAMILY(name, colour) {NULL, colour},
#define X(name) {.op = &slp_op_##name},
#include "ops.def"
#undef X
	};
	unsigned colour = 0;
	for (size_t i = 0; i < sizeof list / sizeof *list && list[i].op != op; i++)
		if (!list[i].op) colour = list[i].colour;
	return colour;
}
