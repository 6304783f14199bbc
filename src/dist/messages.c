/* Messages over a carrier, one at a time in each direction of each pair of processes.  Each message names its
 * purpose, so that processes that make different calls are detected, whatever the messages contain.
 *
 * A rank that has waited for most of the timeout tells the others that it is waiting, so that they do not report it
 * as the one that delays them. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "dist/messages.h"
#include "number.h"
#include "starling/tensor.h"

struct slp_peers slp_peers;

static const char *status_of(int error)
{
	return error ? strerror(error) : "it has closed the connection";
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static size_t length(const struct slp_message *m)
{
	return sizeof m->head + m->head.bytes;
}

bool slp_is_done(const struct slp_message *m)
{
	return !m->wanted || (m->done >= sizeof m->head && m->done == length(m));
}

void slp_post(struct slp_peer *p, const struct slp_head *head, const void *data)
{
	p->out = (struct slp_message){.head = *head, .data = (char *)(uintptr_t)data, .wanted = true};
}

static int rank_of(const struct slp_peer *p)
{
	return (int)(p - slp_peers.list);
}

/* As much as goes without waiting; false: the connection is over. */
static bool send_some(struct slp_peer *p)
{
	struct slp_message *m = &p->out;
	while (!slp_is_done(m)) {
		size_t head = m->done < sizeof m->head ? sizeof m->head - m->done : 0;
		size_t at = head ? 0 : m->done - sizeof m->head;
		struct iovec parts[] = {{(char *)&m->head + sizeof m->head - head, head},
		                        {m->data + at, m->head.bytes - at}};
		ssize_t n = slp_peers.carrier->send(rank_of(p), parts + !head, head ? 1 + (m->head.bytes > 0) : 1);
		if (n <= 0) return n == 0;
		m->done += (size_t)n;
		slp_peers.sent += (uint64_t)n;
		slp_peers.moved |= m->head.kind != SLP_WAITS;
	}
	return true;
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

bool slp_dist_fail(char why[SLP_DIST_WHY], const char *format, ...)
{
	if (!*why) SLP_FORMAT(why, SLP_DIST_WHY, format);
	return false;
}

/* Tells all why, as far as they listen; they get it before they see the connection end. */
static void say_farewell(const char *why)
{
	double end = sl_time() + 0.5;
	struct slp_head h = {.kind = SLP_FAREWELL, .bytes = strlen(why) + 1};
	for (int r = 0; r < slp_peers.size; r++) {
		struct slp_peer *p = &slp_peers.list[r];
		if (!p->there) continue;
		bool ok = true;
		while ((ok = send_some(p)) && !slp_is_done(&p->out) && sl_time() < end)
			slp_peers.carrier->wait(NULL, 1e-3);
		if (!ok || !slp_is_done(&p->out)) continue;
		slp_post(p, &h, why);
		send_some(p);
	}
}

enum slp_outcome slp_give_up(const char *why)
{
	slp_peers.broken = true;
	say_farewell(why);
	return SLP_DIST_BROKEN;
}

/* The difference between two ranks. */
static bool differs(const struct slp_head *a, const struct slp_head *b, int rank, char why[SLP_DIST_WHY])
{
	bool same = a->number == b->number && !strncmp(a->name, b->name, sizeof a->name);
	if (same && (a->kind == SLP_READY) != (b->kind == SLP_READY))
		slp_dist_fail(why, "rank %d and rank %d have different values of SL_DIST_ORDER", rank, slp_peers.rank);
	else if (a->number != b->number || a->kind != b->kind || strncmp(a->name, b->name, sizeof a->name))
		slp_dist_fail(why, "rank %d is at exchange %llu, %.48s, rank %d at exchange %llu, %.48s", rank,
		              (unsigned long long)a->number, a->name, slp_peers.rank, (unsigned long long)b->number,
		              b->name);
	else if (a->count != b->count || a->dtype != b->dtype)
		slp_dist_fail(why, "%.48s has %llu elements of type %s on rank %d, %llu of type %s on rank %d", a->name,
		              (unsigned long long)a->count, sl_dtype_name((enum sl_dtype)a->dtype), rank,
		              (unsigned long long)b->count, sl_dtype_name((enum sl_dtype)b->dtype), slp_peers.rank);
	else if (a->rows != b->rows)
		slp_dist_fail(why, "rank %d has %lld rows in a batch, rank %d has %lld", rank, (long long)a->rows,
		              slp_peers.rank, (long long)b->rows);
	else if (a->lr != b->lr)
		slp_dist_fail(why, "rank %d has the learning rate %g, rank %d has %g (sl_trainer_set_lr)", rank, a->lr,
		              slp_peers.rank, b->lr);
	else return false;
	return true;
}

void slp_want(struct slp_peer *p, enum slp_message_kind kind, void *data, size_t bytes, bool parts)
{
	p->in = (struct slp_message){.data = data, .wanted = true};
	p->kind = kind;
	p->room = bytes;
	p->parts = parts;
}

/* ---- receiving --------------------------------------------------------------------------------------------------- */

/* Whether this number of bytes may follow. */
static bool has_room(const struct slp_peer *p, const struct slp_head *h)
{
	if (h->kind == SLP_FAREWELL || h->spoilt) return h->bytes <= sizeof p->text;
	if (!p->parts || !p->room) return h->bytes == p->room;
	return h->bytes > 0 && h->bytes <= p->room && h->bytes % sl_dtype_size((enum sl_dtype)h->dtype) == 0;
}

/* A head has come: the data after it goes to its destination.  expected: the right head, except its kind. */
static bool take_head(struct slp_peer *p, int rank, const struct slp_head *expected, char why[SLP_DIST_WHY])
{
	struct slp_message *m = &p->in;
	const struct slp_head *h = &m->head;
	if (h->kind == SLP_WAITS) {
		p->waits = true;
		m->done = 0;
		return true;
	}
	if (h->kind == SLP_END)
		return slp_dist_fail(why, "rank %d has ended its part, and rank %d waits for it", rank, slp_peers.rank);
	struct slp_head right = *expected;
	right.kind = p->kind;
	if (h->kind != SLP_FAREWELL && differs(h, &right, rank, why)) return false;
	if (!has_room(p, h)) return slp_dist_fail(why, "rank %d sent an invalid message", rank);
	if (h->kind == SLP_FAREWELL || h->spoilt) m->data = p->text;
	p->spoilt = h->spoilt;
	slp_peers.moved = true;
	return true;
}

/* As much as is there; false with the reason. */
static bool receive_some(struct slp_peer *p, int rank, const struct slp_head *expected, char why[SLP_DIST_WHY])
{
	struct slp_message *m = &p->in;
	while (!slp_is_done(m)) {
		bool head = m->done < sizeof m->head;
		size_t at = head ? m->done : m->done - sizeof m->head;
		char *to = head ? (char *)&m->head : m->data;
		ssize_t n = slp_peers.carrier->receive(rank, to + at, (head ? sizeof m->head : m->head.bytes) - at);
		if (n == 0) return true;
		if (n < 0) return slp_dist_fail(why, "lost the connection to rank %d: %s", rank, status_of(errno));
		m->done += (size_t)n;
		slp_peers.moved |= !head;
		if (m->done == sizeof m->head && head && !take_head(p, rank, expected, why)) return false;
	}
	if (m->head.kind != SLP_FAREWELL) return true;
	p->text[sizeof p->text - 1] = '\0';
	return slp_dist_fail(why, "%s", p->text);
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

static bool is_complete(const struct slp_peer *p)
{
	return slp_is_done(&p->in) && slp_is_done(&p->out);
}

/* Tells those whom it holds up that this process only waits. */
void slp_tell_waiting(uint64_t number)
{
	struct slp_head h = {.kind = SLP_WAITS, .number = number};
	for (int r = 0; r < slp_peers.size; r++) {
		struct slp_peer *p = &slp_peers.list[r];
		if (!p->there || !slp_is_done(&p->out)) continue;
		slp_post(p, &h, NULL);
		send_some(p);
	}
}

/* The ranks that delay all: those that have not come, and have not reported that they wait. */
static bool blame(const struct slp_head *h, char why[SLP_DIST_WHY])
{
	char list[SLP_CARRIER_RANKS] = "";
	for (int also_waiting = 0; also_waiting < 2 && !*list; also_waiting++)
		for (int r = 0; r < slp_peers.size; r++) {
			const struct slp_peer *p = &slp_peers.list[r];
			if (p->there && !is_complete(p) && (!p->waits || also_waiting)) slp_add_rank(list, r);
		}
	return slp_dist_fail(
	        why, "rank%s %s did not take part in exchange %llu, %.48s, within %g seconds (SL_DIST_TIMEOUT)",
	        slp_several(list) ? "s" : "", list, (unsigned long long)h->number, h->name, slp_peers.timeout);
}

/* Waits for all incomplete ranks; returns the number of those that can continue, -1: all are complete. */
static int wait_for_some(double seconds)
{
	int n = 0;
	for (int r = 0; r < slp_peers.size; r++) {
		const struct slp_peer *p = &slp_peers.list[r];
		struct slp_interest *i = &slp_peers.interests[r];
		*i = (struct slp_interest){.in = p->there && !slp_is_done(&p->in),
		                           .out = p->there && !slp_is_done(&p->out)};
		n += i->in || i->out;
	}
	return n ? slp_peers.carrier->wait(slp_peers.interests, seconds > 0 ? seconds : 0) : -1;
}

static bool progress(const struct slp_head *expected, char why[SLP_DIST_WHY])
{
	for (int r = 0; r < slp_peers.size; r++) {
		struct slp_peer *p = &slp_peers.list[r];
		if (!slp_peers.interests[r].ready) continue;
		bool sending = send_some(p);
		int error = errno;
		if (!sending && !p->in.wanted) slp_want(p, p->kind, NULL, 0, false); /* it may have said why */
		if (!slp_is_done(&p->in) && !receive_some(p, r, expected, why)) return false;
		if (!sending) return slp_dist_fail(why, "lost the connection to rank %d: %s", r, status_of(error));
	}
	return true;
}

void slp_be_late(void)
{
	if (slp_peers.latency > 0) nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * slp_peers.latency)}, NULL);
}

