/* CPU teams: the cores of the machine are distributed over the CPU workers; a worker's kernels run on all cores of its
 * team.
 *
 * A worker's mask is that of its whole team, and so are those of the threads that OpenMP makes for it, because threads
 * inherit masks.  None is bound to a core of its own: libgomp ends the surplus threads of a pool at each smaller region,
 * and oneDNN asks for regions of any size, so threads come and go; those that a bound thread made later were all on its
 * core.  Unbound threads also go round a core that another program uses. */
#include <dlfcn.h>
#include <omp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "op.h"
#include "runtime/compat.h"
#include "runtime/device/cores.h"
#include "runtime/device/idle.h"
#include "runtime/device/team.h"
#include "runtime/device/throttle.h"
#include "runtime/engine.h"
#include "runtime/settings/environment.h"

struct team {
	int index, threads;
	unsigned serial; /* of all that were made; a worker of another start of the engine may have the same index */
	hwloc_bitmap_t cores;
};

static struct team teams[SLP_MAX_TEAMS]; /* each is its worker's */
static atomic_uint serials;
static _Thread_local const struct team *team; /* that this worker heads; NULL: it has not entered it yet */
static _Thread_local unsigned bound;          /* the serial of the team whose mask this thread was given */
static _Thread_local int64_t used_until;      /* the team's threads may poll for work, in ms */

void slp_team_stacks(void)
{
	enum { LEAST = 2 << 20 };
	pthread_attr_t a;
	size_t bytes;
	if (pthread_getattr_default_np(&a)) return;
	if (!pthread_attr_getstacksize(&a, &bytes) && bytes < LEAST && !pthread_attr_setstacksize(&a, LEAST))
		(void)pthread_setattr_default_np(&a); /* the small ones may do */
	pthread_attr_destroy(&a);
}

/* ---- distribution ------------------------------------------------------------------------------------------------ */

int slp_team_cores_total(void)
{
	return slp_cores()->count;
}

static int count_teams(void)
{
	int n = slp_engine.nteams - slp_engine.nslaves;
	return n > 0 ? n : 1;
}

/* The part-th of `parts` equal parts of the cores from `first` on; parts share cores where there are too few. */
static int part_of(int first, int cores, int part, int parts, int *count)
{
	int begin = part * cores / parts, end = (part + 1) * cores / parts;
	*count = end > begin ? end - begin : 1;
	return first + begin;
}

/* The cores of a NUMA node, which follow each other. */
static int node_range(int node, int *count)
{
	int first = 0, all = slp_team_cores_total();
	while (first < all && slp_core_node(first) != node) first++;
	for (*count = 0; first + *count < all && slp_core_node(first + *count) == node;) ++*count;
	return first;
}

/* Whether each team stays on one NUMA node: their number is that of the nodes, or a multiple, and no node, of which others
 * have taken some cores, would give its teams less than half of what another one gives. */
static bool by_nodes(int n, int nodes)
{
	int fewest = slp_team_cores_total(), most = 0, cores;
	if (nodes < 2 || n % nodes) return false;
	for (int i = 0; i < nodes; i++) {
		node_range(i, &cores);
		if (cores < fewest) fewest = cores;
		if (cores > most) most = cores;
	}
	return fewest >= n / nodes && 2 * fewest >= most;
}

/* The first core of a team, and its number of cores. */
static int team_range(int index, int *count)
{
	int n = count_teams(), nodes = slp_cores()->nodes;
	if (!by_nodes(n, nodes)) return part_of(0, slp_team_cores_total(), index, n, count);
	int each = n / nodes, cores, first = node_range(index / each, &cores);
	return part_of(first, cores, index % each, each, count);
}

int slp_team_cores(int index)
{
	int count;
	team_range(index, &count);
	return count;
}

void slp_team_nodes(int index, hwloc_bitmap_t nodes)
{
	int count, first = team_range(index, &count);
	slp_cores_nodes(first, count, nodes);
}

/* This team's part of a bound on all threads of the process. */
static int least(int threads, double all, int index)
{
	int n = count_teams(), whole = all < 1 ? 1 : (int)(all + 0.5);
	int part = (index + 1) * whole / n - index * whole / n;
	if (all <= 0 || part >= threads) return threads;
	return part > 0 ? part : 1;
}

int slp_team_threads(int index)
{
#ifdef SLP_ONE_THREAD /* ThreadSanitizer does not see how OpenMP's threads wait for each other */
	return 1;
#endif
	const struct slp_cores *c = slp_cores();
	if (c->team_threads) return c->team_threads;
	int threads = least(slp_team_cores(index), c->quota, index);
	if (c->openmp_threads && c->openmp_threads < threads) threads = c->openmp_threads;
	return c->thread_limit && c->thread_limit < threads ? c->thread_limit : threads;
}

bool slp_team_mask(int index, hwloc_bitmap_t set)
{
	int count, first = team_range(index, &count);
	slp_cores_set(first, slp_env_unbound() ? 0 : count, set);
	return !hwloc_bitmap_iszero(set);
}

/* ---- the team's threads ------------------------------------------------------------------------------------------ */

static void bind_now(const struct team *t)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL); /* a kernel may tell programs which thread it is */
	bound = t->serial;
	if (t->cores) slp_cores_bind(t->cores);
}

/* A thread that has joined since; with OMP_PROC_BIND any, for OpenMP binds threads when it likes. */
static void bind_to(const struct team *t)
{
	if (bound != t->serial || slp_cores()->openmp_binds) bind_now(t);
}

/* clang links with it, and conda's environments have it in place of libgomp.  (A weak symbol would be 0 in programs that
 * are linked with libgomp.) */
