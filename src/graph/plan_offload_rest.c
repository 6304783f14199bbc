/* Copies planned beside what rests on the GPU.
 *
 * Between two training steps, parameters and states rest where the step's plan has them.  An evaluation with places of its own
 * would move them, and the next step would wait for all of them.  So an evaluation is planned again when it begins behind
 * another program: resting values keep their places, and parameters that both programs use are not copied.  The plan is kept
 * unless it is slower than the first one by more than the copies that it saves. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "graph/plan_offload.h"
#include "runtime/fault.h"
#include "runtime/memory/arena.h"
#include "runtime/memory/place.h"
#include "runtime/task/buffer.h"
#include "runtime/task/storage.h"

enum { MOST = 8 }; /* times that a plan is made again */

static const struct slp_plan_offload *_Atomic latest; /* whose program ran last */

/* What rests: a value of the program, or a range of memory that others use (value -1). */
struct resting {
	int value;
	struct slp_offload_range at;
};

static int by_address(const void *a, const void *b)
{
	const struct resting *x = a, *y = b;
	return (x->at.begin > y->at.begin) - (x->at.begin < y->at.begin);
}

static int value_of(const struct slp_plan_offload *o, const struct slp_buffer *b)
{
	for (int v = 0; v < o->nvalues; v++)
		if (o->kinds[v] == SLP_OFFLOAD_KEPT && o->now[v] && o->now[v]->buffer == b) return v;
	return -1;
}

/* Others' ranges that touch each other are one. */
static int join(struct resting *rest, int count)
{
	int n = 0;
	for (int i = 0; i < count; i++) {
		if (n && rest[i].value < 0 && rest[n - 1].value < 0 && rest[n - 1].at.end == rest[i].at.begin)
			rest[n - 1].at.end = rest[i].at.end;
		else rest[n++] = rest[i];
	}
	return n;
}

/* Their number, in order of their addresses; -1 without memory. */
static int list_resting(const struct slp_plan_offload *o, struct resting **list)
{
	int count = 0, max = 0;
	for (struct slp_buffer *b = slp_place_next(NULL, o->node); b; b = slp_place_next(b, o->node)) {
		if (!slp_grow((void **)list, &max, count + 1, sizeof **list)) return -1;
		size_t begin = b->place.memory - slp_arena_base(o->node);
		(*list)[count++] = (struct resting){value_of(o, b), {begin, begin + slp_place_bytes(b->bytes)}};
	}
	if (count) qsort(*list, (size_t)count, sizeof **list, by_address);
	return join(*list, count);
}

static uint64_t number_of(const struct resting *rest, int count)
{
	uint64_t n = 1;
	for (int i = 0; i < count; i++) {
		const uint64_t parts[] = {(uint64_t)rest[i].value, rest[i].at.begin, rest[i].at.end};
		for (int k = 0; k < 3; k++) n = (n ^ parts[k]) * 0x9e3779b97f4a7c15u ^ n >> 29;
	}
	return n ? n : 1;
}

/* Whether the plan as it is has something else at that place, or the value at another one. */
static bool moves(const struct slp_plan_offload *o, const struct resting *r)
{
	for (int i = 0; i < o->plan.nstays; i++) {
		const struct slp_offload_stay *s = &o->plan.stays[i];
		bool there = s->offset < r->at.end && r->at.begin < s->offset + o->problem.bytes[s->value];
		if (s->value == r->value ? s->offset != r->at.begin : there) return true;
	}
	return false;
}

/* The bytes that the plan as it is moves. */
static size_t moved_bytes(const struct slp_plan_offload *o, const struct resting *rest, int count)
{
	size_t sum = 0;
	for (int i = 0; i < count; i++)
		if (moves(o, &rest[i])) sum += rest[i].at.end - rest[i].at.begin;
	return sum;
}

/* Room for values that stand for others' ranges; it becomes no smaller, as the present plan may have such values. */
static bool make_values(struct slp_plan_offload *o, int others)
{
	if (others > o->others) o->others = others;
	size_t n = (size_t)o->nvalues + (size_t)o->others + 1;
	size_t *bytes = slp_realloc(o->bytes, n * sizeof *bytes), *fixed = slp_realloc(o->fixed, n * sizeof *fixed);
	if (bytes) o->bytes = bytes;
	if (fixed) o->fixed = fixed;
	enum slp_offload_kind *kinds = slp_realloc(o->kinds, n * sizeof *kinds);
	if (kinds) o->kinds = kinds;
	struct slp_storage **now = slp_realloc(o->now, n * sizeof(*now));
	if (now) o->now = now;
	o->problem.bytes = o->bytes;
	o->problem.kind = o->kinds;
	if (o->problem.fixed) o->problem.fixed = o->fixed;
	if (!bytes || !fixed || !kinds || !now) return false;
	for (size_t v = 0; v < n; v++) fixed[v] = SLP_OFFLOAD_ANYWHERE;
	return true;
}

/* The same problem beside what rests. */
static struct slp_offload_problem beside(struct slp_plan_offload *o, const struct resting *rest, int count)
{
	struct slp_offload_problem p = o->problem;
	p.fixed = o->fixed;
	p.nvalues = o->nvalues;
	for (int i = 0; i < count; i++) {
		int v = rest[i].value >= 0 ? rest[i].value : p.nvalues++;
		o->fixed[v] = rest[i].at.begin;
		if (rest[i].value >= 0) continue;
		o->bytes[v] = rest[i].at.end - rest[i].at.begin;
		o->kinds[v] = SLP_OFFLOAD_KEPT;
		o->now[v] = NULL;
	}
	return p;
}

/* Beside all of it, if that is not much slower. */
static void plan_beside(sl_plan *p, const struct resting *rest, int count)
{
	struct slp_plan_offload *o = p->offload;
	struct slp_offload plan = {0};
	size_t moved = moved_bytes(o, rest, count), need;
	int unit;
	if (!moved || !make_values(o, count)) return;
	struct slp_offload_problem problem = beside(o, rest, count);
	problem.room = slp_arena_bytes(o->node);
	bool ok = slp_offload_plan(&problem, &plan, &unit, &need) &&
	          plan.seconds <= o->plan.seconds + (double)moved / problem.in_bytes;
	slp_offload_clear(ok ? &o->plan : &plan);
	if (!ok) return;
	o->plan = plan;
	o->problem = problem;
	slp_plan_offload_note(p);
}

void slp_plan_offload_rest(sl_plan *p)
{
	struct slp_plan_offload *o = p->offload;
	struct slp_pending before;
	struct resting *rest = NULL;
	o->behind = latest && latest != o;
	latest = o;
	if (!o->behind || p->changes || o->again >= MOST) return;
	slp_error_set_aside(&before);
	int count = list_resting(o, &rest);
	uint64_t number = count > 0 ? number_of(rest, count) : o->beside;
	if (number != o->beside) {
		o->beside = number;
		o->again++;
		plan_beside(p, rest, count);
	}
	free(rest);
	sl_error_clear(); /* without memory the plan stays as it was */
	slp_error_rejoin(&before);
}

void slp_plan_offload_forget(const struct slp_plan_offload *o)
{
	atomic_compare_exchange_strong(&latest, &o, NULL);
}
