/* Sums of the parts of several processes: the same elements in the same order as sums of shards (slp_tree_sum).  One
 * block of all operands after the other is added, so that intermediate values stay in the cache: each operand is
 * read once, the sum is written once. */
#include "dist/adders.h"
#include "dist/transport.h"
#include "op.h"
#include "whole.h"

enum { BLOCK = 1 << 14, LEVELS = 14 }; /* bytes; 2^LEVELS operands at most */

#define INDEPENDENT _Pragma("omp simd")

#define X(symbol, name, type, kind, compute, ...)                                                                      \
	__attribute__((unused)) static inline type plus_##symbol(type a, type b)                                       \
	{                                                                                                              \
		return slp_store_##symbol((compute)slp_load(a) + (compute)slp_load(b));                                \
	}
SL_DTYPE_LIST(X)
#undef X
#define plus_SL_INT64 slp_whole_add /* exact */
#define plus_SL_UINT64 unsigned_add

static inline uint64_t unsigned_add(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

/* `to` may be one of the operands: "omp simd" says that nothing else of them overlaps.  What is not finite gives a NaN
 * as the difference from itself. */
#define X(symbol, name, type, kind, compute, ...)                                                                      \
	SLP_CLONES static void add_two_##symbol(void *to, const void *x, const void *y, size_t n)                      \
	{                                                                                                              \
		type *sum = to;                                                                                        \
		const type *a = x, *b = y;                                                                             \
		INDEPENDENT                                                                                            \
		for (size_t i = 0; i < n; i++) sum[i] = plus_##symbol(a[i], b[i]);                                     \
	}                                                                                                              \
	SLP_CLONES static void add_four_##symbol(void *to, const void *const from[4], size_t n)                        \
	{                                                                                                              \
		type *sum = to;                                                                                        \
		const type *a = from[0], *b = from[1], *c = from[2], *d = from[3];                                     \
		INDEPENDENT                                                                                            \
		for (size_t i = 0; i < n; i++) {                                                                       \
			type ab = plus_##symbol(a[i], b[i]), cd = plus_##symbol(c[i], d[i]);                           \
			sum[i] = plus_##symbol(ab, cd);                                                                \
		}                                                                                                      \
	}                                                                                                              \
	SLP_CLONES static bool finite_##symbol(const void *data, size_t n)                                             \
	{                                                                                                              \
		const type *p = data;                                                                                  \
		unsigned bad = 0;                                                                                      \
		for (size_t i = 0; i < n; i++) {                                                                       \
			compute x = (compute)slp_load(p[i]);                                                           \
			bad |= x - x != 0;                                                                             \
		}                                                                                                      \
		return !bad;                                                                                           \
	}
SL_DTYPE_LIST(X)
#undef X

static const struct functions {
	void (*two)(void *to, const void *a, const void *b, size_t n);
	void (*four)(void *to, const void *const from[4], size_t n);
	bool (*finite)(const void *data, size_t n);
} functions[] = {
#define X(symbol, ...) [symbol] = {add_two_##symbol, add_four_##symbol, finite_##symbol},
        SL_DTYPE_LIST(X)
#undef X
};

/* ---- sums -------------------------------------------------------------------------------------------------------- */

struct sum {
	const struct functions *f;
	char *to;
	const void *const *list;
	int n;
	size_t size; /* of an element */
};

/* A block of all operands. */
struct block {
	const struct sum *s;
	size_t at, count; /* bytes, elements */
};

static const void *operand(const struct block *b, int i)
{
	return (const char *)b->s->list[i] + b->at;
}

/* The sum of a block of the operands from first on, as many as are there of `width`, a power of two: to, or where it is
 * already.  room: two blocks for each level of the tree. */
static const void *add_up(const struct block *b, int first, int width, void *to, char *room)
{
	const struct functions *f = b->s->f;
	if (width == 1) return operand(b, first);
	int half = width / 2;
	if (first + half >= b->s->n) return add_up(b, first, half, to, room);
	if (width == 4 && first + 4 <= b->s->n) {
		const void *four[] = {operand(b, first), operand(b, first + 1), operand(b, first + 2),
		                      operand(b, first + 3)};
		f->four(to, four, b->count);
		return to;
	}
	const void *left = add_up(b, first, half, room, room + 2 * BLOCK);
	const void *right = add_up(b, first + half, half, room + BLOCK, room + 2 * BLOCK);
	f->two(to, left, right, b->count);
	return to;
}

static void add_range(const void *job, size_t first, size_t count)
{
	const struct sum *s = job;
	char room[2 * LEVELS * BLOCK];
	int width = 1;
	while (width < s->n) width *= 2;
	for (size_t each = BLOCK / s->size, n; count; first += n, count -= n) {
		n = count < each ? count : each;
		struct block b = {s, first * s->size, n};
		add_up(&b, 0, width, s->to + b.at, room);
	}
}

void slp_add_tree(void *to, const void *const *list, int n, size_t count, enum sl_dtype dtype)
{
	struct sum s = {&functions[dtype], to, list, n, sl_dtype_size(dtype)};
	if (n > 1) slp_adders_run(add_range, &s, count, SLP_ADDERS_GRAIN / ((size_t)n * s.size) + 1);
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

struct check {
	const struct functions *f;
	const char *data;
	size_t size;
	atomic_bool *bad;
};

static void check_range(const void *job, size_t first, size_t count)
{
	const struct check *c = job;
	if (!c->f->finite(c->data + first * c->size, count)) atomic_store(c->bad, true);
}

bool slp_all_finite(const void *data, size_t count, enum sl_dtype dtype)
{
	atomic_bool bad = false;
	struct check c = {&functions[dtype], data, sl_dtype_size(dtype), &bad};
	slp_adders_run(check_range, &c, count, SLP_ADDERS_GRAIN / c.size);
	return !bad;
}
