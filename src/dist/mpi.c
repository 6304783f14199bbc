/* The carrier over MPI, libstarling-mpi.so: messages between processes that mpirun or a cluster's launcher has
 * started.  MPI waits by polling, which would take a core from StarPU's workers; here the thread sleeps between
 * polls, longer if nothing arrives.
 *
 * The first sl_init starts MPI, unless the program has done so.  MPI ends with the program, because it cannot be
 * started twice. */
#include <errno.h>
#include <math.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "dist/carrier.h"
#include "dist/mpi_here.h"

/* The bytes of one message: MPI counts in int. */
static const size_t most = (size_t)1 << 30;
static const double shortest_nap = 20e-6, longest_nap = 500e-6;

/* A message that has begun; its end is polled. */
struct transfer {
	MPI_Request request;
	bool under_way;
	int bytes;
};

static struct {
	MPI_Comm comm;
	int size;
	struct transfer *in, *out; /* one a rank */
	double nap;
	bool broken;
} mpi;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void sleep_for(double seconds)
{
	struct timespec t = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
	nanosleep(&t, NULL);
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

static ssize_t broken(void)
{
	errno = EIO;
	return -1;
}

/* The bytes transferred once it is complete, 0 before. */
static ssize_t ask(struct transfer *t)
{
	int over = 0;
	if (MPI_Test(&t->request, &over, MPI_STATUS_IGNORE) != MPI_SUCCESS) return broken();
	if (!over) return 0;
	t->under_way = false;
	mpi.nap = shortest_nap;
	return t->bytes;
}

static int size_of(size_t bytes)
{
	return (int)(bytes < most ? bytes : most);
}

/* One part at a time: the other end asks for each as it is. */
static ssize_t send_parts(int rank, const struct iovec *parts, int n)
{
	struct transfer *t = &mpi.out[rank];
	(void)n;
	if (!t->under_way) {
		t->bytes = size_of(parts->iov_len);
		if (MPI_Isend(parts->iov_base, t->bytes, MPI_BYTE, rank, 0, mpi.comm, &t->request) != MPI_SUCCESS)
			return broken();
		t->under_way = true;
	}
	return ask(t);
}

static ssize_t receive(int rank, void *data, size_t bytes)
{
	struct transfer *t = &mpi.in[rank];
	if (!t->under_way) {
		t->bytes = size_of(bytes);
		if (MPI_Irecv(data, t->bytes, MPI_BYTE, rank, 0, mpi.comm, &t->request) != MPI_SUCCESS) return broken();
		t->under_way = true;
	}
	return ask(t);
}

static int wait_for(struct slp_interest *list, double seconds)
{
	int n = 0;
	sleep_for(mpi.nap < seconds ? mpi.nap : seconds);
	mpi.nap = mpi.nap < longest_nap ? 1.2 * mpi.nap : longest_nap;
	for (int r = 0; list && r < mpi.size; r++) n += list[r].ready = list[r].in || list[r].out;
	return n;
}

/* ---- sums in MPI's own order ------------------------------------------------------------------------------------- */

/* The types that MPI adds as the tree does, but for the order: whole numbers would wrap on overflow. */
static bool adds(const char *type)
{
	return !strcmp(type, "float32") || !strcmp(type, "float64");
}

/* MPI promises that all processes get the same. */
static bool sum(void *data, size_t count, const char *type, double timeout)
{
	bool wide = !strcmp(type, "float64");
	double deadline = now() + timeout;
	int over = 1;
	char *p = data;
	for (size_t n; over && count; count -= n, p += n * (wide ? sizeof(double) : sizeof(float))) {
		MPI_Request request;
		n = count < most ? count : most;
		over = 0;
		if (MPI_Iallreduce(MPI_IN_PLACE, p, (int)n, wide ? MPI_DOUBLE : MPI_FLOAT, MPI_SUM, mpi.comm,
		                   &request) != MPI_SUCCESS)
			return false;
		for (mpi.nap = shortest_nap; !over && now() < deadline; wait_for(NULL, longest_nap))
			if (MPI_Test(&request, &over, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
	}
	mpi.nap = shortest_nap;
	return over;
}

/* ---- start and end ----------------------------------------------------------------------------------------------- */

static bool fail(char why[SLP_CARRIER_WHY], const char *text)
{
	snprintf(why, SLP_CARRIER_WHY, "%s", text);
	return false;
}

/* If not all ranks have come to the end, MPI would wait for ever: then the launcher finds that the process has gone. */
static void finalize(void)
{
	if (!mpi.broken) MPI_Finalize();
}

static void *initialize(void *level)
{
	if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, level) != MPI_SUCCESS) *(int *)level = MPI_THREAD_SINGLE;
	return NULL;
}

static struct timespec time_in(double seconds)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	double nanoseconds = (double)t.tv_nsec + 1e9 * (seconds - floor(seconds));
	t.tv_sec += (time_t)seconds + (nanoseconds >= 1e9);
	t.tv_nsec = (long)nanoseconds % 1000000000;
	return t;
}

/* Whether the thread ends within `seconds`. */
static bool ends(pthread_t thread, double seconds)
{
	const double nap = 0.25;
	for (double end = now() + seconds, left; (left = end - now()) > 0; slp_mpi_look()) {
		struct timespec t = time_in(left < nap ? left : nap);
		if (!pthread_timedjoin_np(thread, NULL, &t)) return true;
	}
	return false;
}

