/* The end of a backward pass: sums become the gradients of leaves, or results. */
#include <math.h>
#include <stdlib.h>

#include "autograd/blank.h"
#include "autograd/walk.h"
#include "runtime/fault.h"
#include "runtime/gate.h"
#include "runtime/task/storage.h"
#include "starling/arithmetic.h"
#include "starling/primitives.h"

/* Adds the devices' contributions to a leaf; the walk met the last shard first. */
static enum sl_status join(const struct walk *w, struct slp_var *v)
{
	int count = 0;
	sl_tensor **list = slp_malloc(((size_t)w->npartials + 1) * sizeof *list);
	if (!list) return slp_error_set(SL_ENOMEM, "sl_backward: no memory");
	list[count++] = v->sum;
	for (int i = w->npartials; i-- > 0;)
		if (w->partials[i].leaf == v) list[count++] = w->partials[i].sum;
	sl_tensor *sum = count > 1 ? slp_tree_sum(w->at, list, count, v->owner.kind ? v->owner : v->device) : v->sum;
	free(list);
	if (!sum) return sl_error();
	sl_retain(sum);
	sl_release(v->sum);
	v->sum = sum;
	return SL_OK;
}

static bool gathers(const struct slp_var *v)
{
	return v->fresh && v->gathered < v->gather;
}

/* A recorded sum shares its memory with what was recorded: the gradient gets its history, too. */
static enum sl_status store_history(const struct walk *w, struct slp_var *v)
{
	sl_tensor *sum = v->sum;
	if (v->req == SL_GRAD_ADD || gathers(v)) {
		sl_tensor *before = v->grad->var ? v->grad : slp_scope_add(slp_tensor_alias(v->grad, true));
		sum = before ? sl_add_at(w->at, before, sum) : NULL;
	} else if (sum->type.dtype != v->grad->type.dtype) {
		sum = sl_cast_at(w->at, sum, v->grad->type.dtype);
	}
	if (!sum) return sl_error();
	slp_storage_retain(sum->storage);
	slp_storage_release(atomic_exchange(&v->grad->storage, sum->storage));
	v->grad->offset = sum->offset;
	if (sum->var) slp_var_retain(sum->var);
	struct slp_var *old = atomic_exchange(&v->grad->var, sum->var);
	if (old) slp_var_release(old);
	v->grad->gradient = false;
	return SL_OK;
}

/* An earlier pass recorded the gradient: this one does not. */
static void forget_history(sl_tensor *grad)
{
	struct slp_var *old = atomic_exchange(&grad->var, NULL);
	if (!old) return;
	slp_var_release(old);
	grad->gradient = true;
}

/* Puts the sum into the leaf's gradient: takes over its memory if nothing else refers to it. */
static enum sl_status store(const struct walk *w, struct slp_var *v)
{
	if (v->sum->symbol) {
		sl_release(v->grad);
		v->grad = sl_retain(v->sum);
		return SL_OK;
	}
	if (w->again) return slp_blank_fill(w->at, v->grad) ? store_history(w, v) : sl_error();
	if (v->grad->var) forget_history(v->grad);
	if ((v->req == SL_GRAD_ADD || gathers(v)) && !slp_blank_fill(w->at, v->grad)) return sl_error();
	if (v->req == SL_GRAD_ADD || gathers(v)) return sl_add_inplace_at(w->at, v->grad, v->sum) ? SL_OK : sl_error();
	bool ours = v->grad->offset == 0 && atomic_load(&v->sum->refs) == 1 &&
	            atomic_load(&v->sum->storage->refs) == 1 && v->sum->offset == 0 &&
	            sl_tensor_bytes(v->sum) == v->sum->storage->bytes;
	if (!ours) return slp_blank_copy(w->at, v->grad, v->sum) ? SL_OK : sl_error();
	struct slp_storage *old = v->grad->storage;
	v->grad->storage = v->sum->storage;
	v->sum->storage = old;
	return SL_OK;
}

void slp_walk_free(struct walk *w)
{
	free(w->nodes);
	free(w->leaves);
	for (int i = 0; i < w->npartials; i++) sl_release(w->partials[i].sum);
	free(w->partials);
	for (int i = 0; i < w->ninside; i++) slp_var_release(w->inside[i]);
	free(w->inside);
}

/* Sums that have been used: some have the memory of gradients from before now, which another thread may look at. */
struct used {
	int count;
	sl_tensor *list[];
};

static void free_used(void *used)
{
	struct used *u = used;
	for (int i = 0; i < u->count; i++) sl_release(u->list[i]);
	free(u);
}

/* The place where a wanted leaf's gradient goes. */
static void give(const struct walk *w, const struct slp_var *v)
{
	for (int i = 0; i < w->nwants; i++)
		if (w->wants[i]->var == v) w->given[i] = sl_retain(v->sum);
}

enum sl_status slp_store_all(const struct walk *w, enum sl_status s)
{
	struct used *used = w->nleaves ? slp_try_malloc(sizeof *used + (size_t)w->nleaves * sizeof *used->list) : NULL;
	if (used) used->count = 0;
	for (int i = 0; i < w->nleaves; i++) {
		struct slp_var *v = w->leaves[i];
		if (v->sum && s == SL_OK && w->npartials)
			SL_SCOPE
				s = join(w, v);
		if (v->sum && s == SL_OK && w->nwants) {
			give(w, v);
		} else if (v->sum && s == SL_OK) {
			bool adds = v->fresh && (v->req == SL_GRAD_ADD || gathers(v));
			s = store(w, v);
			v->scale = adds && v->scale != w->scale ? NAN : w->scale;
			v->gathered = gathers(v) ? v->gathered + 1 : 1;
			v->fresh = true;
		}
		if (used && v->sum) used->list[used->count++] = v->sum;
		else sl_release(v->sum);
		v->sum = NULL;
	}
	slp_later(free_used, used);
	return s;
}
