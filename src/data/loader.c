/* The loader: mini-batches of a data set, in order or shuffled, made ahead of their use.
 *
 * Where the data set is a tensor, batches are made by operations, on the device that asked for them, from the data set
 * as its files hold it (a quarter of the memory, and of what goes to a GPU, once).  Operations return at once: to
 * prefetch is to call them early and to keep their results in a ring.  Of other data sets a reader makes batches, in
 * main memory. */
#include <stdlib.h>
#include <string.h>

#include "data/dataset.h"
#include "data/loader.h"
#include "data/reader.h"
#include "dist/dist.h"
#include "op.h"
#include "op_inner.h"
#include "options.h"
#include "philox.h"
#include "runtime/device/device.h"
#include "runtime/engine.h"
#include "runtime/gate.h"
#include "runtime/guard.h"
#include "starling/data.h"
#include "tensor/tensor.h"

struct sl_loader {
	struct slp_guard guard;
	struct sl_loader_opts opts;
	sl_dataset *dataset;
	struct slp_reader *reader; /* NULL: operations make the batches */
	int64_t samples, batches;  /* of an epoch */
	uint64_t epoch;            /* from which batches are being made */
	int64_t made, taken;       /* batches of their epochs, made and handed out */
	uint64_t reading;          /* the epoch that batches are handed out of */
	int32_t *numbers;          /* the order of the epoch */
	bool ordered;              /* they are; otherwise they must be made */
	sl_tensor *order;          /* the same for operations; NULL: to be made */
	struct sl_batch *ring;     /* of prefetch + 1 batches, made by operations */
	int first, count;          /* batches made, or asked of the reader */
	uint32_t checksums[2];     /* of x and y, once requested */
	bool summed;
};

/* ---- order ------------------------------------------------------------------------------------------------------ */

/* A number below n, for step i of an epoch's shuffle; streams of operations do not have the top bit. */
static int64_t draw(const sl_loader *l, int64_t i, int64_t n)
{
	uint32_t w[4];
	slp_philox(l->opts.seed, l->epoch | 1ull << 63, (uint64_t)i, w);
	return (int64_t)((unsigned __int128)((uint64_t)w[0] << 32 | w[1]) * (uint64_t)n >> 64);
}

/* R. Durstenfeld, "Algorithm 235: random permutation", 1964. */
static void shuffle(const sl_loader *l)
{
	for (int64_t i = l->opts.limit - 1; i > 0; i--) {
		int64_t j = draw(l, i, i + 1);
		int32_t number = l->numbers[i];
		l->numbers[i] = l->numbers[j];
		l->numbers[j] = number;
	}
}

/* Without shuffling, one order serves all epochs. */
static const int32_t *numbers(sl_loader *l)
{
	if (l->ordered) return l->numbers;
	for (int64_t i = 0; i < l->opts.limit; i++) l->numbers[i] = (int32_t)i;
	if (l->opts.shuffle) shuffle(l);
	l->ordered = true;
	return l->numbers;
}

static sl_tensor *order(const char *at, sl_loader *l)
{
	struct sl_make make = {SL_INT32, l->opts.device};
	if (!l->order) l->order = sl_retain(sl_from_at(at, numbers(l), SL_SHAPE(l->opts.limit), make));
	return l->order;
}

static void forget_order(sl_loader *l)
{
	sl_release(l->order);
	l->order = NULL;
	l->ordered = false;
}

/* ---- making batches --------------------------------------------------------------------------------------------- */

/* Rows of a batch, the same for each of the ranks, which take them one after the other. */
static int64_t rows_of(const sl_loader *l, int64_t batch)
{
	int64_t left = l->opts.limit / l->opts.ranks - batch * l->opts.batch_size;
	return left < l->opts.batch_size ? left : l->opts.batch_size;
}

static int64_t first_row(const sl_loader *l, int64_t count)
{
	return l->made * l->opts.batch_size * l->opts.ranks + l->opts.rank * count;
}

