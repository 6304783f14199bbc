/* Exchanges as messages.  A sum is cut into a piece for each rank: all send theirs of it to that rank, which adds them
 * in the fixed tree and sends the sum back to all: as many bytes as a ring moves; or, if that is no more, each rank
 * gets and adds all.  Pieces and their sums go in portions, each a message: what has come from all is added at once,
 * while it is in the cache, and goes on to all while the rest comes. */
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "dist/adders.h"
#include "dist/gpu.h"
#include "dist/messages.h"
#include "starling/tensor.h"

static struct {
	const void **list;
	char *parts;
	size_t room;
	bool fast;
} all;

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

static struct slp_head head_of(const struct slp_exchange *x, enum slp_message_kind kind, size_t elements)
{
	struct slp_head h = {.kind = kind,
	                     .dtype = (uint32_t)x->dtype,
	                     .number = x->number,
	                     .count = x->count,
	                     .rows = x->rows,
	                     .lr = x->lr};
	h.bytes = elements * sl_dtype_size(x->dtype);
	snprintf(h.name, sizeof h.name, "%s", x->name);
	return h;
}

/* Elements of a rank's piece begin here. */
static size_t begin(const struct slp_exchange *x, int rank)
{
	return slp_piece_begin(x, rank, slp_peers.size);
}

static char *place_of(const struct slp_exchange *x, int rank)
{
	bool whole = slp_goes_whole(x, slp_peers.size);
	return (char *)x->data + (whole ? 0 : begin(x, rank) * sl_dtype_size(x->dtype));
}

static size_t piece_size(const struct slp_exchange *x, int rank)
{
	return slp_goes_whole(x, slp_peers.size) ? x->count : begin(x, rank + 1) - begin(x, rank);
}

