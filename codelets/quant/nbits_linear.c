/* nbits_linear: products with weights of a few bits, which stay packed.
 *
 * For few rows of x, numbers of four bits become floats in registers, where they are multiplied: their weights are read once,
 * an eighth of the bytes of floats.  A row's sum of q - z over a block is that of q less z times the sum of x.  For
 * many rows, a few units at a time are unpacked into a thread's memory and multiplied as matrices of floats. */
#include <string.h>

#include "common/gemm.h"
#include "common/simd.h"
#include "common/workspace.h"
#include "op_list/quant.h"
#include "packed_linear.h"
#include "quant/nbits.h"

enum { FEW = 16, UNITS = 32, HALF = 16 }; /* rows; units unpacked at a time; bytes of 32 numbers */

static const struct slp_attr attr_table[] = {
        SLP_ATTR(struct slp_nbits_attrs, bits, SLP_INT, 1, "of a weight: 2, 4 or 8"),
        SLP_ATTR(struct slp_nbits_attrs, block, SLP_INT, 1, "weights with one scale"),
        SLP_ATTR(struct slp_nbits_attrs, zeros, SLP_INT, 1, "zero points are 0: the middle, 1: packed, 2: floats"),
        {0},
};

/* ---- rules ------------------------------------------------------------------------------------------------------- */

static int64_t blocks_of(const struct slp_nbits_attrs *a, int64_t inner)
{
	return (inner + a->block - 1) / a->block;
}

static enum sl_status check_attrs(const struct slp_infer *c, const struct slp_nbits_attrs *a)
{
	if (a->bits != 2 && a->bits != 4 && a->bits != 8) return slp_reject(c, SL_EINVAL, "bits must be 2, 4 or 8");
	if (a->block < 16 || (a->block & (a->block - 1)))
		return slp_reject(c, SL_EINVAL, "block must be a power of 2, 16 at least");
	if (a->zeros < 0 || a->zeros > 2) return slp_reject(c, SL_EINVAL, "zeros must be 0 to 2");
	int least = 3 + (a->zeros > 0);
	return c->nin < least || c->nin > least + 1
	               ? slp_reject(c, SL_EINVAL, "needs %d inputs, and at most a bias", least)
	               : SL_OK;
}

static enum sl_status check_types(const struct slp_infer *c, const struct slp_nbits_attrs *a)
{
	for (int i = 0; i < c->nin; i++) {
		enum sl_dtype needed = i == 1 || (i == 3 && a->zeros == 1) ? SL_UINT8 : SL_FLOAT32;
		if (c->in[i].dtype != needed)
			return slp_reject(c, SL_EDTYPE, "input %d is %s, %s needed", i, sl_dtype_name(c->in[i].dtype),
			                  sl_dtype_name(needed));
	}
	return SL_OK;
}

static enum sl_status infer(struct slp_infer *c)
{
	const struct slp_nbits_attrs *a = c->attrs;
	enum sl_status s = check_attrs(c, a);
	if (s == SL_OK) s = check_types(c, a);
	if (s != SL_OK) return s;
	sl_shape x = c->in[0].shape;
	if (x.ndim < 1 || x.dim[x.ndim - 1] < 1 || c->in[1].shape.ndim < 1)
		return slp_reject(c, SL_ESHAPE, "x and w need 1 axis at least, and x an element in its last");
	int64_t blocks = blocks_of(a, x.dim[x.ndim - 1]), units = c->in[1].shape.dim[0];
	if (sl_shape_size(c->in[1].shape) != units * blocks * a->block * a->bits / 8 ||
	    sl_shape_size(c->in[2].shape) != units * blocks)
		return slp_reject(c, SL_ESHAPE, "weights or scales do not fit %lld units of %lld blocks",
		                  (long long)units, (long long)blocks);
	int64_t zeros = units * (a->zeros == 1 ? (blocks * a->bits + 7) / 8 : blocks);
	if (a->zeros && sl_shape_size(c->in[3].shape) != zeros)
		return slp_reject(c, SL_ESHAPE, "%lld elements of zero points needed", (long long)zeros);
	if (c->nin > 3 + (a->zeros > 0) && sl_shape_size(c->in[c->nin - 1].shape) != units)
		return slp_reject(c, SL_ESHAPE, "bias must have an element for each unit");
	c->out[0] = (struct slp_type){SL_FLOAT32, x};
	c->out[0].shape.dim[x.ndim - 1] = units;
	return SL_OK;
}

static double flops(const struct slp_infer *c)
{
	sl_shape x = c->in[0].shape;
	return 2.0 * (double)sl_shape_size(x) * (double)(c->in[1].shape.ndim ? c->in[1].shape.dim[0] : 0);
}

