/* Sums over NCCL, from and to memory of a GPU.  The ranks have exchanged messages about the sum before, so all of them
 * take part; the values are added in the tree or in NCCL's order.  No call blocks: the communicator is nonblocking, and
 * while the GPU works this code checks from time to time whether the other ranks are alive. */
#include "alloc.h"
#include "dist/gpu.h"
#include "starling/tensor.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dist/messages.h"
#include "dist/nccl.h"
#include "runtime/process/processes.h"

#define X(name, result, parameters) result(*name) parameters;
static struct {
	SLP_NCCL_FUNCTIONS(X)
} nccl;
#undef X

static struct {
	slp_nccl_comm comm;
	bool works, fast;
	char text[SLP_DIST_WHY]; /* slp_nccl_state */
} state;

bool slp_gpu_sums(void)
{
	return state.works || slp_simulated_sums_on_gpus();
}

const char *slp_nccl_state(void)
{
	return *state.text ? state.text : NULL;
}

static double now(void)
{
	return sl_time();
}

/* ---- the library ------------------------------------------------------------------------------------------------- */

static bool load(char why[SLP_DIST_WHY])
{
	void *library = dlopen(slp_env_or("SL_NCCL", SLP_NCCL_SONAME), RTLD_NOW | RTLD_LOCAL), *function = library;
#define X(name, ...)                                                                                                   \
	if (function && (function = dlsym(library, #name))) memcpy(&nccl.name, &function, sizeof function);
	SLP_NCCL_FUNCTIONS(X)
#undef X
	if (!function) snprintf(why, SLP_DIST_WHY, "%s", dlerror());
	return function;
}

static void print_version(char text[SLP_DIST_WHY], const char *before)
{
	int version = 0;
	nccl.ncclGetVersion(&version);
	snprintf(text, SLP_DIST_WHY, "%s%d.%d.%d", before, version / 10000, version / 100 % 100, version % 100);
}

void slp_nccl_find(char text[SLP_DIST_WHY])
{
	if (load(text)) print_version(text, "");
}

static bool is_well(int result)
{
	return result == SLP_NCCL_SUCCESS || result == SLP_NCCL_IN_PROGRESS;
}

/* Whether the last call is queued, or the communicator ready: success, in progress, or an error. */
static int ask(void)
{
	int result = SLP_NCCL_SUCCESS, asked = nccl.ncclCommGetAsyncError(state.comm, &result);
	return asked == SLP_NCCL_SUCCESS ? result : asked;
}

static const char *text_of(int result)
{
	return result == SLP_NCCL_IN_PROGRESS ? "it has not ended in time" : nccl.ncclGetErrorString(result);
}

/* ---- the start --------------------------------------------------------------------------------------------------- */

/* Exchanges the missing requirement of each rank; then `lack` is that of the first rank that has one. */
static enum slp_outcome agree(const struct slp_transport *t, struct slp_exchange x, char lack[SLP_DIST_WHY],
                              char why[SLP_DIST_WHY])
{
	enum { ROOM = 200 };
	size_t n = (size_t)slp_peers.size;
	char *all = slp_try_calloc(n, ROOM);
	if (!all) return snprintf(why, SLP_DIST_WHY, "no memory for %zu ranks", n), slp_give_up(why);
	snprintf(all + slp_peers.rank * ROOM, ROOM, "%s", lack);
	x.data = all;
	x.count = n * ROOM;
	enum slp_outcome outcome = t->sum(&x, why);
	*lack = '\0';
	for (int r = 0; outcome == SLP_EXCHANGED && !*lack && r < slp_peers.size; r++)
		if (all[r * ROOM]) snprintf(lack, SLP_DIST_WHY, "rank %d: %.*s", r, ROOM - 1, all + r * ROOM);
	free(all);
	return outcome;
}

static void begin(struct slp_nccl_id id, char lack[SLP_DIST_WHY])
{
	struct slp_nccl_config config = {sizeof config, slp_nccl_magic, SLP_NCCL_VERSION, 0};
	int result = nccl.ncclCommInitRankConfig(&state.comm, slp_peers.size, id, slp_peers.rank, &config);
	double end = now() + slp_peers.patience / 2, nap = 0;
	while (is_well(result) && (result = ask()) == SLP_NCCL_IN_PROGRESS && now() < end) slp_gpu_nap(&nap);
	if (result != SLP_NCCL_SUCCESS) snprintf(lack, SLP_DIST_WHY, "NCCL does not start: %s", text_of(result));
}

static enum slp_outcome meet(const struct slp_transport *t, struct slp_exchange x, char lack[SLP_DIST_WHY],
                             char why[SLP_DIST_WHY])
{
	struct slp_nccl_id id = {""};
	enum slp_outcome outcome = agree(t, x, lack, why);
	if (outcome != SLP_EXCHANGED || *lack) return outcome;
	int result = slp_peers.rank == 0 ? nccl.ncclGetUniqueId(&id) : SLP_NCCL_SUCCESS;
	if (result != SLP_NCCL_SUCCESS) snprintf(lack, SLP_DIST_WHY, "ncclGetUniqueId: %s", text_of(result));
	x.data = &id;
	x.count = sizeof id;
	outcome = t->broadcast(&x, why);
	if (outcome != SLP_EXCHANGED) return outcome;
	if (!*lack && memcmp(&id, &(struct slp_nccl_id){""}, sizeof id)) begin(id, lack);
	return agree(t, x, lack, why);
}

static void give_up(void)
{
	if (state.comm) nccl.ncclCommAbort(state.comm);
	state.comm = NULL;
	state.works = false;
}

enum slp_outcome slp_nccl_meet(const struct slp_transport *t, uint64_t number, bool fast, char why[SLP_DIST_WHY])
{
	struct slp_exchange x = {.number = number, .dtype = SL_UINT8};
	char lack[SLP_DIST_WHY] = "";
	snprintf(x.name, sizeof x.name, "NCCL, order %s", fast ? "fast" : "fixed");
	if (slp_gpu_open(lack)) load(lack);
	enum slp_outcome outcome = meet(t, x, lack, why);
	state.works = outcome == SLP_EXCHANGED && !*lack;
	state.fast = fast;
	if (state.works) {
		print_version(state.text, "NCCL ");
		return outcome;
	}
	give_up();
	slp_gpu_close();
	snprintf(state.text, sizeof state.text, "%s", *lack ? lack : why);
	if (slp_peers.rank == 0 && outcome == SLP_EXCHANGED)
		fprintf(stderr, "starling: without NCCL gradients on GPUs go through main memory: %s\n", lack);
	return outcome;
}

void slp_nccl_end(void)
{
	give_up();
	slp_gpu_close();
	*state.text = '\0';
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

/* A sum in progress. */
struct sum {
	const struct slp_exchange *x;
	char *parts; /* of the others */
	char *why;
	double began;
	bool told; /* the others, that this process only waits */
};

/* NCCL or CUDA failed.  Perhaps another rank is to blame, whose connection is seen to end a little later. */
static bool complain(const struct sum *s, const char *wrong)
{
	double end = now() + 0.5, nap = 0;
	while (slp_look_at_others(s->why) && now() < end) slp_gpu_nap(&nap);
	return slp_dist_fail(s->why, "rank %d: exchange %llu, %.48s, over NCCL: %s", slp_peers.rank,
	                     (unsigned long long)s->x->number, s->x->name, wrong);
}

/* 1: the group is queued; 0: not yet; -1: it is not. */
static int is_queued(void)
{
	int result = ask();
	return result == SLP_NCCL_SUCCESS ? 1 : result == SLP_NCCL_IN_PROGRESS ? 0 : -1;
}

/* From time to time while this waits. */
static bool look(struct sum *s)
{
	const double quiet = 0.6; /* as in messages.c */
	double waited = now() - s->began;
	if (!slp_look_at_others(s->why)) return false;
	if (!is_well(ask())) return complain(s, text_of(ask()));
	if (waited > slp_peers.patience) return slp_blame_silent(s->x, s->why);
	if (!s->told && waited > quiet * slp_peers.patience) slp_tell_waiting(s->x->number);
	s->told |= waited > quiet * slp_peers.patience;
	return true;
}

static bool wait_for(struct sum *s, int (*is_over)(void))
{
	const double interval = 5e-3;
	double next = now() + interval, nap = 0;
	int over;
	for (; !(over = is_over()); slp_gpu_nap(&nap)) {
		if (now() < next) continue;
		next = now() + interval;
		if (!look(s)) return false;
	}
	if (over > 0) return true;
	return complain(s, is_well(ask()) ? "CUDA failed" : text_of(ask()));
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

static enum slp_nccl_type type_of(enum sl_dtype dtype)
{
	switch (dtype) {
	case SL_FLOAT32: return SLP_NCCL_FLOAT32;
	case SL_FLOAT64: return SLP_NCCL_FLOAT64;
	case SL_FLOAT16: return SLP_NCCL_FLOAT16;
	case SL_BFLOAT16: return SLP_NCCL_BFLOAT16;
	case SL_INT32: return SLP_NCCL_INT32;
	case SL_INT64: return SLP_NCCL_INT64;
	case SL_UINT8:
	case SL_BOOL:
	case SL_INT8:
	case SL_INT16:
	case SL_UINT16:
	case SL_UINT32:
	case SL_UINT64:
	case SL_DTYPE_DEFAULT:
	case SL_DTYPE_COUNT: break;
	}
	return SLP_NCCL_UINT8;
}

/* A rank's part of the sum: elements of x. */
struct piece {
	size_t first, count;
};

static struct piece piece_of(const struct slp_exchange *x, int rank)
{
	int n = slp_peers.size;
	if (slp_goes_whole(x, n)) return (struct piece){0, x->count};
	size_t first = slp_piece_begin(x, rank, n);
	return (struct piece){first, slp_piece_begin(x, rank + 1, n) - first};
}

static char *place_of(const struct slp_exchange *x, int rank)
{
	return (char *)x->data + piece_of(x, rank).first * sl_dtype_size(x->dtype);
}

/* Where another rank's part of this one's piece comes. */
static char *part_of(const struct slp_exchange *x, char *parts, int rank)
{
	int slot = rank - (rank > slp_peers.rank);
	return parts + (size_t)slot * piece_of(x, slp_peers.rank).count * sl_dtype_size(x->dtype);
}

static size_t parts_bytes(const struct slp_exchange *x)
{
	return piece_of(x, slp_peers.rank).count * sl_dtype_size(x->dtype) * (size_t)(slp_peers.size - 1);
}

static bool adds_itself(const struct slp_exchange *x)
{
	return state.fast && !x->one && (type_of(x->dtype) != SLP_NCCL_UINT8 || x->dtype == SL_UINT8);
}

bool slp_nccl_prepare(const struct slp_exchange *x)
{
	size_t bytes = adds_itself(x) ? 0 : parts_bytes(x);
	return bytes == 0 || slp_gpu_room(SLP_ROOM_PARTS, bytes);
}

/* Sends `from` and receives `to`, of as many elements, if there are any; the result of NCCL. */
static int trade(const struct slp_exchange *x, int rank, const void *from, size_t gone, void *to, size_t come)
{
	enum slp_nccl_type type = type_of(x->dtype);
	void *stream = slp_gpu_stream_of_sums();
	int result = SLP_NCCL_SUCCESS;
	slp_peers.sent += gone * sl_dtype_size(x->dtype);
	if (gone) result = nccl.ncclSend(from, gone, type, rank, state.comm, stream);
	if (come && is_well(result)) result = nccl.ncclRecv(to, come, type, rank, state.comm, stream);
	return result;
}

/* All ranks' pieces to those who add them. */
static int scatter(const struct slp_exchange *x, char *parts)
{
	int result = SLP_NCCL_SUCCESS;
	size_t mine = piece_of(x, slp_peers.rank).count;
	for (int r = 0; r < slp_peers.size && is_well(result); r++)
		if (r != slp_peers.rank)
			result = trade(x, r, place_of(x, r), piece_of(x, r).count, part_of(x, parts, r), mine);
	return result;
}

/* The sums to all. */
static int gather(const struct slp_exchange *x, char *unused)
{
	int result = SLP_NCCL_SUCCESS;
	size_t mine = piece_of(x, slp_peers.rank).count;
	(void)unused;
	for (int r = 0; r < slp_peers.size && is_well(result); r++)
		if (r != slp_peers.rank)
			result = trade(x, r, place_of(x, slp_peers.rank), mine, place_of(x, r), piece_of(x, r).count);
	return result;
}

/* Queues a group; false: that failed, and why says how. */
static bool together(int (*trades)(const struct slp_exchange *, char *), struct sum *s)
{
	int result = nccl.ncclGroupStart();
	if (is_well(result)) result = trades(s->x, s->parts);
	int end = nccl.ncclGroupEnd();
	if (is_well(result)) result = end;
	return is_well(result) ? wait_for(s, is_queued) : complain(s, text_of(result));
}

/* As slp_tree_sum adds shards; intermediate sums replace terms that are no longer needed. */
static bool add(const struct slp_exchange *x, char *parts)
{
	int n = slp_peers.size;
	size_t mine = piece_of(x, slp_peers.rank).count;
	char *own = place_of(x, slp_peers.rank);
	bool ok = true;
	for (int stride = 1; stride < n && mine; stride *= 2)
		for (int i = 0; ok && i + stride < n; i += 2 * stride) {
			char *a = i == slp_peers.rank ? own : part_of(x, parts, i);
			char *b = i + stride == slp_peers.rank ? own : part_of(x, parts, i + stride);
			ok = slp_gpu_sum(2 * stride >= n ? own : a, a, b, mine, x->dtype);
		}
	return ok;
}

static bool queue_tree(struct sum *s)
{
	const struct slp_exchange *x = s->x;
	s->parts = slp_gpu_room(SLP_ROOM_PARTS, parts_bytes(x));
	if (!together(scatter, s)) return false;
	if (!add(x, s->parts)) return complain(s, "a kernel was not launched");
	return x->one || slp_goes_whole(x, slp_peers.size) || together(gather, s);
}

static bool queue_fast(struct sum *s)
{
	const struct slp_exchange *x = s->x;
	int result = nccl.ncclAllReduce(x->data, x->data, x->count, type_of(x->dtype), SLP_NCCL_SUM, state.comm,
	                                slp_gpu_stream_of_sums());
	slp_peers.sent += 2 * (x->count - x->count / (size_t)slp_peers.size) * sl_dtype_size(x->dtype);
	return is_well(result) ? wait_for(s, is_queued) : complain(s, text_of(result));
}

/* The queued work is done in time, or NCCL is abandoned. */
static bool finish(struct sum *s, bool queued)
{
	if (queued && !slp_gpu_mark()) queued = complain(s, "an event was not recorded");
	if (queued && wait_for(s, slp_gpu_is_over)) return true;
	give_up();
	return false;
}

bool slp_nccl_sum(const struct slp_exchange *x, char why[SLP_DIST_WHY])
{
	struct sum s = {.x = x, .why = why, .began = now()};
	return finish(&s, adds_itself(x) ? queue_fast(&s) : queue_tree(&s));
}

/* The values of one rank to all others. */
static int hand_out(const struct slp_exchange *x, char *unused)
{
	int result = SLP_NCCL_SUCCESS;
	(void)unused;
	if (x->rank != slp_peers.rank) return trade(x, x->rank, NULL, 0, x->data, x->count);
	for (int r = 0; r < slp_peers.size && is_well(result); r++)
		if (r != x->rank) result = trade(x, r, x->data, x->count, NULL, 0);
	return result;
}

bool slp_nccl_broadcast(const struct slp_exchange *x, char why[SLP_DIST_WHY])
{
	struct sum s = {.x = x, .why = why, .began = now()};
	return finish(&s, together(hand_out, &s));
}
