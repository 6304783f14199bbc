/* Several processes: reads from sl_config or the environment whether this process is one of them; functions for
 * programs. */
#include "dist/dist.h"
#include "runtime/engine.h"
#include "runtime/random.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "dist/adders.h"
#include "dist/transport.h"
#include "number.h"
#include "runtime/process/processes.h"

struct slp_dist slp_dist = {.size = 1};

/* ---- the environment --------------------------------------------------------------------------------------------- */

static bool read_int(const char *at, const char *name, int low, int *value)
{
	const char *text = getenv(name);
	int64_t v;
	if (text && slp_whole_given(text, &v) && v >= low && v <= INT_MAX) return *value = (int)v, true;
	if (text)
		return slp_call_fail(at, "sl_init", SL_EINVAL, "%s=%.64s: it must be an integer of at least %d", name,
		                     text, low);
	return slp_call_fail(at, "sl_init", SL_EINVAL,
	                     "several processes need %s, which is not set (sl-launch, torchrun and others set it)",
	                     name);
}

/* Seconds by which each message sets out later; given in microseconds. */
static bool read_latency(const char *at, double *seconds)
{
	const char *text = getenv("SL_DIST_LATENCY");
	double microseconds = 0;
	*seconds = 0;
	if (!text || !*text) return true;
	bool given = slp_real_given(text, &microseconds);
	*seconds = 1e-6 * microseconds;
	if (given && *seconds >= 0 && *seconds < 1) return true;
	return slp_call_fail(at, "sl_init", SL_EINVAL,
	                     "SL_DIST_LATENCY=%s: it must be a number of microseconds below 1000000", text);
}

/* A name such as http would be a port that nobody listens at, until the time is over. */
static bool check_port(const char *at, const char *port)
{
	int64_t n;
	if (slp_whole_given(port, &n) && n >= 1 && n <= UINT16_MAX) return true;
	return slp_call_fail(at, "sl_init", SL_EINVAL, "MASTER_PORT=%s: it must be from 1 to 65535", port);
}

/* This process's place, from the variables that torchrun sets for PyTorch.  told: the carrier supplies rank and size.
 */
static bool read_place(const char *at, struct slp_place *p, bool told)
{
	*p = (struct slp_place){.host = slp_env_or("MASTER_ADDR", "127.0.0.1"),
	                        .port = slp_env_or("MASTER_PORT", "29500"),
	                        .secret = slp_env_or("SL_DIST_SECRET", "")};
	if (!told && (!read_int(at, "WORLD_SIZE", 1, &p->size) || !read_int(at, "RANK", 0, &p->rank))) return false;
	if (!told && p->rank >= p->size)
		return slp_call_fail(at, "sl_init", SL_EINVAL, "RANK=%d: with WORLD_SIZE=%d ranks are 0 to %d", p->rank,
		                     p->size, p->size - 1);
	if (!told && p->size > 1 && !check_port(at, p->port)) return false;
	if (!read_latency(at, &p->latency) || slp_dist_timeout(at, &p->timeout) != SL_OK) return false;
	p->patience = 0.9 * p->timeout;
	return true;
}

/* The number of threads that add; 0: the best number. */
static bool read_threads(const char *at)
{
	const char *text = slp_env_or("SL_DIST_THREADS", "0");
	int64_t n = 0;
	bool given = slp_whole_given(text, &n) && n >= 0 && n <= SLP_ADDERS_MOST;
	slp_adders_start(given ? (int)n : 0);
	if (given) return true;
	return slp_call_fail(at, "sl_init", SL_EINVAL, "SL_DIST_THREADS=%s: it must be a number of threads up to %d",
	                     text, SLP_ADDERS_MOST);
}

/* As which type gradients travel. */
static bool read_wire(const char *at, enum sl_dtype *wire)
{
	const char *name = slp_env_or("SL_DIST_WIRE", sl_dtype_name(SL_FLOAT32));
	*wire = !strcmp(name, sl_dtype_name(SL_BFLOAT16)) ? SL_BFLOAT16 : SL_FLOAT32;
	if (!strcmp(name, sl_dtype_name(*wire))) return true;
	return slp_call_fail(at, "sl_init", SL_EINVAL, "SL_DIST_WIRE=%s: it must be float32 or bfloat16", name);
}

/* Whether sums may be added in an order of the transport's. */
static bool read_order(const char *at, bool *fast)
{
	const char *name = slp_env_or("SL_DIST_ORDER", "fixed");
	*fast = !strcmp(name, "fast");
	if (*fast || !strcmp(name, "fixed")) return true;
	return slp_call_fail(at, "sl_init", SL_EINVAL, "SL_DIST_ORDER=%s: it must be fixed or fast", name);
}

/* Processes that start together would write StarPU's measurements to the same files. */
static void choose_home(int rank)
{
	static bool chosen;
	const char *home = slp_starpu_home();
	char path[PATH_MAX];
	if (!home || !rank || chosen) return;
	snprintf(path, sizeof path, "%s/.starpu/rank-%d", home, rank);
	chosen = setenv("STARPU_HOME", path, 1) == 0;
}

