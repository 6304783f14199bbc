/* Small calls: those that share a task with others.
 *
 * On CPUs they are some ten microseconds of work, less than StarPU's cost of a handful of tasks.  On a machine's only GPU
 * they are small up to much more work: it does the work of a whole segment in the time that the host takes for one or
 * two tasks. */
#include "runtime/device/auto.h"
#include "runtime/device/device.h"
#include "runtime/engine.h"
#include "runtime/memory/admission.h"
#include "runtime/task/small.h"

static const double small_bytes = 65536, small_flops = 1e6;
static const double small_seconds = 20e-6; /* on a GPU, as estimated (slp_gpu_seconds) */
enum { GPU_SHARE = 16 };                   /* of a GPU's memory: the most bytes that calls of a segment use */

bool slp_call_is_small(const struct slp_infer *c, double flops)
{
	return slp_engine.config.bulk > 1 && flops <= small_flops && c->nin + c->nout <= 16 &&
	       slp_call_bytes(c) <= small_bytes;
}

/* Where memory is small or short, each call keeps a task: all values of a segment, also those that die within it, hold
 * their memory until all of it has run. */
static bool fits(sl_device gpu, double bytes)
{
	const size_t least = (size_t)256 << 20;
	size_t room = slp_admission_room(gpu);
	return (!room || (room >= least && bytes <= (double)(room / GPU_SHARE))) && !slp_admission_short();
}

/* Where there are several GPUs, one would wait for calls that are gathered for another: a simulated step and a test of
 * ResNet-18 on two H100s took 142 ms instead of 127. */
bool slp_call_is_small_on_gpu(const struct slp_infer *c, double flops, sl_device device, const struct slp_segment *open)
{
	if (slp_engine.ngpus != 1 || slp_engine.config.bulk < 2) return false;
	sl_device there = slp_auto_foreseen(device);
	double bytes = slp_call_bytes(c), used = open ? open->bytes : 0;
	if (there.kind != SL_DEVICE_GPU) return false;
	if (c->nin + c->nout > 16 || slp_gpu_seconds(flops, bytes, 1) > small_seconds) return false;
	return fits(there, used + bytes) && slp_has_kernel(c, SL_DEVICE_GPU);
}

/* A call that has no CUDA kernel would take the others of its segment to a CPU, where `auto` lets it. */
bool slp_call_parts(const struct slp_infer *c, sl_device device, const struct slp_segment *open)
{
	if (!open || !open->own.nops || !slp_engine.ngpus || device.kind != SL_DEVICE_AUTO) return false;
	return open->own.cuda != slp_has_kernel(c, SL_DEVICE_GPU);
}
