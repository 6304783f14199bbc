/* Buckets: parameters whose gradients are added together, and their owners, the devices that add the gradients and
 * update the parameters. */
#include <stdlib.h>

#include "autograd/autograd.h"
#include "dist/dist.h"
#include "nn/nn.h"
#include "runtime/device/auto.h"
#include "runtime/device/device.h"
#include "runtime/engine.h"
#include "runtime/gate.h"
#include "runtime/task/buffer.h"
#include "runtime/task/storage.h"
#include "starling/arithmetic.h"
#include "train/train.h"

/* A device's parameters so far. */
struct share {
	sl_device device;
	double bytes;
};

/* Whether the step that the thread runs deals its shards (device/auto.h), for which parameters are on `auto`. */
static bool is_dealt(const sl_param *p)
{
	if (!slp_auto_deal.devices || !p->data) return false;
	for (int i = 0; i < p->ndevices; i++)
		if (p->devices[i].kind != SL_DEVICE_AUTO) return false;
	return p->ndevices || p->data->device.kind == SL_DEVICE_AUTO;
}

/* The devices that use a parameter. */
static int count_of(const sl_param *p)
{
	return is_dealt(p) ? slp_auto_deal.devices : p->ndevices;
}

static sl_device device_of(const sl_param *p, int i)
{
	return is_dealt(p) ? slp_auto_dealt(i) : p->devices[i];
}

static bool has_gpu(const sl_param *p)
{
	for (int i = 0, n = count_of(p); i < n; i++)
		if (device_of(p, i).kind == SL_DEVICE_GPU) return true;
	return false;
}

static struct share *share_of(struct share *shares, int *count, sl_device device)
{
	for (int i = 0; i < *count; i++)
		if (sl_device_equal(shares[i].device, device)) return &shares[i];
	shares[*count] = (struct share){device, 0};
	return &shares[(*count)++];
}

/* The device among those of the parameter that owns least; a CPU beside GPUs would hold them up. */
static struct share *least(const sl_param *p, struct share *shares, int *count)
{
	int n = count_of(p);
	struct share *best = n ? NULL : share_of(shares, count, p->data->device);
	for (int i = 0; i < n; i++) {
		if (has_gpu(p) && device_of(p, i).kind != SL_DEVICE_GPU) continue;
		struct share *s = share_of(shares, count, device_of(p, i));
		if (!best || s->bytes < best->bytes) best = s;
	}
	return best;
}

/* Whether gradients of it come from several devices, or processes. */
static bool is_shared(const sl_param *p)
{
	bool several = is_dealt(p) ? slp_auto_deal.most > 1 : p->ndevices > 1;
	return several || slp_dist.size > 1;
}

/* Whether it is in a bucket: its gradient travels, to other devices or to the one that updates it. */
static bool is_bucketed(const sl_param *p, bool apart)
{
	return (apart || is_shared(p)) && !slp_param_is_frozen(p);
}

/* Whether both can have one owner, and their gradients one memory. */
static bool alike(const sl_param *a, const sl_param *b)
{
	bool same = a->ndevices == b->ndevices && a->data->type.dtype == b->data->type.dtype;
	for (int i = 0; same && i < a->ndevices; i++) same = sl_device_equal(a->devices[i], b->devices[i]);
	return same;
}

/* The bytes transferred in a few times the latency.  Between processes no backward pass hides the last bucket: so there
 * are more of them, even of a small network.  Gradients that are used group by group take the memory of two buckets. */
double slp_grad_bucket_bytes(sl_param *const *params, int count, bool apart)
{
	const bool far = slp_dist.size > 1;
	const double least = far ? 1 << 18 : 1 << 20;
	double bytes = 0;
	int parts = apart ? 16 : far ? 10 : 6;
	for (int i = 0; i < count; i++) {
		if (!is_bucketed(params[i], apart)) continue;
		bytes += (double)sl_tensor_bytes(params[i]->data);
		int n = is_dealt(params[i]) ? slp_auto_deal.most : params[i]->ndevices;
		if (n > parts) parts = n;
	}
	return bytes / parts > least ? bytes / parts : least;
}

/* The last parameters first: in the backward pass, their gradients come first.  (S. Li and others, "PyTorch
 * Distributed: Experiences on Accelerating Data Parallel Training", VLDB 2020, calls them buckets.) */
static void make_buckets(sl_param *const *params, int count, const int *ranks, bool apart, int *bucket)
{
	double limit = slp_grad_bucket_bytes(params, count, apart), bytes = 0;
	const sl_param *before = NULL;
	int n = 0, rank = 0;
	for (int i = count - 1; i >= 0; i--) {
		bucket[i] = -1;
		if (!is_bucketed(params[i], apart)) continue;
		if (before && (bytes >= limit || !alike(before, params[i]) || (ranks && ranks[i] != rank))) {
			n++;
			bytes = 0;
		}
		bucket[i] = n;
		bytes += (double)sl_tensor_bytes(params[i]->data);
		before = params[i];
		rank = ranks ? ranks[i] : 0;
	}
}

static int count_devices(sl_param *const *params, int count)
{
	int n = 1;
	for (int i = 0; i < count; i++) n += count_of(params[i]) ? count_of(params[i]) : 1;
	return n;
}

/* Each bucket goes to the device that owns least. */
static void deal(sl_param *const *params, int count, const int *bucket, struct share *shares, sl_device *owners)
{
	int known = 0;
	struct share *owner = NULL;
	for (int i = count - 1, now = -1; i >= 0; i--) {
		if (bucket[i] < 0) continue;
		if (bucket[i] != now) owner = least(params[i], shares, &known);
		now = bucket[i];
		owners[i] = owner->device;
		owner->bytes += (double)sl_tensor_bytes(params[i]->data) + 4096;
	}
}