static bool make_batch(const char *at, sl_loader *l, struct sl_batch *b)
{
	const double scale = 1 / 255.0;
	int64_t count = rows_of(l, l->made), begin = first_row(l, count);
	*b = (struct sl_batch){.index = l->made};
	SL_SCOPE {
		sl_tensor *o = order(at, l);
		if (!o) break;
		b->x = sl_retain(slp_batch_images(at, l->dataset->images, o, begin, count, scale));
		if (b->x) b->y = sl_retain(slp_batch_labels(at, l->dataset->labels, o, begin, count));
	}
	if (b->y) return true;
	sl_release(b->x);
	return false;
}

static void ask(sl_loader *l)
{
	int64_t count = rows_of(l, l->made);
	slp_reader_ask(l->reader, numbers(l) + first_row(l, count), count, l->opts.seed, l->epoch);
}

/* The oldest requested batch, as tensors. */
static bool fetch(const char *at, sl_loader *l, struct sl_batch *b)
{
	const void *data[2];
	const struct sl_array of[2] = {l->dataset->x, l->dataset->y};
	sl_tensor *t[2] = {NULL, NULL};
	int64_t rows;
	bool ok = slp_reader_wait(l->reader, at, &rows, &data[0], &data[1]);
	for (int i = 0; i < 2 && ok && data[i]; i++) {
		sl_shape shape = {of[i].shape.ndim + 1, {rows}};
		memcpy(shape.dim + 1, of[i].shape.dim, (size_t)of[i].shape.ndim * sizeof *shape.dim);
		SL_SCOPE
			t[i] = sl_retain(sl_from_at(at, data[i], shape, (struct sl_make){of[i].dtype, l->opts.device}));
		ok = t[i] != NULL;
		if (ok) slp_tensor_send(t[i]);
	}
	if (ok) {
		*b = (struct sl_batch){t[0], t[1], l->taken};
		return true;
	}
	sl_release(t[0]);
	return false;
}

/* One more batch in the ring: the next of the epoch, or the first of the next one. */
static bool make_one(const char *at, sl_loader *l)
{
	int slots = l->opts.prefetch + 1;
	if (l->reader) ask(l);
	else if (!make_batch(at, l, &l->ring[(l->first + l->count) % slots])) return false;
	l->count++;
	if (++l->made < l->batches) return true;
	l->made = 0;
	l->epoch++;
	if (l->opts.shuffle) forget_order(l);
	return true;
}

static void drop_ring(sl_loader *l)
{
	if (l->reader) slp_reader_clear(l->reader);
	for (int i = 0; i < l->count && !l->reader; i++) {
		struct sl_batch *b = &l->ring[(l->first + i) % (l->opts.prefetch + 1)];
		sl_release(b->x);
		sl_release(b->y);
	}
	l->count = 0;
}

/* ---- interface -------------------------------------------------------------------------------------------------- */