bool slp_exchange_messages(const struct slp_head *expected, void (*more)(void *), void *arg, char why[SLP_DIST_WHY])
{
	const double quiet = 0.6; /* of the patience, until others are told */
	double last = sl_time();
	bool told = false;
	for (int r = 0; r < slp_peers.size; r++) slp_peers.list[r].waits = slp_peers.list[r].spoilt = false;
	slp_be_late();
	for (;;) {
		double end = last + slp_peers.patience * (told ? 1 : quiet);
		if (more) more(arg);
		int ready = wait_for_some(end - sl_time());
		if (ready < 0) return true;
		slp_peers.moved = false;
		if (ready > 0 && !progress(expected, why)) return false;
		if (slp_peers.moved) {
			last = sl_time();
			told = false;
		} else if (sl_time() >= end) {
			if (told) return blame(expected, why);
			told = true;
			slp_tell_waiting(expected->number);
		}
	}
}

/* ---- while no messages are awaited ------------------------------------------------------------------------------- */

/* The unread data of a rank: its head and the text of a farewell. */
struct glance {
	struct slp_head head;
	char text[SLP_DIST_WHY];
};

static ssize_t glance_at(int rank, struct glance *g)
{
	memset(g, 0, sizeof *g);
	ssize_t n = slp_peers.carrier->peek(rank, g, sizeof *g - 1);
	if (n < (ssize_t)sizeof g->head) g->head.kind = 0;
	return n;
}