static bool fail_late(const struct slp_place *place, char why[SLP_CARRIER_WHY])
{
	char list[SLP_CARRIER_RANKS];
	slp_mpi_missing(list);
	snprintf(why, SLP_CARRIER_WHY,
	         "MPI_Init has not returned within %g seconds (SL_DIST_TIMEOUT): %s%s ha%s not called sl_init",
	         place->timeout,
	         !*list              ? "a rank"
	         : slp_several(list) ? "ranks "
	                             : "rank ",
	         list, slp_several(list) ? "ve" : "s");
	return false;
}

/* MPI_Init waits for all processes, in some libraries without end: it gets a separate thread, for a bounded time. */
static bool start_mpi(const struct slp_place *place, int *level, char why[SLP_CARRIER_WHY])
{
	static int given; /* outlives an abandoned start */
	pthread_t thread;
	slp_mpi_come();
	if (pthread_create(&thread, NULL, initialize, &given)) return fail(why, "cannot start a thread for MPI_Init");
	if (!ends(thread, place->patience)) {
		pthread_detach(thread);
		mpi.broken = true;
		return fail_late(place, why); /* the others look for this rank, too */
	}
	slp_mpi_met();
	atexit(finalize);
	*level = given;
	return true;
}

static bool need_mpi(const struct slp_place *place, char why[SLP_CARRIER_WHY])
{
	int begun = 0, ended = 0, level = MPI_THREAD_SINGLE;
	MPI_Initialized(&begun);
	MPI_Finalized(&ended);
	if (ended) return fail(why, "the program has already finalized MPI");
	if (mpi.broken) return fail(why, "the processes ended at different times; MPI cannot be started again");
	if (begun) MPI_Query_thread(&level);
	else if (!start_mpi(place, &level, why)) return false;
	return level >= MPI_THREAD_SERIALIZED ||
	       fail(why,
	            "MPI was not started for calls from several threads (MPI_Init_thread with MPI_THREAD_SERIALIZED)");
}

/* A communicator of our own, in which errors are returned. */
static bool make_communicator(double deadline, char why[SLP_CARRIER_WHY])
{
	MPI_Request request;
	int over = 0;
	if (MPI_Comm_idup(MPI_COMM_WORLD, &mpi.comm, &request) != MPI_SUCCESS) return fail(why, "MPI_Comm_idup failed");
	while (MPI_Test(&request, &over, MPI_STATUS_IGNORE) == MPI_SUCCESS && !over && now() < deadline)
		sleep_for(longest_nap);
	if (!over) {
		mpi.broken = true;
		return fail(why, "not all ranks have called sl_init within SL_DIST_TIMEOUT");
	}
	return MPI_Comm_set_errhandler(mpi.comm, MPI_ERRORS_RETURN) == MPI_SUCCESS ||
	       fail(why, "MPI_Comm_set_errhandler failed");
}

static bool start(struct slp_place *place, char why[SLP_CARRIER_WHY])
{
	if (!need_mpi(place, why) || !make_communicator(now() + place->patience, why)) return false;
	MPI_Comm_rank(mpi.comm, &place->rank);
	MPI_Comm_size(mpi.comm, &place->size);
	mpi.in = calloc((size_t)place->size, sizeof *mpi.in);
	mpi.out = calloc((size_t)place->size, sizeof *mpi.out);
	if (!mpi.in || !mpi.out) return fail(why, "there is no memory for the ranks");
	mpi.size = place->size;
	mpi.nap = shortest_nap;
	return true;
}

/* Messages that nobody received: the others' last ones. */
static void drain(void)
{
	int there = 1, bytes;
	for (MPI_Status s; MPI_Iprobe(MPI_ANY_SOURCE, 0, mpi.comm, &there, &s) == MPI_SUCCESS && there;) {
		char rest[4096];
		MPI_Get_count(&s, MPI_BYTE, &bytes);
		if (bytes > (int)sizeof rest) break;
		MPI_Recv(rest, bytes, MPI_BYTE, s.MPI_SOURCE, 0, mpi.comm, MPI_STATUS_IGNORE);
	}
}

static bool all_are_here(double deadline)
{
	MPI_Request request;
	int over = 0;
	if (MPI_Ibarrier(mpi.comm, &request) != MPI_SUCCESS) return false;
	while (MPI_Test(&request, &over, MPI_STATUS_IGNORE) == MPI_SUCCESS && !over && now() < deadline) {
		drain();
		sleep_for(longest_nap);
	}
	return over;
}

static void end(bool is_broken, double deadline)
{
	if (!is_broken && all_are_here(deadline)) {
		drain();
		MPI_Comm_free(&mpi.comm);
	} else { /* the first to end makes the launcher end the others: they are to say why before */
		mpi.broken = true;
		while (now() < deadline) sleep_for(0.05);
	}
	free(mpi.in);
	free(mpi.out);
	mpi.in = mpi.out = NULL;
	mpi.size = 0;
}

extern const struct slp_carrier starling_carrier;
__attribute__((visibility("default"))) const struct slp_carrier starling_carrier = {
        .version = SLP_CARRIER_VERSION,
        .name = "mpi",
        .knows_place = true,
        .portion = 1 << 21, /* each takes a nap */
        .start = start,
        .send = send_parts,
        .receive = receive,
        .wait = wait_for,
        .adds = adds,
        .sum = sum,
        .end = end,
};
