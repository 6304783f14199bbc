/* Whole steps on batches padded to the sizes of buckets: a mask, an input of the program, weights their losses. */
#include <stdlib.h>
#include <string.h>

#include "starling/arithmetic.h"
#include "starling/primitives.h"
#include "train/step.h"
#include "train/train.h"

int64_t slp_step_rows(const struct slp_step_run *r, int shard)
{
	const struct slp_padding *f = r->padding ? &r->padding[shard] : NULL;
	if (f && f->which & 1 && f->axis == 0) return f->length;
	return slp_rows_of(slp_step_shard(r, shard)[0]->type.shape);
}

/* ---- the mask ---------------------------------------------------------------------------------------------------- */

/* The weight of each element along the axis: 1 for rows, which the trainer counts; otherwise padded size / length. */
static sl_tensor *mask_of(const struct slp_step_run *r, const struct slp_padding *f, sl_device device)
{
	double *values = slp_calloc((size_t)f->size, sizeof *values);
	if (!values) return slp_call_fail(r->at, r->function, SL_ENOMEM, "no memory for a step");
	bool rows = (f->axis == 0 && f->which & 1) || r->step->opts.reduction == SL_REDUCTION_SUM;
	for (int64_t i = 0; i < f->length; i++) values[i] = rows ? 1 : (double)f->size / (double)f->length;
	sl_tensor *mask = sl_from_at(r->at, values, SL_SHAPE(f->size), (struct sl_make){SL_FLOAT64, device});
	free(values);
	return mask;
}

sl_tensor *slp_step_mask(const char *at, const struct slp_follows *follows, sl_tensor *mask, sl_tensor *losses,
                         sl_tensor *weights)
{
	sl_shape shape = sl_tensor_shape(losses);
	if (!sl_tensor_size(losses))
		return sl_zeros_at(at, shape, (struct sl_make){sl_tensor_dtype(losses), sl_tensor_device(losses)});
	int64_t runs = follows->runs ? follows->runs : 1, size = sl_tensor_size(mask), outer = runs;
	for (int i = 0; i < follows->axis; i++) outer *= shape.dim[i];
	sl_shape parts = SL_SHAPE(outer, size, sl_tensor_size(losses) / outer / size);
	mask = sl_cast_at(at, sl_reshape_at(at, mask, SL_SHAPE(1, size, 1)), sl_tensor_dtype(losses));
	mask = sl_reshape_at(at, sl_broadcast_to_at(at, mask, parts), shape);
	return weights ? sl_mul_at(at, weights, mask) : mask;
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

/* Puts the filled-up tensors of a shard, and its mask, in its place of the batch. */
static bool fill_shard(const struct slp_step_run *from, const struct slp_step_run *r, int shard)
{
	const struct slp_padding *f = &r->padding[shard];
	sl_tensor *const *in = slp_step_shard(from, shard), **out = r->owned + (slp_step_shard(r, shard) - r->batch);
	int n = r->nin + r->ntargets;
	bool ok = true;
	SL_PAUSE
		SL_SCOPE {
			ok = slp_pad(r->at, f, n, in, out);
			for (int i = 0; i < n; i++) out[i] = ok ? sl_retain(out[i]) : NULL;
			if (ok && f->which) ok = (out[n] = sl_retain(mask_of(r, f, sl_tensor_device(out[0])))) != NULL;
		}
	return ok;
}

/* Chooses the buckets; *any: whether there is one. */
static bool choose(const struct slp_step_run *from, struct slp_padding *padding, bool *any)
{
	for (int i = 0; i < from->n; i++) {
		sl_tensor *const *in = slp_step_shard(from, i);
		int n = from->nin + from->ntargets;
		for (int k = 0; k < n; k++)
			if (!slp_tensor_usable(from->at, from->function, in[k])) return false;
		const struct sl_buckets *b = &from->step->opts.buckets;
		if (!slp_padding_of(from->at, from->function, b, n, in, &padding[i])) return false;
		*any |= padding[i].which != 0;
	}
	return true;
}

bool slp_step_filled(struct slp_step_run *from, bool (*go)(struct slp_step_run *))
{
	if (!from->step->opts.buckets.sizes[0]) return go(from);
	size_t n = (size_t)from->n, each = (size_t)(from->nin + from->ntargets) + 1;
	struct slp_padding *padding = slp_calloc(n, sizeof *padding);
	struct slp_step_run r = *from;
	r.batch = r.owned = slp_calloc(n * each, sizeof *r.owned);
	bool any = false, ok = padding && r.owned;
	if (!ok) slp_call_fail(r.at, r.function, SL_ENOMEM, "no memory for a step");
	ok = ok && choose(from, padding, &any);
	r.padding = padding;
	for (int i = 0; ok && any && i < r.n; i++) ok = fill_shard(from, &r, i);
	ok = ok && go(any ? &r : from);
	if (any) from->first = r.first;
	for (size_t i = 0; r.owned && i < n * each; i++) sl_release(r.owned[i]);
	free(r.owned);
	free(padding);
	return ok;
}

bool slp_step_unpad(const struct slp_step_run *r, int shard, const struct slp_compiled *c, sl_tensor **heads)
{
	if (!c->filled) return true;
	bool ok = true;
	for (int i = 0; ok && i <= c->nresults; i++) {
		sl_tensor *cut = NULL;
		SL_PAUSE
			SL_SCOPE
				cut = sl_retain(slp_unpad(r->at, &r->padding[shard], c->follows[i], heads[i]));
		if (!slp_scope_is_open()) sl_release(heads[i]);
		ok = (heads[i] = cut ? slp_scope_add(cut) : NULL) != NULL;
	}
	return ok;
}