struct slp_nbits slp_nbits_of(const struct slp_kernel *k)
{
	const struct slp_nbits_attrs *a = k->attrs;
	sl_shape x = k->in[0].type.shape;
	struct slp_nbits p = {.inner = x.dim[x.ndim - 1],
	                      .units = k->in[1].type.shape.dim[0],
	                      .bits = a->bits,
	                      .block = a->block,
	                      .zeros = a->zeros,
	                      .x = k->in[0].ptr,
	                      .w = k->in[1].ptr,
	                      .scale = k->in[2].ptr,
	                      .zero = a->zeros ? k->in[3].ptr : NULL,
	                      .y = k->out[0].ptr};
	if (k->nin > 3 + (a->zeros > 0)) p.bias = k->in[k->nin - 1].ptr;
	p.blocks = blocks_of(a, p.inner);
	p.rows = slp_size(&k->in[0]) / p.inner;
	p.row_bytes = p.blocks * a->block * a->bits / 8;
	p.zero_bytes = (p.blocks * a->bits + 7) / 8;
	return p;
}

static enum sl_status nbits_ref(const struct slp_kernel *k)
{
	struct slp_nbits p = slp_nbits_of(k);
	for (int64_t i = 0; i < p.rows * p.units; i++) {
		double sum = p.bias ? p.bias[i % p.units] : 0;
		for (int64_t e = 0; e < p.inner; e++)
			sum += (double)p.x[i / p.units * p.inner + e] * slp_nbits_weight(&p, i % p.units, e);
		p.y[i] = (float)sum;
	}
	return SL_OK;
}

/* ---- four bits, few rows ----------------------------------------------------------------------------------------- */

struct job {
	struct slp_nbits p;
	float *halves; /* x: of each 32 elements of a row, the even ones and then the odd ones */
	float *sums;   /* of each block of a row */
	bool failed;   /* a thread got no memory */
};

static int64_t padded(const struct slp_nbits *p)
{
	return p->blocks * p->block;
}

/* A row of x as the product reads it, with zeros at its end. */
static void arrange(const struct job *j, int64_t row)
{
	const struct slp_nbits *p = &j->p;
	const float *x = p->x + row * p->inner;
	float *to = j->halves + row * padded(p), *sums = j->sums + row * p->blocks;
	memset(sums, 0, (size_t)p->blocks * sizeof *sums);
	for (int64_t i = 0; i < padded(p); i++) {
		float v = i < p->inner ? x[i] : 0;
		to[i / 32 * 32 + i % 2 * HALF + i % 32 / 2] = v;
		sums[i / p->block] += v;
	}
}

typedef uint8_t bytes16 __attribute__((vector_size(HALF)));
typedef int32_t ints16 __attribute__((vector_size(4 * HALF)));

/* Times a scale.  By way of int32: gcc converts bytes to floats one by one. */
SLP_INLINE void set_floats(slp_v16 *to, bytes16 q, float scale)
{
	*to = __builtin_convertvector(__builtin_convertvector(q, ints16), slp_v16) * scale;
}

SLP_INLINE float sum_of(const slp_v16 *v)
{
	float sum = 0;
	SLP_UNROLL
	for (int i = 0; i < 16; i++) sum += (*v)[i];
	return sum;
}

/* Products of `count` rows of x, from `row` on, with a unit's weights. */
SLP_INLINE void dots(const struct job *j, int64_t unit, int64_t row, int count, float *sum)
{
	const struct slp_nbits *p = &j->p;
	const uint8_t *w = p->w + unit * p->row_bytes;
	const float *x = j->halves + row * padded(p), *sums = j->sums + row * p->blocks;
	slp_v16 total[4] = {{0}};
	float shift[4] = {0};
	for (int64_t b = 0; b < p->blocks; b++) {
		float scale = p->scale[unit * p->blocks + b], below = scale * slp_nbits_zero(p, unit, b);
		for (int64_t e = b * p->block; e < (b + 1) * p->block; e += 32) {
			bytes16 q;
			slp_v16 low, high;
			memcpy(&q, w + e / 2, sizeof q);
			set_floats(&low, q & 15, scale);
			set_floats(&high, q >> 4, scale);
			SLP_UNROLL
			for (int r = 0; r < count; r++) {
				slp_v16 even, odd;
				memcpy(&even, x + r * padded(p) + e, sizeof even);
				memcpy(&odd, x + r * padded(p) + e + HALF, sizeof odd);
				total[r] += low * even + high * odd;
			}
		}
		for (int r = 0; r < count; r++) shift[r] += below * sums[r * p->blocks + b];
	}
	for (int r = 0; r < count; r++) sum[r] = sum_of(&total[r]) - shift[r];
}

SLP_CLONES static void multiply_units(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	const struct slp_nbits *p = &j->p;
	for (int64_t unit = begin; unit < end; unit++) {
		float sum[FEW], bias = p->bias ? p->bias[unit] : 0;
		int64_t row = 0;
		for (; row + 4 <= p->rows; row += 4) dots(j, unit, row, 4, sum + row);
		for (; row < p->rows; row++) dots(j, unit, row, 1, sum + row);
		for (row = 0; row < p->rows; row++) p->y[row * p->units + unit] = sum[row] + bias;
	}
}

