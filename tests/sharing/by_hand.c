/* Calls that tests/misuse/generate does not write: what must be called in pairs, and what takes a block over. */
#include <stdlib.h>

#include "inner.h"
#include "pool.h"
#include "shared.h"

enum { MOST_CHILDREN = 6 };

static sl_tensor *use(sl_tensor *t)
{
	SL_SCOPE
		sl_wait(sl_add(t, t));
	return t;
}

/* ---- the engine -------------------------------------------------------------------------------------------------- */

static void init(void)
{
	if (sl_init(NULL) == SL_OK) sl_shutdown();
}

static void shut_down(void)
{
	sl_shutdown();
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

static sl_tensor *twice(sl_block *self, sl_tensor *const *in, int nin)
{
	(void)self;
	return nin ? sl_add(in[0], in[0]) : NULL;
}

static void block_init(void)
{
	sl_block *b = calloc(1, sizeof *b);
	if (!b || sl_block_init(b, "Twice", twice, NULL) != SL_OK) return free(b);
	SL_SCOPE
		sl_wait(sl_forward(b, any_tensor()));
	sl_block_free(b);
}

static void block_add(void)
{
	sl_block *to = changing_block();
	if (sl_block_children(to) < MOST_CHILDREN) sl_block_add(to, NULL, sl_flatten_layer());
}

static void block_replace(void)
{
	sl_block *child = sl_dense(2, .in_units = 3);
	sl_initialize(child);
	sl_block_replace(changing_block(), "1", child);
}

static void sequential(void)
{
	sl_block *s = sl_sequential(sl_block_retain(any_block()), sl_flatten_layer());
	SL_SCOPE
		sl_wait(sl_forward(s, any_tensor()));
	sl_block_free(s);
}

static void block_retain(void)
{
	sl_block *b = sl_block_retain(any_block());
	SL_SCOPE
		sl_wait(sl_forward(b, any_tensor()));
	sl_block_free(b);
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

static void retain(void)
{
	sl_release(use(sl_retain(any_tensor())));
}

static void values(void)
{
	sl_tensor *t = any_tensor();
	const volatile char *v = sl_values(t);
	if (!v) return;
	for (int64_t i = 0; i < sl_tensor_bytes(t); i++) (void)v[i];
	sl_values_end(t);
}

static void scope(void)
{
	sl_scope scope = {0};
	sl_scope_open(&scope);
	use(any_tensor());
	sl_scope_close(&scope);
}

static void mode(void)
{
	sl_mode mode;
	sl_mode_enter(&mode, sometimes(), sometimes());
	use(any_tensor());
	sl_mode_leave(&mode);
}

static void autocast(void)
{
	sl_autocast_mode mode;
	sl_autocast_enter(&mode, SL_BFLOAT16);
	SL_SCOPE
		sl_wait(sl_forward(any_block(), any_tensor()));
	sl_autocast_leave(&mode);
}

static void iteration(void)
{
	sl_iteration_push(below(100));
	use(any_tensor());
	sl_iteration_pop();
}

/* ---- kernels of the program's ------------------------------------------------------------------------------------ */

static void copy_range(void *given, int64_t begin, int64_t end)
{
	const struct sl_op_call *c = given;
	for (int64_t i = begin; i < end; i++) ((float *)c->out[0].data)[i] = ((const float *)c->in[0].data)[i];
}

static enum sl_status copy_or_fail(const struct sl_op_call *c)
{
	int64_t n = sl_shape_size(c->in[0].shape);
	sl_parallel_for(n, 1, copy_range, (void *)c);
	return n == 3 ? sl_op_fail(c, SL_EKERNEL, "three numbers are too few") : SL_OK;
}

static void own_kernel(void)
{
	const sl_op *op = sl_op_find("copy_or_fail");
	if (!op) op = sl_op_register(.name = "copy_or_fail", .args = "x", .nin = 1, .cpu = copy_or_fail);
	sl_tensor *x = any_tensor();
	SL_SCOPE
		sl_wait(sl_op_apply(op, &x, 1));
}

const struct one_call calls_by_hand[] = {{"sl_init_at", init},
                                         {"sl_shutdown", shut_down},
                                         {"sl_block_init_at", block_init},
                                         {"sl_block_add_at", block_add},
                                         {"sl_block_replace_at", block_replace},
                                         {"sl_sequential_at", sequential},
                                         {"sl_block_retain", block_retain},
                                         {"sl_retain", retain},
                                         {"sl_values_at", values},
                                         {"sl_scope_open", scope},
                                         {"sl_mode_enter", mode},
                                         {"sl_autocast_enter_at", autocast},
                                         {"sl_iteration_push", iteration},
                                         {"sl_parallel_for", own_kernel},
                                         {0}};