bool slp_team_by_llvm(void)
{
	return dlsym(RTLD_DEFAULT, "kmp_get_blocktime") != NULL;
}

/* Before OpenMP makes threads, which inherit the mask; and after, where it gives them, and this one, another. */
static void bind_all(const struct team *t)
{
	bind_now(t);
#pragma omp parallel num_threads(t->threads)
	bind_now(t);
}

/* Workers of slave processes have no cores here. */
static void set_up(struct team *t)
{
	t->serial = atomic_fetch_add(&serials, 1) + 1;
	t->threads = slp_team_threads(t->index);
	if (!t->cores) t->cores = hwloc_bitmap_alloc(); /* for the next start, too */
	if (!t->cores || !slp_team_mask(t->index, t->cores)) return;
	if (slp_team_by_llvm()) bind_all(t); /* it gives all threads the mask that the process had */
	else bind_now(t);
}

static const struct team *my_team(void)
{
	static const struct team none = {.index = -1, .threads = 1};
	int worker = starpu_worker_get_id(), i = 0;
	while (i < slp_engine.nteams && slp_engine.team_worker[i] != worker) i++;
	if (i == slp_engine.nteams) return &none;
	teams[i].index = i;
	teams[i].threads = 1;
	if (i < count_teams()) set_up(&teams[i]);
	return &teams[i];
}

void slp_team_enter(void)
{
	if (!team) {
		team = my_team();
		omp_set_dynamic(0); /* oneDNN counts on the threads that it asks for */
		omp_set_num_threads(team->threads);
	}
	if (slp_cores()->openmp_binds && team->index >= 0 && team->cores) bind_all(team);
}

/* Its threads stay where they are. */
static _Thread_local struct team borrowed;

bool slp_team_borrow(void)
{
	int n = omp_get_max_threads();
	if (team || slp_engine.nteams != 1 || n != slp_team_threads(0)) return false;
	borrowed.threads = n;
	team = &borrowed;
	return true;
}

void slp_team_return(void)
{
	team = NULL;
}

int slp_team_index(void)
{
	return team ? team->index : 0;
}

int slp_team_size(void)
{
	return team ? team->threads : 1;
}

/* OpenMP's threads poll for some milliseconds after each parallel region, then sleep. */
enum { POLLING_MS = 20 };

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void slp_team_used(void)
{
	int64_t now = now_ms();
	used_until = now + POLLING_MS;
	slp_throttle_look(now);
}

bool slp_team_polls(void)
{
	return slp_team_size() > 1 && now_ms() <= used_until;
}

/* Threads that sleep are left asleep: this would wake them. */
void slp_team_yield(void)
{
	slp_throttle_given_away(now_ms());
	if (!slp_team_polls()) {
		sched_yield();
		return;
	}
	atomic_fetch_add_explicit(&slp_idle_counts.team_yields, 1, memory_order_relaxed);
#pragma omp parallel num_threads(slp_team_size())
	sched_yield();
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

/* A thread's first pieces; others take some of them once they have done their own. */
struct share {
	_Alignas(64) _Atomic int64_t next; /* piece */
	int64_t end;
};

struct loop {
	int64_t n, grain, chunks, pieces;
	void (*fn)(void *arg, int64_t begin, int64_t end);
	void *arg;
};

static void run_pieces(const struct loop *l, struct share *s)
{
	for (;;) {
		if (atomic_load_explicit(&s->next, memory_order_relaxed) >= s->end) return;
		int64_t p = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed);
		if (p >= s->end) return;
		int64_t begin = l->chunks * p / l->pieces * l->grain, end = l->chunks * (p + 1) / l->pieces * l->grain;
		l->fn(l->arg, begin, end < l->n ? end : l->n);
	}
}

/* All threads of the team take part, even in a few pieces: libgomp would end the others.  Each begins with its own
 * share, the same in each loop of as many pieces, because the data that it touched last is near; then it helps the next
 * ones, because a core may be slower than others, or busy with another program. */
static void deal(const struct loop *l)
{
	const struct team *t = team;
	struct share shares[t->threads];
	for (int i = 0; i < t->threads; i++)
		shares[i] = (struct share){l->pieces * i / t->threads, l->pieces * (i + 1) / t->threads};
	slp_team_used();
#pragma omp parallel num_threads(t->threads)
	{
		if (t->cores) bind_to(t);
		for (int i = 0, own = omp_get_thread_num(); i < t->threads; i++)
			run_pieces(l, &shares[(own + i) % t->threads]);
	}
}

/* A thread gets `each` pieces or fewer. */
static void run_loop(struct loop l, int each)
{
	if (l.n <= 0) return;
	l.chunks = (l.n + l.grain - 1) / l.grain;
	int threads = slp_team_size();
	if (threads <= 1 || l.chunks <= 1 || omp_in_parallel()) {
		l.fn(l.arg, 0, l.n);
		return;
	}
	l.pieces = (int64_t)each * threads;
	if (l.pieces > l.chunks) l.pieces = l.chunks;
	deal(&l);
}

void slp_parallel_for(int64_t n, int64_t grain, void (*fn)(void *arg, int64_t begin, int64_t end), void *arg)
{
	enum { EACH = 4 };
	run_loop((struct loop){.n = n, .grain = grain, .fn = fn, .arg = arg}, EACH);
}

void slp_parallel_ranges(int64_t n, int64_t grain, void (*fn)(void *arg, int64_t begin, int64_t end), void *arg)
{
	run_loop((struct loop){.n = n, .grain = grain, .fn = fn, .arg = arg}, 1);
}