static enum sl_status by_registers(const struct slp_kernel *k, struct job *j)
{
	const struct slp_nbits *p = &j->p;
	j->halves = slp_workspace(SLP_WORK_CALL, (size_t)(p->rows * (padded(p) + p->blocks)) * sizeof(float));
	if (!j->halves) return slp_kernel_fail(k, SL_ENOMEM, "no memory for %lld rows", (long long)p->rows);
	j->sums = j->halves + p->rows * padded(p);
	for (int64_t row = 0; row < p->rows; row++) arrange(j, row);
	slp_parallel_for(p->units, SLP_GRAIN / (p->rows * p->inner) + 1, multiply_units, j);
	return SL_OK;
}

/* ---- otherwise --------------------------------------------------------------------------------------------------- */

SLP_CLONES static void unpack_nibbles(float *to, const uint8_t *w, float zero, float scale, int64_t n)
{
	for (int64_t i = 0; i < n / 2; i++) {
		to[2 * i] = ((float)(w[i] & 15) - zero) * scale;
		to[2 * i + 1] = ((float)(w[i] >> 4) - zero) * scale;
	}
}

static void unpack(const struct slp_nbits *p, int64_t unit, float *to)
{
	const uint8_t *w = p->w + unit * p->row_bytes;
	for (int64_t b = 0; b < p->blocks; b++) {
		float zero = slp_nbits_zero(p, unit, b), scale = p->scale[unit * p->blocks + b];
		int64_t first = b * p->block;
		if (p->bits == 4) unpack_nibbles(to + first, w + first / 2, zero, scale, p->block);
		for (int64_t i = first; p->bits != 4 && i < first + p->block; i++)
			to[i] = ((float)slp_nbits_number(w, i, p->bits) - zero) * scale;
	}
}

static void multiply_panels(void *arg, int64_t begin, int64_t end)
{
	struct job *j = arg;
	const struct slp_nbits *p = &j->p;
	for (int64_t panel = begin; panel < end; panel++) {
		int64_t first = panel * UNITS, units = p->units - first < UNITS ? p->units - first : UNITS;
		float *w = slp_workspace(SLP_WORK_THREAD, (size_t)(UNITS * padded(p)) * sizeof *w);
		if (!w) {
			__atomic_store_n(&j->failed, true, __ATOMIC_RELAXED);
			return;
		}
		for (int64_t i = 0; i < units; i++) unpack(p, first + i, w + i * padded(p));
		for (int64_t row = 0; row < p->rows; row++)
			for (int64_t i = 0; i < units; i++)
				p->y[row * p->units + first + i] = p->bias ? p->bias[first + i] : 0;
		slp_sgemm_serial(false, true, p->rows, units, p->inner, 1, p->x, p->inner, w, padded(p), 1,
		                 p->y + first, p->units);
	}
}

static enum sl_status nbits_cpu(const struct slp_kernel *k)
{
	struct job j = {.p = slp_nbits_of(k)};
	if (j.p.rows == 0 || j.p.units == 0) return SL_OK;
	if (j.p.bits == 4 && j.p.block % 32 == 0 && j.p.rows <= FEW) return by_registers(k, &j);
	slp_parallel_for((j.p.units + UNITS - 1) / UNITS, 1, multiply_panels, &j);
	return j.failed ? slp_kernel_fail(k, SL_ENOMEM, "no memory for %d units", UNITS) : SL_OK;
}

const struct sl_op slp_op_nbits_linear = {
        .name = "nbits_linear",
        .doc = "products with weights of 2, 4 or 8 bits, which stay packed",
        .args = "x w scale zero bias",
        .nin_min = 3,
        .nin_max = 5,
        .nout = 1,
        .attr_table = attr_table,
        .attrs_size = sizeof(struct slp_nbits_attrs),
        .rows = SLP_ROWS(SLP_ROW(SLP_DTYPE(SL_UINT8) | SLP_F32, nbits_cpu, slp_cuda_nbits_linear)),
        .infer = infer,
        .flops = flops,
        .grad = slp_constant,
        .ref = nbits_ref,
};

sl_tensor *slp_nbits_linear(const char *at, sl_tensor *x, sl_tensor *w, sl_tensor *scale, sl_tensor *zero,
                            sl_tensor *bias, int bits, int block)
{
	struct slp_nbits_attrs a = {bits, block, !zero ? 0 : sl_tensor_dtype(zero) == SL_UINT8 ? 1 : 2};
	sl_tensor *in[5] = {x, w, scale};
	int n = 3;
	if (zero) in[n++] = zero;
	if (bias) in[n++] = bias;
	return slp_apply1(at, &slp_op_nbits_linear, &a, n, in);
}