/* ---- start and end ----------------------------------------------------------------------------------------------- */

static const struct slp_carrier *find_carrier(const char *at, const char *name)
{
	char why[SLP_DIST_WHY];
	if (!strcmp(name, slp_tcp.name) || !strcmp(name, "nccl")) return &slp_tcp;
	if (strcmp(name, "mpi"))
		return slp_call_fail(at, "sl_init", SL_EINVAL,
		                     "there is no transport \"%s\" for several processes: tcp, mpi, nccl", name);
	const struct slp_carrier *carrier = slp_plugin(name, why);
	if (!carrier)
		slp_call_fail(at, "sl_init", SL_EUNSUPPORTED,
		              "the transport %s needs a separate library of Starling (configure --with-mpi; "
		              "Debian: libstarling-mpi): %s",
		              name, why);
	return carrier;
}

/* In simulation this process stands for all: the machine's description has their number. */
static enum sl_status join_simulated(const char *at)
{
	struct slp_place place = {.rank = 0};
	bool apart;
	const struct slp_transport *transport = slp_simulated_transport(&apart);
	if (!transport) {
		slp_call_fail(at, "sl_init", SL_EUNSUPPORTED,
		              "processes are simulated as nodes: sl-simulate --nodes N");
		return SL_EUNSUPPORTED;
	}
	if (!read_threads(at)) return SL_EINVAL;
	enum sl_status s = slp_requests_start(at, transport, &place);
	if (s == SL_OK)
		slp_dist =
		        (struct slp_dist){.rank = place.rank, .size = place.size, .wire = SL_FLOAT32, .apart = apart};
	return s;
}

static enum sl_status join(const char *at, const char *name)
{
	struct slp_place place;
	enum sl_dtype wire;
	if (sl_is_simulated()) return join_simulated(at);
	const struct slp_carrier *carrier = find_carrier(at, name);
	if (!carrier) return sl_error();
	if (!read_place(at, &place, carrier->knows_place) || !read_wire(at, &wire) || !read_order(at, &place.fast) ||
	    !read_threads(at))
		return SL_EINVAL;
	if (place.size == 1) return SL_OK;
	enum sl_status s = slp_requests_start(at, slp_messages(carrier), &place);
	if (s != SL_OK) return s;
	choose_home(place.rank);
	slp_dist = (struct slp_dist){.rank = place.rank, .size = place.size, .wire = wire, .patience = place.patience};
	slp_rng_share(place.rank, place.size);
	slp_dist.nccl = !strcmp(name, "nccl");
	return SL_OK;
}

static void leave(void)
{
	slp_requests_end();
	slp_dist = (struct slp_dist){.size = 1};
	slp_rng_share(0, 1);
}

__attribute__((constructor)) static void dist_init(void)
{
	slp_engine_join = join;
	slp_engine_joined = slp_dist_meet_on_gpus;
	slp_engine_leave = leave;
	slp_engine_others = slp_requests_wait;
}

/* ---- queries of programs ----------------------------------------------------------------------------------------- */

/* The rank of this process among the processes that train together, from 0. */
int sl_dist_rank(void)
{
	SLP_CALL("sl_dist_rank", NULL);
	return slp_engine_need(NULL) == SL_OK ? slp_dist.rank : 0;
}

/* The number of processes that train together; 1: this process is alone. */
int sl_dist_size(void)
{
	SLP_CALL("sl_dist_size", NULL);
	return slp_engine_need(NULL) == SL_OK ? slp_dist.size : 1;
}

/* Waits until all processes have made this call.
 *
 *     if (sl_dist_barrier() != SL_OK) fprintf(stderr, "%s\n", sl_error_message()); */
enum sl_status sl_dist_barrier_at(const char *at)
{
	SLP_CALL("sl_dist_barrier", at);
	uint8_t nothing = 0;
	enum sl_status s = slp_engine_need(at);
	return s == SL_OK ? slp_dist_sum_now(at, "sl_dist_barrier", &nothing, 1, SL_UINT8) : s;
}

/* Adds the values of t over all processes, in place, in the tree (0 + 1) + (2 + 3) …, and returns at once; a read of t
 * waits for the sum.  All processes must call it, for tensors of the same shape and type, in the same order among their
 * other exchanges.  If t is spoilt in one process, the sum is spoilt in all, with that process's error. */
enum sl_status sl_dist_sum_at(const char *at, sl_tensor *t)
{
	SLP_CALL("sl_dist_sum", at);
	if (slp_trace_refuses(at, "sl_dist_sum", t) || !slp_tensor_usable(at, "sl_dist_sum", t))
		return sl_error() != SL_OK ? sl_error() : SL_EINVAL;
	char name[SLP_DIST_NAME], shape[128];
	snprintf(name, sizeof name, "sl_dist_sum %s", sl_shape_string(t->type.shape, shape)); /* compared, too */
	return slp_dist_sum(at, t, (struct slp_dist_what){.name = name}) ? SL_OK : sl_error();
}
