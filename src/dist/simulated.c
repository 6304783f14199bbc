/* The transport of simulated nodes: one process stands for all of them, which do the same at the same time.  An exchange lasts
 * as long as its messages (messages.c) take over the network that the machine's description tells of; values are nobody's.
 *
 * A sum is two messages to each of the others: pieces, then their sums.  What a node sends and receives in either goes through its
 * own link, both ways at once: latency + (N - 1) / N of the bytes / bandwidth.  In between a core adds N pieces. */
#include "dist/transport.h"
#include "runtime/simulate.h"

#ifdef SLP_SIMULATION
static struct slp_simulated_network network;
static uint64_t sent;

static double seconds_of(double bytes)
{
	return network.latency + bytes / network.bandwidth;
}

static enum slp_outcome last(double bytes, double messages, double additions)
{
	double seconds = network.free ? 0 : messages + additions;
	sent += (uint64_t)bytes;
	slp_simulated_traffic.exchanges++;
	slp_simulated_traffic.bytes = sent;
	slp_simulated_traffic.seconds += seconds;
	slp_simulated_traffic.adding += network.free ? 0 : additions;
	if (seconds > 0) starpu_sleep((float)seconds);
	return SLP_EXCHANGED;
}

/* For one rank alone, its link takes what all others send. */
static enum slp_outcome sum(const struct slp_exchange *x, char why[SLP_DIST_WHY])
{
	(void)why;
	double bytes = (double)x->count * (double)sl_dtype_size(x->dtype), others = bytes * (network.nodes - 1);
	double piece = others / network.nodes;
	/* added: read twice, written once */
	if (x->one) return last(x->rank ? bytes : 0, seconds_of(others), 3 * others / network.memory);
	return last(2 * piece, 2 * seconds_of(piece), 3 * piece / network.memory);
}

/* A rank sends the values to each of the others, or to rank 0. */
static enum slp_outcome broadcast(const struct slp_exchange *x, char why[SLP_DIST_WHY])
{
	(void)why;
	double bytes = (double)x->count * (double)sl_dtype_size(x->dtype) * (x->one ? 1 : network.nodes - 1);
	return last(x->rank ? 0 : bytes, seconds_of(bytes), 0);
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
	static const struct slp_transport transport = {"simulated", start, sum, broadcast, end, &sent};
	bool some = slp_simulated_nodes(&network);
	*apart = network.none;
	return some ? &transport : NULL;
}
#else
const struct slp_transport *slp_simulated_transport(bool *apart)
{
	*apart = false;
	return NULL;
}
#endif
