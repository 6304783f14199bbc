/* Places tasks on `auto` on GPUs when they are submitted: each where it is expected to end first (H. Topcuoglu and others,
 * "Performance-Effective and Low-Complexity Task Scheduling for Heterogeneous Computing", 2002), with the time for its
 * operands to arrive.
 *
 * A policy of StarPU decides when a task becomes ready, one task after the other.  In training, whose tasks are one chain
 * with short branches, it sends branches to devices that are free at that moment, and waits for the transfers: on two
 * simulated H100s a step of ResNet-18 took 33.5 ms so, and 13.6 ms with a shard on each.  Here the queues are known up to
 * the last submitted task, so that a chain stays where its values are, and independent work goes to another GPU.  CPUs get
 * only what has no CUDA kernel: a whole processor computes a hundredth of what a GPU does.  Where there are CPU teams only,
 * the policy places tasks, except those of shards of a step: each shard is a chain, and runs on one team.  A policy that the
 * program or the user names places tasks itself, on all workers. */
#include <math.h>

#include "config.h"
#include "runtime/compat.h"
#include "runtime/device/auto.h"
#include "runtime/engine.h"
#include "runtime/task/buffer.h"
#include "runtime/task/segment.h"

_Thread_local struct slp_auto_deal slp_auto_deal = {.shard = -1};

static struct {
	int gpus, teams;
	double end[SLP_MAX_GPUS]; /* when each is expected to have done all that was submitted */
	atomic_int tasks[SLP_MAX_GPUS];
	struct link {
		double latency, bandwidth;
	} links[SLP_MAX_GPUS + 1]
	       [SLP_MAX_GPUS]; /* from each GPU, last from main memory, to each; seconds, bytes a second */
} state;

static struct link link_between(unsigned from, unsigned to)
{
	double latency = starpu_transfer_latency(from, to), bandwidth = starpu_transfer_bandwidth(from, to);
	bool known = isfinite(latency) && isfinite(bandwidth) && bandwidth > 0;
	return known ? (struct link){1e-6 * latency, 1e6 * bandwidth} : (struct link){10e-6, 10e9};
}

static unsigned node_of(int gpu)
{
	return gpu < state.gpus ? starpu_worker_get_memory_node((unsigned)slp_engine.gpu_worker[gpu]) : STARPU_MAIN_RAM;
}

void slp_auto_start(bool placed)
{
	state.gpus = placed ? slp_engine.ngpus : 0;
	state.teams = placed && !slp_engine.ngpus && !slp_engine.nslaves ? slp_engine.nteams : 0;
	for (int i = 0; i < state.gpus; i++) {
		state.end[i] = 0;
		atomic_store(&state.tasks[i], 0);
		for (int from = 0; from <= state.gpus; from++)
			if (from != i) state.links[from][i] = link_between(node_of(from), node_of(i));
	}
}

int slp_auto_gpus(void)
{
	return state.gpus;
}

int slp_auto_devices(void)
{
	return state.gpus ? state.gpus : state.teams;
}

sl_device slp_auto_dealt(int shard)
{
	int i = shard % slp_auto_deal.devices;
	return state.gpus ? sl_gpu(i) : sl_cpu(i);
}

sl_device slp_auto_program(sl_device inputs)
{
	const struct slp_auto_deal *d = &slp_auto_deal;
	bool dealt = inputs.kind == SL_DEVICE_AUTO && !state.gpus && d->devices && d->shard >= 0;
	return dealt ? slp_auto_dealt(d->shard) : inputs;
}

sl_device slp_auto_foreseen(sl_device device)
{
	const struct slp_auto_deal *d = &slp_auto_deal;
	if (device.kind != SL_DEVICE_AUTO || !state.gpus) return device;
	if (state.gpus == 1) return sl_gpu(0);
	return d->devices && d->shard >= 0 ? slp_auto_dealt(d->shard) : device;
}