void slp_grad_buckets_assign(sl_param *const *params, int count, bool together, const int *ranks, sl_device home,
                             sl_device *owners, int *bucket)
{
	bool known = !together, apart = home.kind != SL_DEVICE_DEFAULT;
	for (int i = 0; i < count; i++) {
		owners[i] = home;
		bucket[i] = -1;
		known &= params[i]->data != NULL;
	}
	struct share *shares = known ? slp_calloc((size_t)count_devices(params, count), sizeof *shares) : NULL;
	if (shares) {
		make_buckets(params, count, ranks, apart, bucket);
		if (!apart) deal(params, count, bucket, shares, owners);
	}
	free(shares);
	for (int i = 0; i < count; i++)
		if (params[i]->data && params[i]->data->var) params[i]->data->var->owner = owners[i];
}

/* ---- their memory ------------------------------------------------------------------------------------------------ */

/* Whether the parameter can move: nothing else refers to its memory. */
static bool is_alone(const sl_param *p)
{
	const sl_tensor *t = p->data;
	return t->offset == 0 && sl_tensor_bytes(t) == t->storage->bytes && atomic_load(&t->storage->refs) == 1;
}

static size_t room(const sl_tensor *t)
{
	enum { ALIGN = 256 }; /* the alignment that GPUs and their libraries prefer */
	return (sl_tensor_bytes(t) + ALIGN - 1) / ALIGN * ALIGN;
}

static void release_later(void *storage)
{
	slp_storage_release(storage);
}

/* Moves a parameter's values into memory of several, if there is such memory. */
static bool move(const char *at, sl_tensor *t, sl_tensor *all, size_t offset)
{
	slp_storage_retain(all->storage);
	sl_tensor *there = slp_scope_add(slp_tensor_new(all->storage, offset, t->type, all->device));
	if (!there || !sl_copy_inplace_at(at, there, t)) return false;
	struct slp_storage *old = t->storage;
	slp_storage_retain(all->storage);
	t->storage = all->storage;
	t->offset = offset;
	slp_later(release_later, old);
	return true;
}

/* Parameters first to last, those of one bucket: they are transferred together if they are adjacent in memory. */
static bool gather(const char *at, sl_param *const *params, int first, int last, sl_device owner, const int *bucket)
{
	size_t bytes = 0;
	int members = 0;
	for (int i = first; i <= last; i++) {
		if (bucket[i] != bucket[first]) continue;
		if (!is_alone(params[i])) return true; /* done before, or it cannot be */
		bytes += room(params[i]->data);
		members++;
	}
	if (members < 2) return true;
	struct sl_make make = {params[first]->data->type.dtype, owner};
	sl_tensor *all = sl_zeros_at(at, SL_SHAPE((int64_t)(bytes / sl_dtype_size(make.dtype))), make);
	bool ok = all != NULL;
	size_t offset = 0;
	for (int i = first; ok && i <= last; i++) {
		if (bucket[i] != bucket[first]) continue;
		ok = move(at, params[i]->data, all, offset);
		offset += room(params[i]->data);
	}
	return ok;
}

sl_tensor *slp_grad_bucket_memory(sl_param *const *params, int count, int i)
{
	sl_tensor *t = params[i]->data;
	size_t bytes = 0;
	for (int k = 0; k < count; k++)
		if (params[k]->data && params[k]->data->storage == t->storage) bytes += room(params[k]->data);
	if (bytes != t->storage->bytes) return t;
	slp_storage_retain(t->storage);
	struct slp_type type = {t->type.dtype, SL_SHAPE((int64_t)(bytes / sl_dtype_size(t->type.dtype)))};
	return slp_scope_add(slp_tensor_new(t->storage, 0, type, t->device));
}

/* New values are sent to all devices that use the parameter, before they ask. */
static void send_to_all(const sl_param *p, bool apart)
{
	sl_device dealt[SLP_MAX_GPUS];
	int n = is_dealt(p) && slp_auto_gpus() ? slp_auto_deal.devices : 0; /* CPU teams share their memory */
	for (int i = 0; i < n; i++) dealt[i] = slp_auto_dealt(i);
	uint64_t nodes = n ? slp_device_nodes(dealt, n) : slp_device_nodes(p->devices, p->ndevices);
	sl_device own = slp_auto_foreseen(p->data->device);
	if (!nodes && apart) nodes = slp_device_nodes(&own, 1);
	bool needed = apart ? nodes != 0 : (nodes & (nodes - 1)) != 0;
	slp_lock();
	struct slp_buffer *b = p->data->storage->buffer;
	if (b && (n || needed)) atomic_store(&b->readers, needed ? nodes : 0);
	slp_unlock();
}

bool slp_grad_buckets_gather(const char *at, sl_param *const *params, int count, const sl_device *owners,
                             const int *bucket, bool apart)
{
	bool ok = true;
	for (int i = 0, now = -1; ok && i < count; i++) {
		if (bucket[i] < 0) continue;
		int last = i;
		for (int k = i; k < count; k++)
			if (bucket[k] == bucket[i]) last = k;
		if (bucket[i] != now && !apart)
			SL_SCOPE
				ok = gather(at, params, i, last, owners[i], bucket);
		now = bucket[i];
		if (ok) send_to_all(params[i], apart);
	}
	return ok;
}
