/* Programs for tests of the plan of copies, and a device that carries plans out. */
#ifndef SLP_TESTS_OFFLOAD_PROBLEM_H
#define SLP_TESTS_OFFLOAD_PROBLEM_H

#include "graph/offload.h"

enum { SLP_MAX_UNITS = 400, SLP_MAX_USES = 8, SLP_MAX_VALUES = 900 };

struct slp_problem {
	struct slp_offload_problem p;
	struct slp_offload_unit units[SLP_MAX_UNITS];
	struct slp_offload_use uses[SLP_MAX_UNITS][SLP_MAX_USES];
	size_t bytes[SLP_MAX_VALUES];
	enum slp_offload_kind kind[SLP_MAX_VALUES];
};

/* A number below n, the same ones from the same state. */
unsigned slp_problem_draw(unsigned *state, unsigned n);
/* Units of 50 ms without values, and a link of 1 KB/s each way. */
void slp_problem_begin(struct slp_problem *q, int nunits);
/* A new value; its number. */
int slp_problem_value(struct slp_problem *q, size_t bytes, enum slp_offload_kind kind);
void slp_problem_use(struct slp_problem *q, int unit, int value, bool write);
bool slp_problem_uses(const struct slp_problem *q, int unit, int value);
/* The most that a unit (units: 1), or two neighbours (2), need. */
size_t slp_problem_need(const struct slp_problem *q, int units);
/* Forward, backward: each layer's result is used again in the reverse order. */
void slp_problem_chain(struct slp_problem *q, int layers, unsigned *state);
/* A plan of copies with times; a check that there is one. */
bool slp_problem_plan(const struct slp_problem *q, struct slp_offload *o);
/* Checks that three runs of the plan are possible, and that the last one copies what the plan expects. */
bool slp_problem_check(const struct slp_problem *q, const struct slp_offload *o);

#endif