/* ---- expected times ---------------------------------------------------------------------------------------------- */

static const struct slp_buffer *buffer_of(const struct slp_slot *s)
{
	return s->buffer ? s->buffer : s->storage ? s->storage->buffer : NULL;
}

/* Rough rates of a GPU: only their proportion to transfers matters. */
double slp_gpu_seconds(double flops, double bytes, int calls)
{
	static const double flops_per_second = 20e12, bytes_per_second = 1.5e12, seconds_a_call = 5e-6;
	return fmax(flops / flops_per_second, bytes / bytes_per_second) + seconds_a_call * calls;
}

static double seconds_of(const struct slp_segment *seg)
{
	double bytes = 0;
	for (int i = 0; i < seg->nslots; i++) bytes += seg->slots[i].storage ? (double)seg->slots[i].storage->bytes : 0;
	return slp_gpu_seconds(seg->calls->flops, bytes, seg->calls->nops);
}

static double transfer(const struct slp_buffer *b, int gpu)
{
	if (b->homes >> gpu & 1) return 0;
	int from = b->homes ? __builtin_ctz(b->homes) : state.gpus;
	const struct link *l = &state.links[from][gpu];
	return l->latency + (double)b->bytes / l->bandwidth;
}

/* The arrival of the last operand; operands travel one after the other. */
static double arrival(const struct slp_segment *seg, int gpu)
{
	double ready = 0, travels = 0;
	for (int i = 0; i < seg->nslots; i++) {
		const struct slp_buffer *b = buffer_of(&seg->slots[i]);
		if (!b || !(seg->slots[i].mode & STARPU_R)) continue;
		ready = fmax(ready, b->ready);
		travels += transfer(b, gpu);
	}
	return ready + travels;
}

/* ---- placing ----------------------------------------------------------------------------------------------------- */

static int earliest(const struct slp_segment *seg, int gpus)
{
	int best = 0;
	double least = INFINITY;
	for (int i = 0; gpus > 1 && i < gpus; i++) {
		double begin = fmax(state.end[i], arrival(seg, i));
		if (begin < least) {
			least = begin;
			best = i;
		}
	}
	return best;
}

/* GPUs without tasks have done what was expected of them. */
static void catch_up(void)
{
	double now = sl_time();
	for (int i = 0; i < state.gpus; i++)
		if (!atomic_load(&state.tasks[i]) || state.end[i] < now) state.end[i] = now;
}

void slp_auto_place(struct slp_segment *seg)
{
	seg->placed = state.gpus && seg->device.kind == SL_DEVICE_AUTO && seg->calls->cuda;
	if (!seg->placed) return;
	const struct slp_auto_deal *d = &slp_auto_deal;
	if (state.gpus > 1) catch_up();
	seg->device = d->devices && d->shard >= 0 ? slp_auto_dealt(d->shard)
	                                          : sl_gpu(earliest(seg, d->devices ? d->devices : state.gpus));
}

void slp_auto_note(const struct slp_segment *seg)
{
	if (state.gpus < 2) return;
	int gpu = seg->device.kind == SL_DEVICE_GPU ? seg->device.index : -1;
	double end = 0;
	if (gpu >= 0) {
		end = state.end[gpu] = fmax(state.end[gpu], arrival(seg, gpu)) + seconds_of(seg);
		atomic_fetch_add(&state.tasks[gpu], 1);
	}
	for (int i = 0; i < seg->nslots; i++) {
		struct slp_buffer *b = seg->slots[i].buffer;
		bool writes = seg->slots[i].mode & STARPU_W;
		if (!b) continue;
		if (writes) b->homes = 0;
		if (writes) b->ready = end;
		if (gpu >= 0) b->homes |= 1u << gpu;
	}
}

void slp_auto_ended(sl_device device)
{
	if (state.gpus > 1 && device.kind == SL_DEVICE_GPU && device.index >= 0)
		atomic_fetch_sub(&state.tasks[device.index], 1);
}
