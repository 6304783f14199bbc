/* Data sets of streams of tokens: a sample is a window, and the successor of each of its tokens. */
#include <stdlib.h>
#include <string.h>

#include "data/dataset.h"
#include "data/disk.h"
#include "op.h"
#include "runtime/budget.h"
#include "options.h"
#include "starling/data.h"
#include "tensor/tensor.h"

struct tokens {
	struct sl_dataset base;
	struct slp_disk disk;
	int64_t length, stride;
	int bytes; /* of a token */
};

/* Token i of a file's bytes; -1: it is larger than an int32 can be. */
static int32_t token(const uint8_t *raw, int bytes, int64_t i)
{
	uint32_t wide;
	uint16_t narrow;
	if (bytes == 1) return raw[i];
	memcpy(&narrow, raw + 2 * i, sizeof narrow);
	if (bytes == 2) return narrow;
	memcpy(&wide, raw + 4 * i, sizeof wide);
	return wide > INT32_MAX ? -1 : (int32_t)wide;
}

static bool window(const struct tokens *t, const uint8_t *raw, const struct sl_sample *s)
{
	int32_t *x = s->x, *y = s->y;
	for (int64_t i = 0; i <= t->length; i++) {
		int32_t v = token(raw, t->bytes, i);
		if (v < 0)
			return slp_data_fail(SL_EFORMAT, "%s: token %lld is larger than %d", t->disk.path,
			                     (long long)(s->index * t->stride + i), INT32_MAX);
		if (i < t->length) x[i] = v;
		if (i && y) y[i - 1] = v;
	}
	return true;
}

static bool get(const sl_dataset *d, struct sl_sample *s)
{
	const struct tokens *t = (const struct tokens *)d;
	size_t bytes = (size_t)(t->length + 1) * (size_t)t->bytes;
	uint8_t *raw = slp_try_malloc(bytes);
	if (!raw)
		return slp_data_fail(SL_ENOMEM, "%s: no memory for %lld tokens", t->disk.path,
		                     (long long)t->length + 1);
	bool ok = slp_disk_read(&t->disk, s->index * t->stride * t->bytes, raw, bytes) && window(t, raw, s);
	free(raw);
	return ok;
}

static void give_up(sl_dataset *d)
{
	slp_disk_close(&((struct tokens *)d)->disk);
}

static bool sums(const sl_dataset *d, uint32_t sums[2])
{
	const struct tokens *t = (const struct tokens *)d;
	sums[1] = (uint32_t)(t->length * 31 + t->stride);
	return slp_disk_sum(&t->disk, &sums[0]);
}

static const struct slp_source tokens_source = {"tokens", get, give_up, sums};

static bool fill(struct tokens *t, const char *path, struct sl_tokens_opts o)
{
	t->length = o.length;
	t->stride = o.stride ? o.stride : o.length;
	t->bytes = o.bytes ? o.bytes : 2;
	if (!slp_disk_open(&t->disk, path)) return false;
	int64_t count = t->disk.size / t->bytes;
	if (t->disk.size % t->bytes)
		return slp_data_fail(SL_EFORMAT, "%s: has %lld bytes, not a multiple of the %d of a token", path,
		                     (long long)t->disk.size, t->bytes);
	if (count <= t->length)
		return slp_data_fail(SL_EFORMAT, "%s: has %lld tokens, a sample needs %lld", path, (long long)count,
		                     (long long)t->length + 1);
	t->base.size = (count - t->length - 1) / t->stride + 1;
	if (t->base.size > INT32_MAX)
		return slp_data_fail(SL_EINVAL, "%s: more than %d samples; a larger stride makes fewer", path,
		                     INT32_MAX);
	t->base.x = t->base.y = (struct sl_array){NULL, SL_SHAPE(t->length), SL_INT32};
	return slp_dataset_classes(&t->base, 0);
}

/* A data set of a file of tokens, little-endian integers (nanoGPT's preparation writes uint16), or with .bytes = 1 the
 * bytes of a text.  x of sample i are the `length` tokens from i · stride on, int32; y are the tokens one position
 * later.  Samples are read on request and not kept.  NULL with SL_EIO: the file cannot be read; SL_EFORMAT: it has too
 * few tokens, or ends within one; SL_EINVAL: an option is out of range.
 *
 *     sl_dataset *d = sl_dataset_tokens("train.bin", .length = 1024); */
sl_dataset *sl_dataset_tokens_at(const char *at, const char *path, struct sl_tokens_opts opts)
{
	SLP_CALL("sl_dataset_tokens", at);
	SLP_BUDGET(path);
	if (!SLP_OPTIONS(sl_tokens_opts, at, "sl_dataset_tokens", &opts)) return NULL;
	enum { LONGEST = 1 << 28 };
	if (!slp_given(at, "sl_dataset_tokens", "path", path)) return NULL;
	if (opts.length < 1 || opts.length > LONGEST || opts.stride < 0 || opts.stride > LONGEST)
		return slp_call_fail(at, "sl_dataset_tokens", SL_EINVAL, "length is %lld, stride %lld",
		                     (long long)opts.length, (long long)opts.stride);
	if (opts.bytes && opts.bytes != 1 && opts.bytes != 2 && opts.bytes != 4)
		return slp_call_fail(at, "sl_dataset_tokens", SL_EINVAL, "bytes is %d; it must be 1, 2 or 4",
		                     opts.bytes);
	struct tokens *t = slp_dataset_new(sizeof *t, &tokens_source);
	if (!t) return NULL;
	if (fill(t, path, opts)) return &t->base;
	sl_dataset_free(&t->base);
	return NULL;
}