/* Puts in defaults; an error's text if the options make no sense. */
static bool check_opts(const char *at, const sl_dataset *d, struct sl_loader_opts *o)
{
	enum { MOST_AHEAD = 1 << 16, MOST_WORKERS = 1024 };
	if (o->batch_size < 1)
		slp_call_fail(at, "sl_loader_new", SL_EINVAL, "batch_size is %lld, 1 or more needed",
		              (long long)o->batch_size);
	else if (o->limit < 0)
		slp_call_fail(at, "sl_loader_new", SL_EINVAL, "limit is %lld, 0 or more needed", (long long)o->limit);
	else if (o->prefetch < 0 || o->prefetch > MOST_AHEAD)
		slp_call_fail(at, "sl_loader_new", SL_EINVAL, "prefetch is %d; it must be from 0 to %d", o->prefetch,
		              MOST_AHEAD);
	else if (o->workers < 0 || o->workers > MOST_WORKERS)
		slp_call_fail(at, "sl_loader_new", SL_EINVAL, "workers is %d; it must be from 0 to %d", o->workers,
		              MOST_WORKERS);
	else if (o->last != SL_LAST_KEEP && o->last != SL_LAST_DISCARD)
		slp_call_fail(at, "sl_loader_new", SL_EINVAL, "last is %d; it must be SL_LAST_KEEP or SL_LAST_DISCARD",
		              (int)o->last);
	else if (o->rank < 0 || o->ranks < 0 || o->rank >= (o->ranks ? o->ranks : 1))
		slp_call_fail(at, "sl_loader_new", SL_EINVAL, "rank is %d of %d ranks", o->rank, o->ranks);
	else {
		if (o->limit == 0 || o->limit > d->size) o->limit = d->size;
		if (o->prefetch == 0) o->prefetch = 2;
		if (o->ranks == 0) o->ranks = 1;
		int64_t needed = o->last == SL_LAST_KEEP ? o->ranks > 1 : o->batch_size;
		if (o->limit / o->ranks >= needed) return true;
		slp_call_fail(at, "sl_loader_new", SL_EINVAL, "%lld samples do not fill a batch of %lld%s",
		              (long long)o->limit, (long long)needed, o->ranks > 1 ? " for each rank" : "");
	}
	return false;
}

static void share(sl_loader *l, int rank, int ranks)
{
	bool keep = l->opts.last == SL_LAST_KEEP;
	int64_t own = l->opts.limit / ranks, size = l->opts.batch_size;
	l->opts.rank = rank;
	l->opts.ranks = ranks;
	l->batches = own / size + (keep && own % size);
	l->samples = keep ? own : l->batches * size;
}

/* Threads of a simulation are its own. */
static bool make_ring(sl_loader *l)
{
	const struct sl_loader_opts *o = &l->opts;
	int64_t rows = o->batch_size < o->limit ? o->batch_size : o->limit;
	if (l->dataset->images) l->ring = slp_calloc((size_t)o->prefetch + 1, sizeof *l->ring);
	else l->reader = slp_reader_new(l->dataset, sl_is_simulated() ? 0 : o->workers, o->prefetch + 1, rows);
	return l->ring || l->reader;
}

/* Mini-batches of a data set, one epoch after the other; see struct sl_loader_opts.  The same seed gives the same
 * orders and the same random transforms, whatever the seed of sl_seed and the number of workers.  The data set may be
 * freed before the loader.  With .rank and .ranks the loader is one of several with equal options except .rank, which
 * share the samples; sl_dist_share explains this, and sets both from this process's rank.  Free it with sl_loader_free.
 *
 *     sl_loader *l = sl_loader_new(train, .batch_size = 256, .shuffle = true, .device = sl_gpu(0));
 *
 * NULL with SL_EINVAL: options are out of range; SL_EDEVICE: no such device; SL_ENOMEM: no memory for prefetch + 1
 * batches. */
sl_loader *sl_loader_new_at(const char *at, sl_dataset *dataset, struct sl_loader_opts opts)
{
	SLP_CALL("sl_loader_new", at);
	if (!SLP_OPTIONS(sl_loader_opts, at, "sl_loader_new", &opts)) return NULL;
	if (!slp_given(at, "sl_loader_new", "data set", dataset)) return NULL;
	if (!check_opts(at, dataset, &opts)) return NULL;
	if (slp_engine_need(at) != SL_OK || slp_device_resolve(at, &opts.device) != SL_OK) return NULL;
	sl_loader *l = slp_calloc(1, sizeof *l);
	if (!l) return slp_call_fail(at, "sl_loader_new", SL_ENOMEM, "no memory for the loader");
	l->opts = opts;
	l->dataset = slp_dataset_hold(dataset);
	share(l, opts.rank, opts.ranks);
	l->numbers = slp_malloc((size_t)opts.limit * sizeof *l->numbers);
	if (l->numbers && make_ring(l)) return l;
	sl_loader_free(l);
	return NULL;
}

