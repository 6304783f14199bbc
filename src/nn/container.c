/* Blocks that contain blocks: chains, and residual blocks with a shortcut. */
#include <stdlib.h>
#include <string.h>

#include "nn/nn.h"
#include "op.h"
#include "runtime/fault.h"
#include "starling/nn.h"
#include "starling/arithmetic.h"

static void free_all(sl_block *const *blocks, int count)
{
	for (int i = 0; i < count; i++) sl_block_free(blocks[i]);
}

/* ---- sequential -------------------------------------------------------------------------------------------------- */

static sl_tensor *sequential_forward(sl_block *self, sl_tensor *const *in, int nin)
{
	const char *at = slp_forward_call_site();
	sl_tensor *x = slp_layer_input(self, in, nin);
	if (x && !sl_block_children(self)) return sl_reshape_at(at, x, sl_tensor_shape(x));
	for (int i = 0; x && i < sl_block_children(self); i++) x = sl_forward_at(at, sl_block_child(self, i), &x, 1);
	return x;
}

static enum sl_status sequential_shards(sl_block *self, int n, sl_tensor *const *x, sl_tensor **y)
{
	const char *at = slp_forward_call_site();
	enum sl_status s = SL_OK;
	memmove(y, x, (size_t)n * sizeof *y);
	for (int i = 0; s == SL_OK && i < sl_block_children(self); i++)
		s = sl_forward_shards_at(at, sl_block_child(self, i), n, y, y);
	return s;
}

/* Adds child after child; the remaining ones are freed after an error. */
static bool add_all(const char *at, sl_block *self, const char *const *names, sl_block *const *children, int count)
{
	for (int i = 0; i < count; i++) {
		if (sl_block_add_at(at, self, names ? names[i] : NULL, children[i])) continue;
		free_all(children + i + 1, count - i - 1);
		return false;
	}
	return true;
}

/* A chain of blocks: the first gets the input, each other one the result before it; sl_block_add(block, NULL, child)
 * appends more.  The new block owns its children; their paths are "0", "1", ….  If one of them is NULL after an earlier
 * mistake, the others are freed and the result is NULL.
 *
 *     sl_block *net = sl_sequential(sl_dense(256, .activation = SL_RELU), sl_dense(10)); */
sl_block *sl_sequential_at(const char *at, sl_block *const *children, int count)
{
	SLP_CALL("sl_sequential", at);
	sl_block *s = slp_layer_new(at, sizeof *s, "Sequential", "sequential", sequential_forward);
	if (!s) free_all(children, count);
	if (s) s->forward_shards = sequential_shards;
	if (!s || add_all(at, s, NULL, children, count)) return s;
	sl_block_free(s);
	return NULL;
}

/* ---- residual ---------------------------------------------------------------------------------------------------- */

struct residual {
	sl_block base;
	sl_block *body, *shortcut;
	enum sl_activation activation;
};

static sl_tensor *residual_forward(sl_block *self, sl_tensor *const *in, int nin)
{
	struct residual *r = (struct residual *)self;
	const char *at = slp_forward_call_site();
	sl_tensor *x = slp_layer_input(self, in, nin);
	if (!x) return NULL;
	sl_tensor *y = sl_forward_at(at, r->body, &x, 1);
	if (r->shortcut) x = sl_forward_at(at, r->shortcut, &x, 1);
	return slp_layer_activate(sl_add_at(at, y, x), r->activation);
}

static enum sl_status residual_shards(sl_block *self, int n, sl_tensor *const *x, sl_tensor **y)
{
	struct residual *r = (struct residual *)self;
	const char *at = slp_forward_call_site();
	sl_tensor **beside = slp_malloc((size_t)n * sizeof *beside);
	if (!beside) return slp_error_set(SL_ENOMEM, "sl_forward_shards: no memory");
	memcpy(beside, x, (size_t)n * sizeof *beside);
	enum sl_status s = sl_forward_shards_at(at, r->body, n, x, y);
	if (s == SL_OK && r->shortcut) s = sl_forward_shards_at(at, r->shortcut, n, beside, beside);
	for (int i = 0; s == SL_OK && i < n; i++)
		if (!(y[i] = slp_layer_activate(sl_add_at(at, y[i], beside[i]), r->activation))) s = sl_error();
	free(beside);
	return s;
}

/* activation(body(x) + x), or activation(body(x) + shortcut(x)): shortcut may be NULL.  The new block owns both, as
 * "body" and "shortcut"; after an error they are freed: SL_EINVAL, no such activation.  K. He, X. Zhang, S. Ren, J.
 * Sun, "Deep residual learning for image recognition", CVPR 2016.
 *
 *     sl_block *r = sl_residual(sl_sequential(sl_conv2d_layer(64, .kernel = {3}, .pad = {1, 1}), …),
 *                               sl_conv2d_layer(64, .kernel = {1}), SL_RELU); */
sl_block *sl_residual_at(const char *at, sl_block *body, sl_block *shortcut, enum sl_activation activation)
{
	SLP_CALL("sl_residual", at);
	static const char *const names[] = {"body", "shortcut"};
	sl_block *const children[] = {body, shortcut};
	struct residual *r = NULL;
	int count = shortcut ? 2 : 1;
	if ((unsigned)activation >= SL_ACTIVATIONS)
		slp_call_fail(at, "sl_residual", SL_EINVAL, "%d is not an activation", (int)activation);
	else if (shortcut || sl_error() == SL_OK) /* no shortcut after a mistake: it was to be one */
		r = slp_layer_new(at, sizeof *r, "Residual", "residual", residual_forward);
	if (!r) free_all(children, 2);
	if (!r) return NULL;
	*r = (struct residual){r->base, body, shortcut, activation};
	r->base.forward_shards = residual_shards;
	if (add_all(at, &r->base, names, children, count)) return &r->base;
	sl_block_free(&r->base);
	return NULL;
}
