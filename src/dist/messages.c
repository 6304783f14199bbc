/* Exchanges as messages over a carrier.  A sum is cut into a piece for each rank: all send theirs of it to that rank, which adds them in the
 * fixed tree and sends the sum back to all: as many bytes as a ring moves, in two messages.  Each message says what it is
 * of, so that processes that do not do the same are found out, whatever they sent.
 *
 * A rank that has waited for most of the timeout tells the others that it only waits, so that they do
 * not take it for the one that holds them up. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "alloc.h"
#include "dist/transport.h"
#include "number.h"

enum kind { PIECE = 1, SUM, READY, VALUES, WAITS, FAREWELL, END };

struct head {
	uint32_t kind, dtype;
	uint64_t number, count; /* of elements of the whole exchange */
	int64_t rows;
	uint64_t bytes;  /* that follow */
	uint32_t spoilt; /* these are the reason */
	char name[SLP_DIST_NAME];
};

/* A message on its way. */
struct message {
	struct head head;
	char *data;  /* of head.bytes */
	size_t done; /* of head and data */
	bool wanted;
};

struct peer {
	bool there; /* false: this process itself */
	struct message in, out;
	size_t room; /* for what comes: so many bytes are right */
	bool waits;
	char text[SLP_DIST_WHY]; /* what came instead of data */
};

static struct {
	int rank, size;
	double timeout, latency;
	bool fast;
	struct peer *peers; /* one a rank */
	struct slp_interest *interests;
	void **list;
	char *parts;
	size_t room;
	bool broken;
	bool moved; /* something of an exchange has come or gone */
} all;
static const struct slp_carrier *carrier;
static uint64_t sent;

static const char *status_of(int error)
{
	return error ? strerror(error) : "it has closed the connection";
}

/* ---- messages ------------------------------------------------------------------------------------------------------ */

static size_t length(const struct message *m)
{
	return sizeof m->head + m->head.bytes;
}

static bool is_done(const struct message *m)
{
	return !m->wanted || (m->done >= sizeof m->head && m->done == length(m));
}

static void post(struct peer *p, const struct head *head, const void *data)
{
	p->out = (struct message){.head = *head, .data = (char *)(uintptr_t)data, .wanted = true};
}

static int rank_of(const struct peer *p)
{
	return (int)(p - all.peers);
}

/* As much as goes without waiting; false: the connection is over. */
static bool send_some(struct peer *p)
{
	struct message *m = &p->out;
	while (!is_done(m)) {
		size_t head = m->done < sizeof m->head ? sizeof m->head - m->done : 0;
		size_t at = head ? 0 : m->done - sizeof m->head;
		struct iovec parts[] = {{(char *)&m->head + sizeof m->head - head, head},
		                        {m->data + at, m->head.bytes - at}};
		ssize_t n = carrier->send(rank_of(p), parts + !head, head ? 1 + (m->head.bytes > 0) : 1);
		if (n <= 0) return n == 0;
		m->done += (size_t)n;
		sent += (uint64_t)n;
		all.moved |= m->head.kind != WAITS;
	}
	return true;
}

/* ---- what went wrong ----------------------------------------------------------------------------------------------- */