bool slp_look_at_others(char why[SLP_DIST_WHY])
{
	struct glance g;
	for (int r = 0; r < slp_peers.size; r++) {
		if (!slp_peers.list[r].there) continue;
		if (glance_at(r, &g) < 0)
			return slp_dist_fail(why, "lost the connection to rank %d: %s", r, status_of(errno));
		if (g.head.kind == SLP_FAREWELL) return slp_dist_fail(why, "%s", g.text);
	}
	return true;
}

bool slp_blame_silent(const struct slp_exchange *x, char why[SLP_DIST_WHY])
{
	struct slp_head h = {.number = x->number};
	struct glance g;
	bool silent = false;
	snprintf(h.name, sizeof h.name, "%s", x->name);
	for (int r = 0; r < slp_peers.size; r++) {
		struct slp_peer *p = &slp_peers.list[r];
		p->in.wanted = p->there && glance_at(r, &g) == 0;
		p->in.done = 0;
		silent |= p->in.wanted;
	}
	if (silent) return blame(&h, why);
	return slp_dist_fail(why, "exchange %llu, %.48s, did not end within %g seconds (SL_DIST_TIMEOUT)",
	                     (unsigned long long)x->number, x->name, slp_peers.timeout);
}

void slp_close_out(struct slp_peer *p, double deadline)
{
	struct slp_head h = {.kind = SLP_END};
	slp_post(p, &h, NULL);
	while (send_some(p) && !slp_is_done(&p->out) && sl_time() < deadline) slp_peers.carrier->wait(NULL, 1e-3);
}
