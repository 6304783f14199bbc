/* Values in a file: the order of their uses, and which leave and which come.
 *
 * Each task says when it is submitted which values it will use, so the future is known as far as the program runs ahead.
 * The value whose next use is latest leaves (L. Belady, "A study of replacement algorithms for a virtual-storage computer",
 * 1966). */
#include <stdlib.h>

#include "alloc.h"
#include "runtime/memory/spill_values.h"

uint64_t slp_spilled_next_use(const struct slp_spilled *s)
{
	return s->count ? s->uses[s->first] : UINT64_MAX;
}

/* Without memory to note it, the value is taken for one that is not used soon. */
void slp_spilled_will_be_used(struct slp_spilled *s, uint64_t task)
{
	if (s->count == s->most) {
		int most = s->most ? 2 * s->most : 8;
		uint64_t *more = slp_try_malloc((size_t)most * sizeof *more);
		if (!more) return;
		for (int i = 0; i < s->count; i++) more[i] = s->uses[(s->first + i) % s->most];
		free(s->uses);
		s->uses = more;
		s->first = 0;
		s->most = most;
	}
	s->uses[(s->first + s->count++) % s->most] = task;
}

void slp_spilled_forget_uses(struct slp_spilled *s, uint64_t task)
{
	while (s->count && s->uses[s->first] <= task) {
		s->first = (s->first + 1) % s->most;
		s->count--;
	}
}

static bool may_leave(const struct slp_spilled *s)
{
	return s->memory && !s->held && !s->busy && !s->asked;
}

/* Whose next use is latest; of those without one, the one that was used longest ago. */
struct slp_spilled *slp_spill_victim(void)
{
	struct slp_spilled *best = NULL;
	for (struct slp_spilled *s = slp_spill.all; s; s = s->next) {
		if (!may_leave(s)) continue;
		uint64_t a = slp_spilled_next_use(s), b = best ? slp_spilled_next_use(best) : 0;
		if (!best || a > b || (a == b && s->last < best->last)) best = s;
	}
	return best;
}

/* What a task waits for; else what will be read next and is not in memory; NULL: nothing. */
struct slp_spilled *slp_spill_next_to_come(bool *now)
{
	struct slp_spilled *best = NULL;
	for (struct slp_spilled *s = slp_spill.all; s; s = s->next) {
		if (s->memory || s->busy) continue;
		if (s->asked) return *now = true, s;
		if (s->in_file && s->count && (!best || slp_spilled_next_use(s) < slp_spilled_next_use(best))) best = s;
	}
	return *now = false, best;
}