static bool fail(char why[SLP_DIST_WHY], const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(char why[SLP_DIST_WHY], const char *format, ...)
{
	va_list args;
	va_start(args, format);
	if (!*why) slp_vsnprintf(why, SLP_DIST_WHY, format, args);
	va_end(args);
	return false;
}

/* Tells all why, as far as they listen; they get it before they see the connection end. */
static void say_farewell(const char *why)
{
	double end = sl_time() + 0.5;
	struct head h = {.kind = FAREWELL, .bytes = strlen(why) + 1};
	for (int r = 0; r < all.size; r++) {
		struct peer *p = &all.peers[r];
		if (!p->there) continue;
		bool ok = true;
		while ((ok = send_some(p)) && !is_done(&p->out) && sl_time() < end) carrier->wait(NULL, 1e-3);
		if (!ok || !is_done(&p->out)) continue;
		post(p, &h, why);
		send_some(p);
	}
}

static enum slp_outcome give_up(const char *why)
{
	all.broken = true;
	say_farewell(why);
	return SLP_DIST_BROKEN;
}

/* What two ranks disagree in. */
static bool differs(const struct head *a, const struct head *b, int rank, char why[SLP_DIST_WHY])
{
	bool same = a->number == b->number && !strncmp(a->name, b->name, sizeof a->name);
	if (same && (a->kind == READY) != (b->kind == READY))
		fail(why, "rank %d and rank %d have different values of SL_DIST_ORDER", rank, all.rank);
	else if (a->number != b->number || a->kind != b->kind || strncmp(a->name, b->name, sizeof a->name))
		fail(why, "rank %d is at exchange %llu, %.48s, rank %d at exchange %llu, %.48s", rank,
		     (unsigned long long)a->number, a->name, all.rank, (unsigned long long)b->number, b->name);
	else if (a->count != b->count || a->dtype != b->dtype)
		fail(why, "%.48s has %llu elements of type %s on rank %d, %llu of type %s on rank %d", a->name,
		     (unsigned long long)a->count, sl_dtype_name((enum sl_dtype)a->dtype), rank,
		     (unsigned long long)b->count, sl_dtype_name((enum sl_dtype)b->dtype), all.rank);
	else if (a->rows != b->rows)
		fail(why, "rank %d has %lld rows in a batch, rank %d has %lld", rank, (long long)a->rows, all.rank,
		     (long long)b->rows);
	else return false;
	return true;
}

static void want(struct peer *p, void *data, size_t bytes)
{
	p->in = (struct message){.data = data, .wanted = true};
	p->room = bytes;
}

/* ---- receiving ----------------------------------------------------------------------------------------------------- */

/* A head has come: what follows goes where it belongs.  expected: the head that would be right. */
static bool take_head(struct peer *p, int rank, const struct head *expected, char why[SLP_DIST_WHY])
{
	struct message *m = &p->in;
	const struct head *h = &m->head;
	if (h->kind == WAITS) {
		p->waits = true;
		m->done = 0;
		return true;
	}
	if (h->kind == END) return fail(why, "rank %d has ended its part, and rank %d waits for it", rank, all.rank);
	bool text = h->kind == FAREWELL || h->spoilt;
	if (h->kind != FAREWELL && differs(h, expected, rank, why)) return false;
	if (text ? h->bytes > sizeof p->text : h->bytes != p->room)
		return fail(why, "rank %d sent an invalid message", rank);
	if (text) m->data = p->text;
	all.moved = true;
	return true;
}

/* As much as is there; false with the reason. */
static bool receive_some(struct peer *p, int rank, const struct head *expected, char why[SLP_DIST_WHY])
{
	struct message *m = &p->in;
	while (!is_done(m)) {
		bool head = m->done < sizeof m->head;
		size_t at = head ? m->done : m->done - sizeof m->head;
		char *to = head ? (char *)&m->head : m->data;
		ssize_t n = carrier->receive(rank, to + at, (head ? sizeof m->head : m->head.bytes) - at);
		if (n == 0) return true;
		if (n < 0) return fail(why, "lost the connection to rank %d: %s", rank, status_of(errno));
		m->done += (size_t)n;
		all.moved |= !head;
		if (m->done == sizeof m->head && head && !take_head(p, rank, expected, why)) return false;
	}
	if (m->head.kind != FAREWELL) return true;
	p->text[sizeof p->text - 1] = '\0';
	return fail(why, "%s", p->text);
}

/* ---- waiting ------------------------------------------------------------------------------------------------------- */

static bool is_complete(const struct peer *p)
{
	return is_done(&p->in) && is_done(&p->out);
}

/* Tells those whom it holds up that this process only waits. */
static void tell_waiting(uint64_t number)
{
	struct head h = {.kind = WAITS, .number = number};
	for (int r = 0; r < all.size; r++) {
		struct peer *p = &all.peers[r];
		if (!p->there || !is_done(&p->out)) continue;
		post(p, &h, NULL);
		send_some(p);
	}
}

/* Those that hold all up: that have not come, and have not said that they wait. */
static bool blame(const struct head *h, char why[SLP_DIST_WHY])
{
	char list[128] = "";
	size_t n = 0;
	for (int also_waiting = 0; also_waiting < 2 && !n; also_waiting++)
		for (int r = 0; r < all.size; r++) {
			const struct peer *p = &all.peers[r];
			if (!p->there || is_complete(p) || (p->waits && !also_waiting) || n > sizeof list - 16)
				continue;
			n += (size_t)snprintf(list + n, sizeof list - n, "%s%d", n ? ", " : "", r);
		}
	return fail(why, "rank %s did not take part in exchange %llu, %.48s, within %g seconds (SL_DIST_TIMEOUT)", list,
	            (unsigned long long)h->number, h->name, all.timeout);
}

/* Waits for all that are not complete; how many may go on, -1: all are complete. */
static int wait_for_some(double seconds)
{
	int n = 0;
	for (int r = 0; r < all.size; r++) {
		const struct peer *p = &all.peers[r];
		struct slp_interest *i = &all.interests[r];
		*i = (struct slp_interest){.in = p->there && !is_done(&p->in), .out = p->there && !is_done(&p->out)};
		n += i->in || i->out;
	}
	return n ? carrier->wait(all.interests, seconds > 0 ? seconds : 0) : -1;
}

static bool progress(const struct head *expected, char why[SLP_DIST_WHY])
{
	for (int r = 0; r < all.size; r++) {
		struct peer *p = &all.peers[r];
		if (!all.interests[r].ready) continue;
		bool sending = send_some(p);
		int error = errno;
		if (!sending && !p->in.wanted) want(p, NULL, 0); /* it may have said why */
		if (!is_done(&p->in) && !receive_some(p, r, expected, why)) return false;
		if (!sending) return fail(why, "lost the connection to rank %d: %s", r, status_of(error));
	}
	return true;
}

/* Sends and receives all that was posted.  expected: the head of what comes, for each alike. */
static bool exchange(const struct head *expected, char why[SLP_DIST_WHY])
{
	const double patience = 0.6; /* of the timeout, until others are told */
	double last = sl_time();
	bool told = false;
	for (int r = 0; r < all.size; r++) all.peers[r].waits = false;
	if (all.latency > 0) nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * all.latency)}, NULL);
	for (;;) {
		double end = last + all.timeout * (told ? 1 : patience);
		int ready = wait_for_some(end - sl_time());
		if (ready < 0) return true;
		all.moved = false;
		if (ready > 0 && !progress(expected, why)) return false;
		if (all.moved) {
			last = sl_time();
			told = false;
		} else if (sl_time() >= end) {
			if (told) return blame(expected, why);
			told = true;
			tell_waiting(expected->number);
		}
	}
}