/* Shares the samples among the loaders of all processes, which must have equal options: each returns its own batch_size
 * rows of a batch of batch_size × sl_dist_size() rows.  Together they return the batches of a single loader with
 * batches of that size, in the same order; rows that cannot be shared equally are left out, so that all loaders return
 * the same number of batches, of the same sizes.  SL_ESTATE: the loader has returned a batch already; SL_EINVAL: fewer
 * samples than processes, or than a batch needs.
 */
enum sl_status sl_dist_share_at(const char *at, sl_loader *loader)
{
	SLP_CALL("sl_dist_share", at);
	if (!slp_given(at, "sl_dist_share", "loader", loader)) return sl_error();
	SLP_GUARD(&loader->guard, at, "sl_dist_share", SL_ESTATE);
	if (loader->count || loader->taken || loader->reading) {
		slp_call_fail(at, "sl_dist_share", SL_ESTATE, "the loader has returned batches already");
		return SL_ESTATE;
	}
	share(loader, slp_dist.rank, slp_dist.size);
	if (loader->samples) return SL_OK;
	share(loader, 0, 1);
	slp_call_fail(at, "sl_dist_share", SL_EINVAL, "there are too few samples for %d processes", slp_dist.size);
	return SL_EINVAL;
}

/* The function that gets the samples would wait for itself. */
static bool is_asking(const char *at, const char *function, const sl_loader *l)
{
	if (!l->reader || !slp_reader_is_asking(l->reader)) return false;
	slp_call_fail(at, function, SL_ESTATE, "called by the function that gets the loader's samples");
	return true;
}

static void loader_free(void *given)
{
	sl_loader *loader = given;
	drop_ring(loader);
	forget_order(loader);
	slp_reader_free(loader->reader);
	sl_dataset_free(loader->dataset);
	free(loader->numbers);
	free(loader->ring);
	free(loader);
}

/* Frees the loader, at any time; batches that it has returned stay valid.  NULL is ignored.  The function that gets its
 * samples must not call it: SL_ESTATE (sl_error()), without effect. */
void sl_loader_free(sl_loader *loader)
{
	if (!loader || is_asking(NULL, "sl_loader_free", loader)) return;
	slp_later(loader_free, loader);
}

/* The number of batches of an epoch; 0 for NULL. */
int64_t sl_loader_batches(const sl_loader *loader)
{
	return loader ? loader->batches : 0;
}

/* The number of samples of an epoch in this process (sl_dist_share), without discarded ones; 0 for NULL. */
int64_t sl_loader_samples(const sl_loader *loader)
{
	return loader ? loader->samples : 0;
}

/* After a mistake the epoch restarts. */
static bool give_up(sl_loader *l)
{
	drop_ring(l);
	l->made = l->taken = 0;
	if (l->epoch != l->reading && l->opts.shuffle) forget_order(l);
	l->epoch = l->reading;
	return false;
}

static bool take(const char *at, sl_loader *l, struct sl_batch *batch)
{
	if (l->reader) {
		if (!fetch(at, l, batch)) return false;
		slp_reader_drop(l->reader);
		return true;
	}
	*batch = l->ring[l->first];
	l->first = (l->first + 1) % (l->opts.prefetch + 1);
	return true;
}

static bool usable(const char *at, const sl_loader *l)
{
	if (slp_engine_need(at) != SL_OK || is_asking(at, "sl_loader_next", l)) return false;
	if (!l->reader || slp_reader_is_here(l->reader)) return true;
	slp_call_fail(at, "sl_loader_next", SL_ESTATE, "the loader's threads are in the process that was forked");
	return false;
}

/* The next batch: see struct sl_batch.  False at the end of an epoch, after which the next one begins, and after a
 * mistake (sl_error()), after which the epoch begins again.  The tensors belong to the innermost scope, which should be
 * one around each step; outside all scopes to the caller, who releases them.  SL_ESTATE in the child of a fork, and in
 * the function that gets the samples.
 *     for (bool more = true; more;) SL_SCOPE {
 *         struct sl_batch b;
 *         if ((more = sl_loader_next(l, &b))) train(b.x, b.y);
 *     } */
