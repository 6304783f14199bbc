/* Mean and variance of a batch over all its shards, in all processes that train together, and their gradients.  Each
 * shard computes its own mean and the sum of squares about it; these are shifted to the common mean, so nothing
 * cancels: T.  F.  Chan, G.  H.  Golub, R.  J.  LeVeque, "Updating formulae and a pairwise algorithm for computing
 * sample variances", 1979.
 *
 * Every process gathers these figures of all shards and computes the same from them.  In the backward pass, the
 * gradients with respect to mean and variance are summed over all shards, and each process continues with its own:
 * one exchange in each direction.  So several processes get the bits of one process with all shards. */
#include <stdlib.h>

#include "autograd/autograd.h"
#include "dist/dist.h"
#include "nn/nn.h"
#include "op.h"
#include "starling/autograd.h"
#include "starling/arithmetic.h"
#include "starling/elementwise.h"
#include "starling/primitives.h"

/* One layer's pass: what its gradients need is copied. */
struct pass {
	const char *at;
	char name[48]; /* of the exchanges */
	int shards, ranks, rank;
	sl_device device; /* where mean and variance are computed */
};

static struct pass *pass_copy(const struct pass *p)
{
	struct pass *copy = slp_malloc(sizeof *copy);
	if (copy) *copy = *p;
	return copy;
}

/* Links results to an input by a backward function, which gets the pass. */
static bool link_results(const struct pass *p, sl_tensor *in, sl_tensor *const *out, int n,
                         sl_custom_backward *backward)
{
	struct pass *copy = pass_copy(p);
	struct sl_custom_gradient_opts o = {.backward = backward, .context = copy, .destroy = free};
	return copy && sl_custom_gradient_at(p->at, &in, 1, out, n, o) == SL_OK;
}

/* ---- from the shards of all processes ---------------------------------------------------------------------------- */

static enum sl_status own_rows(void *context, sl_tensor *const *dout, int nout, sl_tensor **din, int nin)
{
	const struct pass *p = context;
	(void)nout, (void)nin;
	din[0] = sl_rows_at(p->at, dout[0], (int64_t)p->rank * p->shards, ((int64_t)p->rank + 1) * p->shards);
	return din[0] ? SL_OK : sl_error();
}

/* (shards, 2, c) of this process to (shards × ranks, 2, c) of all: others add zeros. */
static sl_tensor *gather(const struct pass *p, sl_tensor *own)
{
	if (p->ranks == 1 || !own) return own;
	sl_shape shape = own->type.shape;
	shape.dim[0] *= p->ranks;
	sl_tensor *all = NULL;
	SL_PAUSE {
		all = sl_zeros_at(p->at, shape, (struct sl_make){own->type.dtype, p->device});
		sl_tensor *place =
		        sl_rows_at(p->at, all, (int64_t)p->rank * p->shards, ((int64_t)p->rank + 1) * p->shards);
		if (!sl_copy_inplace_at(p->at, place, own) ||
		    !slp_dist_sum(p->at, all, (struct slp_dist_what){.name = p->name}))
			all = NULL;
	}
	return all && link_results(p, own, &all, 1, own_rows) ? all : NULL;
}

/* ---- to the shards of all processes ------------------------------------------------------------------------------ */

static enum sl_status add_shards(void *context, sl_tensor *const *dout, int nout, sl_tensor **din, int nin)
{
	const struct pass *p = context;
	sl_tensor *list[SLP_TAPE_OUTPUTS];
	(void)nin;
	for (int i = 0; i < nout; i++) list[i] = dout[i];
	din[0] = slp_tree_sum(p->at, list, nout, p->device);
	return din[0] ? SL_OK : sl_error();
}

static enum sl_status add_processes(void *context, sl_tensor *const *dout, int nout, sl_tensor **din, int nin)
{
	const struct pass *p = context;
	(void)nout, (void)nin;
	din[0] = sl_clone_at(p->at, dout[0]);
	return slp_dist_sum(p->at, din[0], (struct slp_dist_what){.name = p->name}) ? SL_OK : sl_error();
}

/* A tensor of its own for each of n shards of x, on its device; their gradients are added in the tree, however many a
 * recorded call can have. */
static bool spread(const struct pass *p, sl_tensor *t, int n, sl_tensor *const *x, sl_tensor **out)
{
	sl_tensor *parts[SLP_TAPE_OUTPUTS] = {NULL};
	int each = 1, count = 0;
	while (each * SLP_TAPE_OUTPUTS < n) each *= SLP_TAPE_OUTPUTS;
	for (int first = 0; first < n; first += each) {
		SL_PAUSE
			parts[count] = sl_detach_at(p->at, each > 1 ? t : sl_place_at(p->at, t, x[first]->device));
		if (!parts[count++]) return false;
	}
	if (!link_results(p, t, parts, count, add_shards)) return false;
	for (int i = 0; i < count; i++) {
		int left = n - i * each;
		if (each == 1) out[i] = parts[i];
		else if (!spread(p, parts[i], left < each ? left : each, x + i * each, out + i * each)) return false;
	}
	return true;
}

static sl_tensor *of_all_processes(const struct pass *p, sl_tensor *t)
{
	sl_tensor *same = t;
	if (p->ranks == 1 || !t) return t;
	SL_PAUSE
		same = sl_detach_at(p->at, t);
	return same && link_results(p, t, &same, 1, add_processes) ? same : NULL;
}

