/* Shards: splits a batch along axis 0 over devices, equally, by given shares, or by the devices' measured speed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "nn/nn.h"
#include "op.h"
#include "runtime/device/auto.h"
#include "runtime/device/device.h"
#include "runtime/engine.h"
#include "runtime/fault.h"
#include "runtime/observe/utilisation.h"
#include "starling/nn.h"

/* ---- measured speed ---------------------------------------------------------------------------------------------- */

/* Shares that differ less than this are left as they are: a new size of shard is a new program. */
static const double drift = 0.05;
/* A measurement makes no part smaller than this fraction of the previous one: a single misleading one (a program
 * compiled, another process) must not leave a device with so few rows that it would look slow for good. */
static const double least = 0.25;

struct sl_balance {
	struct slp_guard guard;
	int n;
	struct member {
		sl_device device;
		struct slp_utilisation mark; /* when it was last looked at */
		_Atomic double speed;        /* flops a second; 0: not known yet */
	} list[];
};

/* Measures the speed of each of n devices, so that sl_split_and_load can split batches in proportion (.balance).
 * StarPU measures every task from now on, which costs some tenths of a microsecond each.  Until the first
 * sl_balance_update all speeds are equal.  NULL with SL_EDEVICE: a device does not exist; SL_EINVAL: no devices.
 * Free it with sl_balance_free.
 *
 *     sl_balance *balance = sl_balance_new(devices, 2);
 *     for (int i = 0; next(&x); i++) {
 *         sl_split_and_load(x, devices, 2, xs, .balance = balance);
 *         ...
 *         if (i % 50 == 2 && sl_balance_update(balance)) puts("new shares");
 *     } */
sl_balance *sl_balance_new_at(const char *at, const sl_device *devices, int n)
{
	SLP_CALL("sl_balance_new", at);
	if (!devices || n < 1) return slp_call_fail(at, "sl_balance_new", SL_EINVAL, "there are no devices");
	if (slp_engine_need(at) != SL_OK) return NULL;
	sl_balance *b = slp_calloc(1, sizeof *b + (size_t)n * sizeof *b->list);
	if (!b) return slp_call_fail(at, "sl_balance_new", SL_ENOMEM, "no memory");
	b->n = n;
	slp_utilisation_start();
	for (int i = 0; i < n; i++) {
		b->list[i].device = devices[i];
		if (slp_device_resolve(at, &b->list[i].device) != SL_OK) {
			free(b);
			return NULL;
		}
		b->list[i].mark = slp_utilisation_of(b->list[i].device);
	}
	return b;
}

/* The work of each device since the last measurement.  False if a device did too little to tell: the next measurement
 * includes it. */
static bool measure(sl_balance *b, double *speeds)
{
	enum { ENOUGH_MS = 5 };
	for (int i = 0; i < b->n; i++) {
		struct slp_utilisation now = slp_utilisation_of(b->list[i].device), *mark = &b->list[i].mark;
		double seconds = now.seconds - mark->seconds, flops = now.flops - mark->flops;
		if (seconds < 1e-3 * ENOUGH_MS || flops <= 0) return false;
		speeds[i] = flops / seconds;
	}
	for (int i = 0; i < b->n; i++) b->list[i].mark = slp_utilisation_of(b->list[i].device);
	return true;
}

static double share(const double *speeds, int n, int i)
{
	double sum = 0;
	for (int k = 0; k < n; k++) sum += speeds[k];
	return speeds[i] / sum;
}

/* Speeds from which follow shares of hardly less than `least` times the old ones. */
static void restrain(double *speeds, const double *old, int n)
{
	double sum = 0;
	for (int i = 0; i < n; i++) sum += speeds[i];
	for (int i = 0; i < n; i++) speeds[i] = fmax(speeds[i], sum * least * share(old, n, i));
}

/* Waits for all work, and measures the speed of each device since the last call (or since sl_balance_new).  True if the
 * shares have changed, by more than a twentieth of one of them; they are used from now on.  One call removes at most
 * three quarters of a device's share, since the first measurements include compilation and cold caches: call it two or
 * three times soon, then from time to time.  False also for NULL, and if a device computed for less than 5 ms.
 * sl_wait_all reports errors of the work. */
bool sl_balance_update(sl_balance *b)
{
	SLP_CALL("sl_balance_update", NULL);
	double *speeds = b ? slp_malloc(2 * (size_t)b->n * sizeof *speeds) : NULL, *old = speeds ? speeds + b->n : NULL;
	if (!speeds) return false;
	SLP_GUARD_PATIENTLY(&b->guard);
	slp_engine_idle();
	bool changed = false, known = measure(b, speeds);
	for (int i = 0; i < b->n; i++) old[i] = b->list[i].speed > 0 ? b->list[i].speed : 1;
	for (int i = 0; known && i < b->n; i++)
		changed |= fabs(share(speeds, b->n, i) / share(old, b->n, i) - 1) > drift;
	if (changed) restrain(speeds, old, b->n);
	for (int i = 0; changed && i < b->n; i++) b->list[i].speed = speeds[i];
	free(speeds);
	return changed;
}

/* The speed of device i that determines its share, in flops per second; 0 as long as all shares are equal, and for NULL
 * or no such device. */
double sl_balance_speed(const sl_balance *b, int i)
{
	return b && i >= 0 && i < b->n ? b->list[i].speed : 0;
}

/* Frees the measurements. NULL is ignored. */
void sl_balance_free(sl_balance *balance)
{
	free(balance);
}

/* ---- cutting ----------------------------------------------------------------------------------------------------- */