/* ---- the transport ------------------------------------------------------------------------------------------------- */

static struct head head_of(const struct slp_exchange *x, enum kind kind, size_t elements)
{
	struct head h = {
	        .kind = kind, .dtype = (uint32_t)x->dtype, .number = x->number, .count = x->count, .rows = x->rows};
	h.bytes = elements * sl_dtype_size(x->dtype);
	snprintf(h.name, sizeof h.name, "%s", x->name);
	return h;
}

/* Elements of a rank's piece begin here. */
static size_t begin(const struct slp_exchange *x, int rank)
{
	if (x->one) return rank > x->rank ? x->count : 0;
	return (size_t)((unsigned __int128)x->count * (unsigned)rank / (unsigned)all.size);
}

static char *place_of(const struct slp_exchange *x, int rank)
{
	return (char *)x->data + begin(x, rank) * sl_dtype_size(x->dtype);
}

static size_t piece_size(const struct slp_exchange *x, int rank)
{
	return begin(x, rank + 1) - begin(x, rank);
}

/* Sends each rank its piece, or the reason why there is none.  kind READY: ranks only say whether theirs are valid. */
static bool collect(const struct slp_exchange *x, enum kind kind, size_t mine, char why[SLP_DIST_WHY])
{
	struct head expected = head_of(x, kind, mine);
	for (int r = 0; r < all.size; r++) {
		if (r == all.rank) continue;
		struct head h = head_of(x, kind, kind == READY ? 0 : piece_size(x, r));
		if (x->spoilt) h.bytes = strlen(x->spoilt) + 1;
		h.spoilt = x->spoilt != NULL;
		post(&all.peers[r], &h, x->spoilt ? x->spoilt : place_of(x, r));
		want(&all.peers[r], all.parts + (size_t)r * expected.bytes, expected.bytes);
	}
	return exchange(&expected, why);
}

