/* Attention by operations that have gradients, for second derivatives: with the whole matrix of weights. */
#include <math.h>

#include "attention.h"
#include "op_list/binary.h"
#include "starling/arithmetic.h"
#include "starling/elementwise.h"
#include "starling/primitives.h"

/* -inf above the diagonal of causal attention, else 0: the logarithms of 0 and 1. */
static sl_tensor *hidden_keys(const struct slp_grad *g, int64_t queries, int64_t keys)
{
	struct sl_make make = {sl_tensor_dtype(g->in[0]), sl_tensor_device(g->in[0])};
	sl_tensor *rows = sl_reshape_at(g->at, sl_arange_at(g->at, 0, (double)queries, 1, make), SL_SHAPE(queries, 1));
	sl_tensor *columns = sl_arange_at(g->at, 0, (double)keys, 1, make);
	return sl_log_at(g->at, sl_le_at(g->at, columns, rows));
}

/* A query that sees no key has weights 0: its scores are 0 first. */
static sl_tensor *weights_of(const struct slp_grad *g, sl_tensor *scores)
{
	static const int last = -1;
	struct sl_reduce_opts along = {&last, 1, true};
	sl_tensor *blind = sl_eq_scalar_at(g->at, sl_max_at(g->at, sl_detach_at(g->at, scores), along), -INFINITY);
	sl_tensor *seen = slp_apply1(g->at, &slp_op_take_unless, NULL, 2, (sl_tensor *[]){blind, scores});
	return sl_mul_at(g->at, sl_softmax_at(g->at, seen, -1), sl_rsub_scalar_at(g->at, blind, 1));
}

bool slp_attention_again(const struct slp_grad *g, sl_tensor **out)
{
	struct slp_attention_attrs a = *(const struct slp_attention_attrs *)g->attrs;
	sl_shape q = sl_tensor_shape(g->in[0]), k = sl_tensor_shape(g->in[1]);
	slp_attention_set_scale(&a, q);
	sl_tensor *scores = sl_matmul_at(g->at, g->in[0], g->in[1], (struct sl_dot_opts){.tb = true});
	scores = scores ? sl_mul_scalar_at(g->at, scores, a.scale) : NULL;
	if (g->nin > 3) scores = sl_add_at(g->at, scores, g->in[3]);
	if (a.causal) scores = sl_add_at(g->at, scores, hidden_keys(g, q.dim[q.ndim - 2], k.dim[k.ndim - 2]));
	sl_tensor *weights = scores ? weights_of(g, scores) : NULL;
	out[0] = weights ? sl_matmul_at(g->at, weights, g->in[2], (struct sl_dot_opts){0}) : NULL;
	return out[0] != NULL;
}
