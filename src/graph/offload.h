/* Copies between a device and main memory, planned for a program whose values do not all fit on the device.
 *
 * A program is a chain of units that run one after the other, again and again.  While one unit runs, the next one is
 * submitted, so the values of two neighbours are on the device together; more are, if nothing leaves for them.  Between two
 * uses a value may be away: that is a gap.  offload_choose.c chooses the gaps, by bytes alone; offload_when.c decides when
 * copies begin, by time.  Both know nothing of tasks; plan_offload.c makes the problem of a plan and carries out the
 * result. */
#ifndef SLP_OFFLOAD_H
#define SLP_OFFLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "graph/graph.h"
#include "runtime/memory/place.h"

enum { SLP_OFFLOAD_SMALL = SLP_PLACE_SMALL }; /* bytes of values that always stay */

enum slp_offload_kind {
	SLP_OFFLOAD_LOCAL,  /* written by its first unit, of no use after the last one */
	SLP_OFFLOAD_RESULT, /* written by its first unit, used after the program */
	SLP_OFFLOAD_SENT,   /* the same, in main memory alone: it leaves after its last use */
	SLP_OFFLOAD_KEPT,   /* a parameter or constant: it lives from run to run */
	SLP_OFFLOAD_INPUT,  /* comes from main memory, of no use after the last unit */
};
static inline bool slp_offload_is_result(enum slp_offload_kind kind)
{
	return kind == SLP_OFFLOAD_RESULT || kind == SLP_OFFLOAD_SENT;
}
struct slp_offload_use {
	int value;
	bool write;
};
struct slp_offload_unit {
	const struct slp_offload_use *uses; /* of different values */
	int nuses;
	double seconds;
	int calls; /* of operations, which the thread that submits prepares one after the other */
};
struct slp_offload_problem {
	const struct slp_offload_unit *units;
	int nunits;
	const size_t *bytes; /* of each value */
	const enum slp_offload_kind *kind;
	int nvalues;
	size_t room;     /* bytes on the device, for the choice of gaps */
	size_t places;   /* the same for places, which may waste some; 0: as many as they take */
	size_t most;     /* all that the device has, for values that leave later and come back earlier; 0: the same */
	bool farthest;   /* the value whose next use is farthest away leaves, even if others would save copies */
	bool one_by_one; /* copies get time one after the other, beside places; else all at once, by bytes first */
	const double
	        *begin; /* of each unit and of the next run, with waits, as a plan predicts them; NULL: nothing waits */
	const size_t *fixed;            /* by value: its place, where it stays all the time; NULL: no value has one */
	double together;                /* part of the room that two neighbours may take; 0: all of it */
	double out_bytes, in_bytes;     /* a second, over the link, each way */
	double out_latency, in_latency; /* seconds */
};

/* Not fixed. */
#define SLP_OFFLOAD_ANYWHERE ((size_t)-1)
static inline bool slp_offload_is_fixed(const struct slp_offload_problem *p, int value)
{
	return p->fixed && p->fixed[value] != SLP_OFFLOAD_ANYWHERE;
}

/* A value is away from the device between two uses. */
struct slp_offload_gap {
	int value;
	int after, before;   /* units that use it; before is at least nunits if that is in the next run */
	int from;            /* away from position `from` to position before - 1; positions count like units */
	int written;         /* the unit that wrote it last, perhaps in the previous run; -1: main memory has it */
	int copies;          /* gaps since it was written share one copy to main memory: the number of the first */
	bool returns;        /* false: a result that is not used again in the program */
	bool chosen, always; /* always: in any case */
	int copy, drop,
	        fetch; /* positions: its copy to main memory begins (only of the first that is chosen since it was
	                           * written, else -1), it leaves, its copy back begins */
};