/* The sums of all pieces go to all. */
static bool spread(const struct slp_exchange *x, const void *sum, size_t mine, char why[SLP_DIST_WHY])
{
	for (int r = 0; r < all.size; r++) {
		if (r == all.rank) continue;
		struct head h = head_of(x, SUM, mine);
		post(&all.peers[r], &h, sum);
		want(&all.peers[r], place_of(x, r), piece_size(x, r) * sl_dtype_size(x->dtype));
	}
	struct head expected = head_of(x, SUM, 0);
	return exchange(&expected, why);
}

/* Whether anybody has no sound values; then all know that. */
static bool is_spoilt(const struct slp_exchange *x, char why[SLP_DIST_WHY])
{
	for (int r = 0; r < all.size; r++) {
		const char *text = r == all.rank ? x->spoilt : all.peers[r].in.head.spoilt ? all.peers[r].text : NULL;
		if (text) return snprintf(why, SLP_DIST_WHY, "rank %d: %.480s", r, text), true;
	}
	return false;
}

static void *add(const struct slp_exchange *x, size_t mine)
{
	for (int r = 0; r < all.size; r++)
		all.list[r] = r == all.rank ? place_of(x, r) : all.parts + (size_t)r * mine * sl_dtype_size(x->dtype);
	slp_add_tree(all.list, all.size, mine, x->dtype);
	return all.list[0];
}

static bool make_room(size_t bytes, char why[SLP_DIST_WHY])
{
	if (bytes <= all.room) return true;
	char *parts = slp_try_realloc(all.parts, bytes);
	if (!parts) return fail(why, "rank %d has no memory for the others' values", all.rank);
	all.parts = parts;
	all.room = bytes;
	return true;
}

/* By the carrier, which cannot report who is missing, so all ranks meet first.  Counts the bytes of a ring. */
static enum slp_outcome sum_by_carrier(const struct slp_exchange *x, char why[SLP_DIST_WHY])
{
	if (!collect(x, READY, 0, why)) return give_up(why);
	if (is_spoilt(x, why)) return SLP_EXCHANGE_SPOILT;
	sent += 2 * (x->count - piece_size(x, all.rank)) * sl_dtype_size(x->dtype);
	if (carrier->sum(x->data, x->count, sl_dtype_name(x->dtype), all.timeout)) return SLP_EXCHANGED;
	fail(why, "exchange %llu, %.48s, did not end within %g seconds (SL_DIST_TIMEOUT)",
	     (unsigned long long)x->number, x->name, all.timeout);
	return give_up(why);
}

static enum slp_outcome sum_at_once(const struct slp_exchange *x, char why[SLP_DIST_WHY])
{
	size_t mine = piece_size(x, all.rank), bytes = mine * sl_dtype_size(x->dtype);
	*why = '\0';
	if (all.fast && !x->one && carrier->adds(sl_dtype_name(x->dtype))) return sum_by_carrier(x, why);
	if (!make_room(bytes * (size_t)all.size, why) || !collect(x, PIECE, mine, why)) return give_up(why);
	if (is_spoilt(x, why)) return SLP_EXCHANGE_SPOILT;
	void *total = add(x, mine);
	if (total != place_of(x, all.rank)) memcpy(place_of(x, all.rank), total, bytes);
	return x->one || spread(x, total, mine, why) ? SLP_EXCHANGED : give_up(why);
}