static double weight(const struct sl_split_opts *o, int i)
{
	if (o->weights) return o->weights[i];
	double speed = o->balance ? sl_balance_speed(o->balance, i) : 0;
	return speed > 0 ? speed : 1;
}

/* The first row of each part, and the end: shares rounded, but at least a row each. */
static void cut(int64_t rows, int n, const struct sl_split_opts *o, int64_t *first)
{
	double all = 0, sum = 0;
	for (int i = 0; i < n; i++) all += weight(o, i);
	first[0] = 0;
	for (int i = 0; i < n; i++) {
		sum += weight(o, i);
		int64_t end = llround((double)rows * sum / all), least = first[i] + 1, most = rows - (n - 1 - i);
		first[i + 1] = end < least ? least : end > most ? most : end;
	}
}

static enum sl_status check(const char *at, const sl_tensor *x, const sl_device *devices, int n,
                            const struct sl_split_opts *o)
{
	const char *wrong = NULL;
	if (!devices || n < 1) wrong = "there are no devices";
	else if (o->balance && o->balance->n != n) wrong = ".balance is for another number of devices";
	for (int i = 0; !wrong && o->weights && i < n; i++)
		if (!(o->weights[i] > 0 && isfinite(o->weights[i]))) wrong = ".weights must be positive";
	if (wrong) {
		slp_call_fail(at, "sl_split_and_load", SL_EINVAL, "%s", wrong);
		return SL_EINVAL;
	}
	int64_t rows = x->type.shape.ndim ? x->type.shape.dim[0] : 0;
	if (rows < n)
		slp_call_fail(at, "sl_split_and_load", SL_ESHAPE, "%lld rows are too few for %d devices",
		              (long long)rows, n);
	else if (rows % n && !o->uneven && !o->weights && !o->balance)
		slp_call_fail(
		        at, "sl_split_and_load", SL_ESHAPE,
		        "%lld rows cannot be split equally over %d devices; .uneven = true lets some have a row more",
		        (long long)rows, n);
	else return SL_OK;
	return SL_ESHAPE;
}

/* Whether shards of a tensor on `auto` go to several GPUs, from main memory. */
static bool is_dealt(const sl_tensor *x)
{
	const struct slp_buffer *b = x->storage ? x->storage->buffer : NULL;
	return slp_auto_gpus() > 1 && x->device.kind != SL_DEVICE_GPU && !(b && b->homes);
}

/* Rows for a device: a view if memory is shared; for a GPU, a copy, so that they alone are transferred. */
static sl_tensor *load(const char *at, sl_tensor *x, int64_t begin, int64_t end, sl_device device)
{
	sl_tensor *rows = sl_rows_at(at, x, begin, end);
	bool whole = rows && end - begin == x->type.shape.dim[0];
	bool travels = device.kind == SL_DEVICE_GPU ? !sl_device_equal(x->device, device)
	                                            : device.kind == SL_DEVICE_AUTO && is_dealt(x);
	if (rows && travels && !whole && !(slp_mode.recorder && slp_mode.recorder->wants(x))) {
		sl_device near = slp_engine.nteams && x->device.kind != SL_DEVICE_GPU ? sl_cpu(-1) : x->device;
		rows = sl_clone_at(at, sl_place_at(at, rows, near));
	}
	if (!rows || sl_device_equal(rows->device, device)) return rows;
	return sl_place_at(at, rows, device);
}

/* Splits x along axis 0 over n devices: parts[i], for devices[i], follows parts[i - 1]. Parts are equal by default,
 * with SL_ESHAPE if that is impossible; with .uneven, nearly equal; with .weights or .balance, in proportion to these,
 * but at least one row each.  Parts for CPU devices of rows in main memory are views, without a copy.  A GPU gets a
 * copy of its own rows only.  Gradients flow through them.  The parts belong to the innermost scope; all are NULL after
 * an error: SL_ESHAPE, also for fewer rows than devices; SL_EDEVICE: a device does not exist; SL_EINVAL: no devices,
 * parts is NULL, a weight is not positive, a balance for another number of devices; SL_ESTATE: x is a symbol.
 *
 *     sl_tensor *parts[2];
 *     sl_split_and_load(batch, devices, 2, parts); */
enum sl_status sl_split_and_load_at(const char *at, sl_tensor *x, const sl_device *devices, int n, sl_tensor **parts,
                                    struct sl_split_opts opts)
{
	SLP_CALL("sl_split_and_load", at);
	if (!parts) return slp_call_fail(at, "sl_split_and_load", SL_EINVAL, "parts is NULL"), SL_EINVAL;
	for (int i = 0; i < n; i++) parts[i] = NULL;
	if (!slp_tensor_usable(at, "sl_split_and_load", x)) return sl_error() != SL_OK ? sl_error() : SL_EINVAL;
	enum sl_status s = check(at, x, devices, n, &opts);
	int64_t *first = s == SL_OK ? slp_malloc(((size_t)n + 1) * sizeof *first) : NULL;
	if (s == SL_OK && !first) s = slp_error_set(SL_ENOMEM, "sl_split_and_load: no memory");
	if (s == SL_OK) cut(x->type.shape.dim[0], n, &opts, first);
	for (int i = 0; s == SL_OK && i < n; i++) {
		sl_device device = devices[i];
		s = slp_device_resolve(at, &device);
		if (s == SL_OK && !(parts[i] = load(at, x, first[i], first[i + 1], device))) s = sl_error();
	}
	for (int i = 0; s != SL_OK && i < n; i++) parts[i] = NULL;
	free(first);
	return s;
}
