/* Recurrent layers: sizes and attributes, for CPUs and GPUs. */
#ifndef SLP_RECURRENT_H
#define SLP_RECURRENT_H

#include "starling/primitives.h"

struct slp_recurrent_attrs {
	int cell;     /* enum sl_cell */
	bool reverse; /* from the last step to the first */
};

/* The gates of a unit; the numbers kept of it at each step for the backward pass (cell.h lists them). */
static inline int64_t slp_gates_of(int cell)
{
	return cell == SL_CELL_LSTM ? 4 : cell == SL_CELL_GRU ? 3 : 1;
}

static inline int64_t slp_kept_of(int cell)
{
	return cell == SL_CELL_LSTM ? 5 : cell == SL_CELL_GRU ? 4 : 0;
}

struct slp_recurrent {
	int cell;
	bool reverse;
	int64_t steps, rows, units, gates, kept; /* gates, kept: of all units together */
};

static inline struct slp_recurrent slp_recurrent_of(const void *attrs, sl_shape y)
{
	const struct slp_recurrent_attrs *a = (const struct slp_recurrent_attrs *)attrs;
	struct slp_recurrent r;
	r.cell = a->cell;
	r.reverse = a->reverse;
	r.steps = y.dim[0];
	r.rows = y.dim[1];
	r.units = y.dim[2];
	r.gates = slp_gates_of(a->cell) * r.units;
	r.kept = slp_kept_of(a->cell) * r.units;
	return r;
}

/* The place of the step that is computed as number i. */
static inline int64_t slp_step_at(const struct slp_recurrent *r, int64_t i)
{
	return r->reverse ? r->steps - 1 - i : i;
}

/* The place of the one before it: i > 0. */
static inline int64_t slp_step_before(const struct slp_recurrent *r, int64_t i)
{
	return slp_step_at(r, i - 1);
}

#endif