/* For one rank, a part after the other: it needs room for those of all. */
static enum slp_outcome sum(const struct slp_exchange *x, char why[SLP_DIST_WHY])
{
	enum { LEAST = 1 << 18 };
	size_t most = x->count / (size_t)all.size > LEAST ? x->count / (size_t)all.size : LEAST;
	struct slp_exchange part = *x;
	enum slp_outcome outcome = SLP_EXCHANGED;
	if (!x->one) return sum_at_once(x, why);
	for (size_t first = 0; outcome == SLP_EXCHANGED && first < x->count; first += most) {
		part.data = (char *)x->data + first * sl_dtype_size(x->dtype);
		part.count = x->count - first < most ? x->count - first : most;
		outcome = sum_at_once(&part, why);
	}
	return outcome;
}

/* Whether a rank gets what another has. */
static bool gets(const struct slp_exchange *x, int rank)
{
	return rank != x->rank && (!x->one || rank == 0);
}

static enum slp_outcome broadcast(const struct slp_exchange *x, char why[SLP_DIST_WHY])
{
	struct head expected = head_of(x, VALUES, x->count), h = expected;
	*why = '\0';
	if (x->spoilt) h.bytes = strlen(x->spoilt) + 1;
	h.spoilt = x->spoilt != NULL;
	for (int r = 0; r < all.size; r++) {
		all.peers[r].in = all.peers[r].out = (struct message){.wanted = false};
		if (all.rank == x->rank && gets(x, r)) post(&all.peers[r], &h, x->spoilt ? x->spoilt : x->data);
	}
	if (gets(x, all.rank)) want(&all.peers[x->rank], x->data, expected.bytes);
	if (!exchange(&expected, why)) return give_up(why);
	return is_spoilt(x, why) ? SLP_EXCHANGE_SPOILT : SLP_EXCHANGED;
}

/* Nothing more is sent to it. */
static void close_out(struct peer *p, double deadline)
{
	struct head h = {.kind = END};
	post(p, &h, NULL);
	while (send_some(p) && !is_done(&p->out) && sl_time() < deadline) carrier->wait(NULL, 1e-3);
}

static void forget(void)
{
	free(all.peers);
	free(all.interests);
	free(all.list);
	free(all.parts);
	memset(&all, 0, sizeof all);
}

static void end(void)
{
	double deadline = sl_time() + (all.broken ? 1 : all.timeout);
	for (int r = 0; !all.broken && r < all.size; r++)
		if (all.peers[r].there) close_out(&all.peers[r], deadline);
	carrier->end(all.broken, deadline);
	forget();
}

static bool make_peers(const struct slp_place *place)
{
	size_t size = (size_t)place->size;
	all.peers = slp_try_calloc(size, sizeof *all.peers);
	all.interests = slp_try_calloc(size, sizeof *all.interests);
	all.list = slp_try_calloc(size, sizeof *all.list);
	if (!all.peers || !all.interests || !all.list) return false;
	all.rank = place->rank;
	all.size = place->size;
	all.timeout = place->timeout;
	all.latency = place->latency;
	all.fast = place->fast && carrier->sum;
	for (int r = 0; r < all.size; r++) all.peers[r].there = r != all.rank;
	return true;
}

static enum sl_status start(struct slp_place *place, char why[SLP_DIST_WHY])
{
	*why = '\0';
	sent = 0;
	if (!carrier->start(place, why)) return SL_EIO;
	if (make_peers(place)) return SL_OK;
	snprintf(why, SLP_DIST_WHY, "no memory for %d ranks", place->size);
	forget();
	carrier->end(true, sl_time());
	return SL_ENOMEM;
}

const struct slp_transport *slp_messages(const struct slp_carrier *c)
{
	static struct slp_transport transport = {NULL, start, sum, broadcast, end, &sent};
	carrier = c;
	transport.name = c->name;
	return &transport;
}