bool sl_loader_next_at(const char *at, sl_loader *loader, struct sl_batch *batch)
{
	SLP_CALL("sl_loader_next", at);
	sl_loader *l = loader;
	if (!l || !batch) {
		if (sl_error() == SL_OK)
			slp_call_fail(at, "sl_loader_next", SL_EINVAL, "the loader or the batch is NULL");
		return false;
	}
	*batch = (struct sl_batch){0};
	if (!usable(at, l)) return false;
	SLP_GUARD(&l->guard, at, "sl_loader_next", false);
	if (l->taken == l->batches) {
		l->taken = 0;
		l->reading++;
		return false;
	}
	while (l->count <= l->opts.prefetch)
		if (!make_one(at, l)) return give_up(l);
	if (!slp_scope_reserve(2) || !take(at, l, batch)) return give_up(l);
	l->count--;
	l->taken++;
	slp_scope_add(batch->x);
	if (batch->y) slp_scope_add(batch->y);
	return true;
}

/* Ends the current epoch, so that the next batch is the first of the next epoch: for a loop that ended early.  No
 * effect if the epoch has not returned a batch yet.  SL_ESTATE in the function that gets the samples.
 *
 *     for (int i = 0; i < 100 && sl_loader_next(l, &b); i++) train(b.x, b.y);
 *     sl_loader_end_epoch(l); */
enum sl_status sl_loader_end_epoch_at(const char *at, sl_loader *loader)
{
	SLP_CALL("sl_loader_end_epoch", at);
	if (!slp_given(at, "sl_loader_end_epoch", "loader", loader)) return sl_error();
	if (is_asking(at, "sl_loader_end_epoch", loader)) return sl_error();
	SLP_GUARD(&loader->guard, at, "sl_loader_end_epoch", SL_ESTATE);
	if (!loader->taken) return SL_OK;
	struct slp_loader_state next = {.seed = (int64_t)loader->opts.seed, .epoch = (int64_t)loader->reading + 1};
	slp_loader_set(loader, &next);
	return SL_OK;
}

/* ---- position ---------------------------------------------------------------------------------------------------- */

bool slp_loader_get(const char *at, sl_loader *loader, struct slp_loader_state *state)
{
	if (is_asking(at, "a checkpoint", loader)) return false;
	SLP_GUARD(&loader->guard, at, "a checkpoint", false);
	if (!loader->summed && !slp_dataset_sums(loader->dataset, loader->checksums)) return false;
	loader->summed = true;
	*state = (struct slp_loader_state){.samples = loader->opts.limit,
	                                   .batch_size = loader->opts.batch_size * loader->opts.ranks,
	                                   .shuffle = loader->opts.shuffle,
	                                   .last = loader->opts.last,
	                                   .images = loader->checksums[0],
	                                   .labels = loader->checksums[1],
	                                   .seed = (int64_t)loader->opts.seed,
	                                   .epoch = (int64_t)loader->reading,
	                                   .taken = loader->taken};
	return true;
}

void slp_loader_look(sl_loader *loader, struct slp_loader_state *state)
{
	struct slp_guard *guard = &loader->guard;
	if (!slp_guard_try(guard)) return;
	state->epoch = (int64_t)loader->reading;
	state->taken = loader->taken;
	slp_guard_leave(&guard);
}

void slp_loader_set(sl_loader *loader, const struct slp_loader_state *state)
{
	SLP_GUARD_PATIENTLY(&loader->guard);
	bool ended = state->taken == loader->batches;
	drop_ring(loader);
	forget_order(loader);
	loader->opts.seed = (uint64_t)state->seed;
	loader->reading = (uint64_t)state->epoch;
	loader->taken = state->taken;
	loader->epoch = loader->reading + ended;
	loader->made = ended ? 0 : state->taken;
}
