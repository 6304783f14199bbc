/* Sums over several devices, added in pairs: the order does not depend on which device finishes first. */
#include "op_list/binary.h"
#include "runtime/task/priority.h"
#include "tensor/tensor.h"

/* Terms on one device are added there, so that only their sum is transferred. */
static sl_tensor *add_near(const char *at, sl_tensor *a, sl_tensor *b, sl_device device)
{
	if (!sl_device_equal(a->device, b->device)) {
		a = sl_place_at(at, a, device);
		b = sl_place_at(at, b, device);
	}
	return a && b ? slp_apply1(at, &slp_op_add, NULL, 2, (sl_tensor *[]){a, b}) : NULL;
}

static sl_tensor *sum(const char *at, sl_tensor **list, int count, sl_device device)
{
	for (int stride = 1; stride < count; stride *= 2)
		for (int i = 0; i + stride < count; i += 2 * stride)
			if (!(list[i] = add_near(at, list[i], list[i + stride], device))) return NULL;
	return sl_place_at(at, list[0], device);
}

sl_tensor *slp_tree_sum(const char *at, sl_tensor **list, int count, sl_device device)
{
	int outer = slp_level_enter(SLP_LEVEL_SUM);
	sl_tensor *t = sum(at, list, count, device);
	slp_level_leave(outer);
	return t;
}