/* The steps before unit i is submitted: those from first[i] to before first[i + 1].  The previous run has ended. */
struct slp_offload_step {
	enum { SLP_OFFLOAD_COPY, SLP_OFFLOAD_DROP, SLP_OFFLOAD_PLACE, SLP_OFFLOAD_FETCH } what;
	int value;
	size_t offset; /* of its place */
	int ended;     /* the unit of this run that ends before it; negative: none */
};
enum { SLP_OFFLOAD_AHEAD = 8 }; /* so many units may be submitted and not ended, if no step waits for one of them */
/* A value is on the device from position `begin` to before position `end`, which may be in the next run: at this offset. */
struct slp_offload_stay {
	int value, begin, end;
	int after, before; /* the chosen gaps around it; -1: none, or it is cut short */
	size_t offset;
	uint64_t parts; /* of 64 parts of the run, in which of them it is there: others need not be looked at */
};
struct slp_offload_range {
	size_t begin, end;
};
struct slp_offload {
	bool *alone; /* by unit: the previous unit ends before it is submitted */
	struct slp_offload_gap *gaps;
	int ngaps;
	int *first;
	struct slp_offload_step *steps;
	int nsteps;
	struct slp_offload_stay *stays;
	int nstays;
	struct slp_offload_range *taken; /* room for one of each stay */
	size_t largest;                  /* bytes of a stay */
	size_t height;                   /* bytes that all of them take, with their offsets */
	size_t *used;                    /* bytes on the device, by position */
	size_t out_bytes, in_bytes;      /* of a run */
	size_t peak;
	double seconds, busy; /* of a run, as predicted; of its units alone */
	double *begin;        /* of each unit and of the next run, as predicted */
};

/* False without memory, or if a unit does not fit: *unit is its number (else -1), *need its bytes. */
bool slp_offload_choose(const struct slp_offload_problem *p, struct slp_offload *o, int *unit, size_t *need);
/* After that: when copies begin; and the prediction. */
bool slp_offload_when(const struct slp_offload_problem *p, struct slp_offload *o);
/* offload_place.c, parts of it: offsets of all stays, in a fraction of a second if thorough; false without memory. */
bool slp_offload_place(const struct slp_offload_problem *p, struct slp_offload *o, bool thorough);
/* The stay begins and ends so many positions earlier and later, at another offset if necessary; false: it cannot. */
bool slp_offload_stretch(const struct slp_offload_problem *p, struct slp_offload *o, int stay, int earlier, int later);
/* Moves small values down from the upper end, as far as memory is free between them and the others; sets the height. */
void slp_offload_sink(const struct slp_offload_problem *p, struct slp_offload *o);
/* Seconds of a run in which units wait for copies, as predicted. */
double slp_offload_exposed(const struct slp_offload_problem *p, const struct slp_offload *o);
void slp_offload_clear(struct slp_offload *o);

/* offload_ways.c: both, with places for all values; p->room becomes what is left beside gaps between places.  False: *unit
 * needs *need bytes; or *unit is -1, and the values need them in one piece, or there is no memory if *need is 0. */
bool slp_offload_fit(struct slp_offload_problem *p, struct slp_offload *o, int *unit, size_t *need);
/* The same in several ways; the plan that should run fastest. */
bool slp_offload_plan(struct slp_offload_problem *p, struct slp_offload *o, int *unit, size_t *need);

/* offload_early.c: sums come as soon as they can. */
enum sl_status slp_offload_early(sl_graph *g);

/* A value is computed again if that takes at most so many times as long as its copy over the link: `early` times if it is made
 * in the first part `until` of the time to the moment at which most bytes are of use, `late` times if later. */
struct slp_offload_again {
	double early, late, until;
};
/* offload_recompute.c: of values of at least `least` bytes that lie unused for longer than their copy takes, at `link` bytes
 * a second.  *repeated: the number of operations that the program has more. */
enum sl_status slp_offload_recompute(sl_graph *g, double link, struct slp_offload_again which, size_t least,
                                     int *repeated);

#endif