/* ---- mean and variance ------------------------------------------------------------------------------------------- */

/* All axes but that of the channels, which stays in its place. */
static struct sl_reduce_opts over_batch(const sl_tensor *x)
{
	static const int axes[SL_MAX_NDIM] = {0, 2, 3, 4, 5, 6, 7};
	_Static_assert(SL_MAX_NDIM == 8, "the list of axes");
	return (struct sl_reduce_opts){axes, x->type.shape.ndim - 1, true};
}

static double count_of(const sl_tensor *x)
{
	return (double)sl_shape_size(x->type.shape) / (double)x->type.shape.dim[1];
}

/* A shard's own mean and the sum of squares about it: (1, 2, c). */
static sl_tensor *figures_of(const struct pass *p, sl_tensor *x)
{
	const char *at = p->at;
	sl_shape row = SL_SHAPE(1, 1, x->type.shape.dim[1]);
	sl_tensor *mean = sl_mean_at(at, x, over_batch(x));
	sl_tensor *squares = sl_sum_at(at, sl_square_at(at, sl_sub_at(at, x, mean)), over_batch(x));
	sl_tensor *both[] = {sl_reshape_at(at, mean, row), sl_reshape_at(at, squares, row)};
	return sl_place_at(at, sl_concat_at(at, both, 2, 1), p->device);
}

/* The statistics of all shards of this process, in the type of the computation. */
static sl_tensor *own_figures(const struct pass *p, sl_tensor *const *x)
{
	enum sl_dtype dtype = slp_promoted(x[0]->type.dtype);
	sl_tensor **list = slp_calloc((size_t)p->shards, sizeof *list);
	for (int i = 0; list && i < p->shards; i++)
		if (!(list[i] = figures_of(p, x[i]))) break;
	sl_tensor *all = list && list[p->shards - 1] ? sl_concat_at(p->at, list, p->shards, 0) : NULL;
	free(list);
	return all && dtype != all->type.dtype ? sl_cast_at(p->at, all, dtype) : all;
}

/* The number of elements of a channel in each shard, as a column: the same in all processes, which the name of the
 * exchange contains. */
static sl_tensor *counts(const struct pass *p, sl_tensor *const *x, enum sl_dtype dtype, double *all)
{
	int n = p->shards * p->ranks;
	double *list = slp_malloc((size_t)n * sizeof *list);
	if (!list) return NULL;
	*all = 0;
	for (int i = 0; i < n; i++) *all += list[i] = count_of(x[i % p->shards]);
	sl_tensor *t = sl_from_at(p->at, list, SL_SHAPE(n, 1), (struct sl_make){SL_FLOAT64, p->device});
	free(list);
	return sl_cast_at(p->at, t, dtype);
}

/* Mean and biased variance from the figures of all shards: (2, c). */
static sl_tensor *combine(const struct pass *p, sl_tensor *figures, sl_tensor *const *x)
{
	static const int first[] = {0};
	const struct sl_reduce_opts over_shards = {first, 1, true};
	const char *at = p->at;
	double all = 1;
	if (!figures) return NULL;
	sl_shape shape = SL_SHAPE(figures->type.shape.dim[0], figures->type.shape.dim[2]);
	sl_tensor *part[2], *count = counts(p, x, figures->type.dtype, &all);
	for (int i = 0; i < 2; i++) part[i] = sl_reshape_at(at, sl_slice_at(at, figures, 1, i, i + 1, 1), shape);
	sl_tensor *mean = sl_sum_at(at, sl_mul_at(at, part[0], sl_mul_scalar_at(at, count, 1 / all)), over_shards);
	sl_tensor *moved = sl_mul_at(at, sl_square_at(at, sl_sub_at(at, part[0], mean)), count);
	sl_tensor *squares = sl_sum_at(at, sl_add_at(at, part[1], moved), over_shards);
	sl_tensor *both[] = {mean, sl_mul_scalar_at(at, squares, 1 / all)};
	sl_tensor *stats = sl_concat_at(at, both, 2, 0);
	return stats && stats->type.dtype != x[0]->type.dtype ? sl_cast_at(at, stats, x[0]->type.dtype) : stats;
}

static void name_exchanges(struct pass *p, const char *layer, sl_tensor *const *x)
{
	int n = snprintf(p->name, sizeof p->name, "%.20s, rows", layer);
	for (int i = 0; i < p->shards && n > 0 && n < (int)sizeof p->name; i++)
		n += snprintf(p->name + n, sizeof p->name - (size_t)n, " %lld", (long long)x[i]->type.shape.dim[0]);
}

sl_tensor *slp_batch_statistics(const char *at, const char *layer, int n, sl_tensor *const *x, sl_tensor **stats)
{
	struct pass p = {
	        .at = at, .shards = n, .ranks = slp_forward.batch_is_local ? 1 : slp_dist.size, .device = x[0]->device};
	p.rank = p.ranks == 1 ? 0 : slp_dist.rank;
	name_exchanges(&p, layer, x);
	sl_tensor *all = combine(&p, gather(&p, own_figures(&p, x)), x), *shared = of_all_processes(&p, all);
	return shared && spread(&p, shared, n, x, stats) ? all : NULL;
}