/* Whether anybody has no sound values; then all know that. */
static bool is_spoilt(const struct slp_exchange *x, char why[SLP_DIST_WHY])
{
	for (int r = 0; r < slp_peers.size; r++) {
		const struct slp_peer *p = &slp_peers.list[r];
		const char *text = !p->there ? x->spoilt : p->spoilt ? p->text : NULL;
		if (text) return snprintf(why, SLP_DIST_WHY, "rank %d: %.480s", r, text), true;
	}
	return false;
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

/* A sum in progress. */
struct sum {
	const struct slp_exchange *x;
	size_t mine, added; /* bytes of this rank's piece, and how many of them are added */
	size_t portion;     /* bytes of a message */
	bool returns;       /* sums go to those whose pieces they are of */
	bool late;          /* its message has waited for SL_DIST_LATENCY */
};

static size_t bytes_of(const struct sum *s, int rank)
{
	return piece_size(s->x, rank) * sl_dtype_size(s->x->dtype);
}

/* Counts the bytes that have come from a rank. */
static void count(struct slp_peer *p)
{
	if (!p->in.wanted || !slp_is_done(&p->in)) return;
	p->in.wanted = false;
	p->heard = true;
	if (!p->spoilt) p->came += p->in.head.bytes;
}

/* The number of bytes already sent to a rank: the rest must not change. */
static size_t what_left(const struct slp_peer *p)
{
	return slp_is_done(&p->out) ? p->gone : p->gone - p->out.head.bytes;
}

static char *part_of(const struct sum *s, int rank)
{
	return all.parts + (size_t)(rank - (rank > slp_peers.rank)) * s->mine;
}

/* The bytes of this rank's piece that have come from all ranks with valid values: 0, as long as those are unknown. */
static size_t what_came(const struct sum *s)
{
	size_t least = s->mine;
	bool known = !s->x->spoilt, all_gone = true;
	for (int r = 0; r < slp_peers.size; r++) {
		const struct slp_peer *p = &slp_peers.list[r];
		if (!p->there) continue;
		known &= p->heard && !p->spoilt;
		all_gone &= slp_is_done(&p->out) && p->gone >= bytes_of(s, r);
		if (p->came < least) least = p->came;
		if (slp_goes_whole(s->x, slp_peers.size) && what_left(p) < least) least = what_left(p);
	}
	return known && (slp_peers.latency == 0 || (all_gone && least == s->mine)) ? least : 0;
}

/* Adds the portions that have come since, in place. */
static void add(struct sum *s)
{
	size_t came = what_came(s);
	if (came <= s->added) return;
	char *sum = place_of(s->x, slp_peers.rank) + s->added;
	for (int r = 0; r < slp_peers.size; r++) all.list[r] = r == slp_peers.rank ? sum : part_of(s, r) + s->added;
	slp_add_tree(sum, all.list, slp_peers.size, (came - s->added) / sl_dtype_size(s->x->dtype), s->x->dtype);
	s->added = came;
	if (!s->late && s->returns) slp_be_late();
	s->late = true;
}

/* Late portions are sent at once. */
static size_t choose_portion(void)
{
	size_t least = slp_peers.carrier->portion, each = SLP_ADDERS_PORTION * (size_t)slp_adders_here();
	return slp_peers.latency > 0 ? SIZE_MAX : each > least ? each : least;
}

/* The next portion for a rank: of its piece, or the reason why there is none; then of the sum. */
static void give(const struct sum *s, int rank)
{
	const struct slp_exchange *x = s->x;
	struct slp_peer *p = &slp_peers.list[rank];
	size_t theirs = bytes_of(s, rank), total = theirs + (s->returns ? s->added : 0);
	bool piece = !p->begun || p->gone < theirs;
	if (!slp_is_done(&p->out) || (p->begun && p->gone >= total)) return;
	struct slp_head h = head_of(x, piece ? SLP_PIECE : SLP_SUM, 0);
	h.spoilt = x->spoilt != NULL;
	size_t rest = (piece ? theirs : total) - p->gone;
	h.bytes = h.spoilt ? strlen(x->spoilt) + 1 : rest < s->portion ? rest : s->portion;
	const char *data = piece ? place_of(x, rank) + p->gone : place_of(x, slp_peers.rank) + (p->gone - theirs);
	slp_post(p, &h, h.spoilt ? x->spoilt : data);
	p->gone = h.spoilt ? theirs : p->gone + h.bytes;
	p->begun = true;
}

/* The next portion for a rank: of this rank's piece; then of the sum of the other's, once that piece is sent. */
static void take(const struct sum *s, bool sound, int rank)
{
	struct slp_peer *p = &slp_peers.list[rank];
	size_t theirs = bytes_of(s, rank), sum = p->came - s->mine;
	if (p->in.wanted || p->spoilt) return;
	if (!p->heard || p->came < s->mine) slp_want(p, SLP_PIECE, part_of(s, rank) + p->came, s->mine - p->came, true);
	else if (sound && s->returns && sum < theirs && p->gone >= theirs && (p->gone > theirs || slp_is_done(&p->out)))
		slp_want(p, SLP_SUM, place_of(s->x, rank) + sum, theirs - sum, true);
}

/* The work of a sum before each poll of incoming data. */
static void go_on(void *sum)
{
	struct sum *s = sum;
	bool sound = !s->x->spoilt;
	for (int r = 0; r < slp_peers.size; r++)
		if (slp_peers.list[r].there) count(&slp_peers.list[r]);
	for (int r = 0; r < slp_peers.size; r++)
		sound &= !slp_peers.list[r].there || (slp_peers.list[r].heard && !slp_peers.list[r].spoilt);
	add(s);
	for (int r = 0; r < slp_peers.size; r++) {
		if (!slp_peers.list[r].there) continue;
		give(s, r);
		take(s, sound, r);
	}
}

static bool make_room(size_t bytes, char why[SLP_DIST_WHY])
{
	if (bytes <= all.room) return true;
	char *parts = slp_try_realloc(all.parts, bytes);
	if (!parts) return slp_dist_fail(why, "rank %d has no memory for the others' values", slp_peers.rank);
	all.parts = parts;
	all.room = bytes;
	return true;
}

/* All ranks report whether their values are valid, and on a GPU; gpu: they are on GPUs everywhere. */
static enum slp_outcome meet(const struct slp_exchange *x, bool *gpu, char why[SLP_DIST_WHY])
{
	struct slp_head h = head_of(x, SLP_READY, 0);
	if (x->spoilt) h.bytes = strlen(x->spoilt) + 1;
	h.spoilt = x->spoilt != NULL;
	h.gpu = *gpu;
	for (int r = 0; r < slp_peers.size; r++) {
		if (!slp_peers.list[r].there) continue;
		slp_post(&slp_peers.list[r], &h, x->spoilt);
		slp_want(&slp_peers.list[r], SLP_READY, NULL, 0, false);
	}
	if (!slp_exchange_messages(&h, NULL, NULL, why)) return slp_give_up(why);
	for (int r = 0; r < slp_peers.size; r++) *gpu &= !slp_peers.list[r].there || slp_peers.list[r].in.head.gpu;
	return is_spoilt(x, why) ? SLP_EXCHANGE_SPOILT : SLP_EXCHANGED;
}

/* By the carrier, which cannot report who is missing, so all ranks meet first.  Counts the bytes of a ring. */
static enum slp_outcome sum_by_carrier(const struct slp_exchange *x, char why[SLP_DIST_WHY])
{
	bool gpu = false;
	enum slp_outcome outcome = meet(x, &gpu, why);
	if (outcome != SLP_EXCHANGED) return outcome;
	slp_peers.sent += 2 * (x->count - x->count / (size_t)slp_peers.size) * sl_dtype_size(x->dtype);
	if (slp_peers.carrier->sum(x->data, x->count, sl_dtype_name(x->dtype), slp_peers.patience))
		return SLP_EXCHANGED;
	slp_dist_fail(why, "exchange %llu, %.48s, did not end within %g seconds (SL_DIST_TIMEOUT)",
	              (unsigned long long)x->number, x->name, slp_peers.timeout);
	return slp_give_up(why);
}

static enum slp_outcome sum_at_once(const struct slp_exchange *x, char why[SLP_DIST_WHY])
{
	struct slp_head expected = head_of(x, SLP_PIECE, 0);
	struct sum s = {
	        .x = x, .mine = piece_size(x, slp_peers.rank) * sl_dtype_size(x->dtype), .portion = choose_portion()};
	s.returns = !x->one && !slp_goes_whole(x, slp_peers.size);
	*why = '\0';
	if (all.fast && !x->one && slp_peers.carrier->adds(sl_dtype_name(x->dtype))) return sum_by_carrier(x, why);
	if (!make_room(s.mine * (size_t)(slp_peers.size - 1), why)) return slp_give_up(why);
	for (int r = 0; r < slp_peers.size; r++) {
		struct slp_peer *p = &slp_peers.list[r];
		p->in = p->out = (struct slp_message){.wanted = false};
		p->came = p->gone = 0;
		p->begun = p->heard = false;
	}
	if (!slp_exchange_messages(&expected, go_on, &s, why)) return slp_give_up(why);
	return is_spoilt(x, why) ? SLP_EXCHANGE_SPOILT : SLP_EXCHANGED;
}

/* How an exchange of values in main memory is made. */
typedef enum slp_outcome (*exchange_function)(const struct slp_exchange *x, char why[SLP_DIST_WHY]);

/* Values that not all ranks have on a GPU: by way of main memory. */
static enum slp_outcome from_gpu(const struct slp_exchange *x, exchange_function exchange, char why[SLP_DIST_WHY])
{
	struct slp_exchange here = *x;
	size_t bytes = x->count * sl_dtype_size(x->dtype);
	const char *wrong = NULL;
	here.gpu = false;
	here.data = slp_gpu_room(SLP_ROOM_MAIN, bytes);
	if (!here.data || !slp_gpu_copy(here.data, x->data, bytes))
		here.spoilt = "the values did not come from the GPU";
	else here.spoilt = slp_gpu_finish(slp_peers.patience);
	enum slp_outcome outcome = exchange(&here, why);
	if (outcome != SLP_EXCHANGED) return outcome;
	if (!slp_gpu_copy(x->data, here.data, bytes)) wrong = "a call of CUDA failed";
	if (!wrong) wrong = slp_gpu_finish(slp_peers.patience);
	if (!wrong) return SLP_EXCHANGED;
	slp_dist_fail(why, "rank %d: the values did not come to the GPU: %s", slp_peers.rank, wrong);
	return slp_give_up(why);
}

/* On GPUs, where all have the values there. */
static enum slp_outcome on_gpu(const struct slp_exchange *x, bool ready, exchange_function exchange,
                               bool (*by_nccl)(const struct slp_exchange *, char *), char why[SLP_DIST_WHY])
{
	bool gpu = x->gpu && (x->spoilt || ready);
	*why = '\0';
	enum slp_outcome outcome = meet(x, &gpu, why);
	if (outcome != SLP_EXCHANGED) return outcome;
	if (!gpu) return x->gpu ? from_gpu(x, exchange, why) : exchange(x, why);
	return by_nccl(x, why) ? SLP_EXCHANGED : slp_give_up(why);
}

static enum slp_outcome sum_whole(const struct slp_exchange *x, char why[SLP_DIST_WHY])
{
	if (!x->meets) return sum_at_once(x, why);
	return on_gpu(x, x->gpu && (x->spoilt || slp_nccl_prepare(x)), sum_at_once, slp_nccl_sum, why);
}

/* For one rank, a part after the other: it needs room for those of all. */
static enum slp_outcome sum(const struct slp_exchange *x, char why[SLP_DIST_WHY])
{
	enum { LEAST = 1 << 18 };
	size_t most = x->count / (size_t)slp_peers.size > LEAST ? x->count / (size_t)slp_peers.size : LEAST;
	struct slp_exchange part = *x;
	enum slp_outcome outcome = SLP_EXCHANGED;
	if (!x->one) return sum_whole(x, why);
	for (size_t first = 0; outcome == SLP_EXCHANGED && first < x->count; first += most) {
		part.data = (char *)x->data + first * sl_dtype_size(x->dtype);
		part.count = x->count - first < most ? x->count - first : most;
		outcome = sum_whole(&part, why);
	}
	return outcome;
}

/* ---- the transport ----------------------------------------------------------------------------------------------- */

/* Whether a rank gets another rank's values. */
static bool gets(const struct slp_exchange *x, int rank)
{
	return rank != x->rank && (!x->one || rank == 0);
}

static enum slp_outcome broadcast_at_once(const struct slp_exchange *x, char why[SLP_DIST_WHY])
{
	struct slp_head expected = head_of(x, SLP_VALUES, x->count), h = expected;
	*why = '\0';
	if (x->spoilt) h.bytes = strlen(x->spoilt) + 1;
	h.spoilt = x->spoilt != NULL;
	for (int r = 0; r < slp_peers.size; r++) {
		slp_peers.list[r].in = slp_peers.list[r].out = (struct slp_message){.wanted = false};
		if (slp_peers.rank == x->rank && gets(x, r))
			slp_post(&slp_peers.list[r], &h, x->spoilt ? x->spoilt : x->data);
	}
	if (gets(x, slp_peers.rank)) slp_want(&slp_peers.list[x->rank], SLP_VALUES, x->data, expected.bytes, false);
	if (!slp_exchange_messages(&expected, NULL, NULL, why)) return slp_give_up(why);
	return is_spoilt(x, why) ? SLP_EXCHANGE_SPOILT : SLP_EXCHANGED;
}

static enum slp_outcome broadcast(const struct slp_exchange *x, char why[SLP_DIST_WHY])
{
	return x->meets ? on_gpu(x, true, broadcast_at_once, slp_nccl_broadcast, why) : broadcast_at_once(x, why);
}

static void forget(void)
{
	free(slp_peers.list);
	free(slp_peers.interests);
	free(all.list);
	free(all.parts);
	memset(&all, 0, sizeof all);
	memset(&slp_peers, 0, sizeof slp_peers);
}

static void end(void)
{
	const double farewell = 0.5; /* seconds in which the others also report the cause */
	double deadline = sl_time() + (slp_peers.broken ? farewell : slp_peers.patience);
	for (int r = 0; !slp_peers.broken && r < slp_peers.size; r++)
		if (slp_peers.list[r].there) slp_close_out(&slp_peers.list[r], deadline);
	slp_peers.carrier->end(slp_peers.broken, deadline);
	slp_nccl_end(); /* once nobody waits for data in flight */
	forget();
}

static bool make_peers(const struct slp_place *place)
{
	size_t size = (size_t)place->size;
	slp_peers.list = slp_try_calloc(size, sizeof *slp_peers.list);
	slp_peers.interests = slp_try_calloc(size, sizeof *slp_peers.interests);
	all.list = slp_try_calloc(size, sizeof *all.list);
	if (!slp_peers.list || !slp_peers.interests || !all.list) return false;
	slp_peers.rank = place->rank;
	slp_peers.size = place->size;
	slp_peers.timeout = place->timeout;
	slp_peers.patience = place->patience;
	slp_peers.latency = place->latency;
	all.fast = place->fast && slp_peers.carrier->sum;
	for (int r = 0; r < slp_peers.size; r++) slp_peers.list[r].there = r != slp_peers.rank;
	return true;
}

static enum sl_status start(struct slp_place *place, char why[SLP_DIST_WHY])
{
	*why = '\0';
	if (!slp_peers.carrier->start(place, why)) return SL_EIO;
	if (make_peers(place)) return SL_OK;
	snprintf(why, SLP_DIST_WHY, "no memory for %d ranks", place->size);
	slp_peers.carrier->end(true, sl_time());
	forget();
	return SL_ENOMEM;
}

const struct slp_transport *slp_messages(const struct slp_carrier *c)
{
	static struct slp_transport transport = {
	        .start = start, .sum = sum, .broadcast = broadcast, .end = end, .sent = &slp_peers.sent};
	slp_peers.carrier = c;
	transport.name = c->name;
	return &transport;
}
