/* The transport of simulated nodes: one process represents all of them, which do the same at the same time.  The
 * time of an exchange is that of its messages (messages.c) over the described network, and of the passes over memory
 * that do not overlap with them.  Values are not computed.
 *
 * A sum is two messages to each of the others: pieces, then their sums.  A node sends and receives each over its own
 * link, in both directions at once: latency + (N - 1) / N of the bytes / bandwidth.  Parts that have arrived are
 * added while the rest arrives, and are sent on (exchanges.c): N pieces are read and one is written, by as many
 * threads as add in a real run (adders.c), each with one core's share of main memory's bandwidth.  Two nodes, and
 * nodes with little to add, send everything to all at once.  Before that they have read the whole gradient, to check
 * that it is finite.  Gradients on a GPU are added there, as NCCL's carrier does it, if sl-simulate says so. */
#include <math.h>

#include "config.h"
#include "dist/adders.h"
#include "dist/gpu.h"
#include "dist/transport.h"
#include "runtime/compat.h"
#include "runtime/engine.h"
#include "runtime/simulation/simulate.h"
#include "starling/tensor.h"

#ifdef SLP_SIMULATION
static struct slp_simulated_network network;
static uint64_t sent;

static double seconds_of(double bytes)
{
	return network.latency + bytes / network.bandwidth;
}

/* adding: the part beyond the time of messages */
static enum slp_outcome last(double bytes, double messages, double adding)
{
	double seconds = network.free ? 0 : messages + adding;
	sent += (uint64_t)bytes;
	slp_simulated_traffic.exchanges++;
	slp_simulated_traffic.bytes = sent;
	slp_simulated_traffic.seconds += seconds;
	slp_simulated_traffic.adding += network.free ? 0 : adding;
	if (seconds > 0) starpu_sleep((float)seconds);
	return SLP_EXCHANGED;
}

static int threads(void)
{
	return slp_adders(slp_simulated_cores(), (int)starpu_cuda_worker_get_count());
}

/* The seconds for threads to read or write this number of bytes. */
static double pass(double bytes)
{
	return bytes / (network.memory * threads());
}

/* The additional time of a sum because data that comes in `coming` seconds is added in `adding`, one portion after the
 * other, and sent on in `going` once the link is free.  That is a pipeline: the longest stage, and a portion of the
 * others. */
static double excess(double bytes, double coming, double adding, double going)
{
	double portion = (double)SLP_ADDERS_PORTION * threads();
	double n = bytes > portion ? bytes / portion : 1;
	double added = fmax(coming, adding) + fmin(coming, adding) / n;
	return fmax(0, added + going / n - (coming + going));
}

/* As nccl.c does it, from and to a GPU: after a message by which all say that they are ready, pieces come, are added by
 * a call for each two, and go; nothing of that overlaps. */
static enum slp_outcome sum_on_gpu(const struct slp_exchange *x, double bytes)
{
	double n = network.nodes, others = bytes * (n - 1), check = x->rows ? network.call + bytes / network.gpu : 0;
	bool whole = x->one || slp_goes_whole(x, network.nodes);
	double piece = whole ? bytes : bytes / n, adding = (n - 1) * (network.call + 3 * piece / network.gpu);
	if (whole)
		return last(x->one && !x->rank ? 0
		            : x->one           ? bytes
		                               : others,
		            network.latency + seconds_of(others), check + adding);
	return last(2 * others / n, network.latency + 2 * seconds_of(others / n), check + adding);
}

/* For one rank alone, its link receives the data of all others, which it adds. */
static enum slp_outcome sum(const struct slp_exchange *x, char why[SLP_DIST_WHY])
{
	(void)why;
	double bytes = (double)x->count * (double)sl_dtype_size(x->dtype), n = network.nodes;
	double others = bytes * (n - 1), piece = others / n, check = x->rows ? pass(bytes) : 0;
	double link = piece / network.bandwidth;
	if (x->gpu) return sum_on_gpu(x, bytes);
	if (x->one)
		return last(x->rank ? bytes : 0, seconds_of(others),
		            check + excess(bytes, others / network.bandwidth, pass(bytes * (n + 1)), 0));
	if (slp_goes_whole(x, network.nodes))
		return last(others, seconds_of(others),
		            check + excess(bytes, others / network.bandwidth, pass(bytes * (n + 1)), 0));
	return last(2 * piece, 2 * seconds_of(piece), check + excess(bytes / n, link, pass(bytes * (n + 1) / n), link));
}

/* A rank sends the values to each of the others, or to rank 0. */
static enum slp_outcome broadcast(const struct slp_exchange *x, char why[SLP_DIST_WHY])
{
	(void)why;
	double bytes = (double)x->count * (double)sl_dtype_size(x->dtype) * (x->one ? 1 : network.nodes - 1);
	double ready = x->meets ? network.latency : 0; /* a message ahead */
	return last(x->rank ? 0 : bytes, ready + seconds_of(bytes), 0);
}

static enum sl_status start(struct slp_place *place, char why[SLP_DIST_WHY])
{
	(void)why;
	sent = 0;
	slp_simulated_traffic = (struct slp_simulated_traffic){.nodes = network.nodes};
	place->rank = 0;
	place->size = network.nodes;
	return SL_OK;
}

static void end(void)
{
}

const struct slp_transport *slp_simulated_transport(bool *apart)
{
	static const struct slp_transport transport = {
	        .name = "simulated", .start = start, .sum = sum, .broadcast = broadcast, .end = end, .sent = &sent};
	bool some = slp_simulated_nodes(&network);
	*apart = network.none;
	return some ? &transport : NULL;
}

bool slp_simulated_sums_on_gpus(void)
{
	return network.on_gpus && slp_engine.ngpus > 0;
}
#else
bool slp_simulated_sums_on_gpus(void)
{
	return false;
}

const struct slp_transport *slp_simulated_transport(bool *apart)
{
	*apart = false;
	return NULL;
}
#endif
