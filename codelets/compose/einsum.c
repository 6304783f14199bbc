/* einsum: sums of products by the letters of their axes, as transposes, batched matrix products and sums. */
#include <ctype.h>
#include <limits.h>
#include <string.h>

#include "compose.h"
#include "op.h"
#include "starling/functions.h"

enum { MOST = 16 }; /* terms */

static const char me[] = "sl_einsum";

/* A tensor with a letter for each axis. */
struct term {
	sl_tensor *t;
	char letters[SL_MAX_NDIM + 2]; /* "..." is a dot here until its axes get digits */
};

struct equation {
	const char *at, *text;
	struct term in[MOST];
	int count;
	char out[SL_MAX_NDIM + 2];
	int64_t size[UCHAR_MAX + 1]; /* of each letter's axis */
};

static bool has(const char *letters, char c)
{
	return c && strchr(letters, c) != NULL;
}

/* Reads letters up to the next delimiter; "..." becomes one dot. Returns the delimiter's place, NULL if they are not a
 * term. */
static const char *read_letters(const char *text, char to[SL_MAX_NDIM + 2])
{
	size_t n = 0, axes = 0;
	to[0] = 0;
	for (; *text && *text != ',' && *text != '-'; text++) {
		if (*text == ' ') continue;
		bool dots = !strncmp(text, "...", 3) && !has(to, '.');
		if (dots) text += 2;
		else if (!isalpha((unsigned char)*text) || axes++ == SL_MAX_NDIM) return NULL;
		to[n++] = *text;
		to[n] = 0;
	}
	return text;
}

/* Replaces the dot by letters for so many axes: digits, counted from the last axis. */
static bool expand(char letters[SL_MAX_NDIM + 2], int axes)
{
	char text[2 * SL_MAX_NDIM + 2] = "";
	size_t n = 0;
	for (const char *c = letters; *c; c++) {
		if (*c != '.') text[n++] = *c;
		for (int i = axes - 1; *c == '.' && i >= 0; i--) text[n++] = (char)('0' + i);
	}
	if (n > SL_MAX_NDIM) return false;
	text[n] = 0;
	strcpy(letters, text);
	return true;
}

/* The number of times that a letter occurs in the terms. */
static int times(const struct equation *e, char c)
{
	int n = 0;
	for (int i = 0; i < e->count; i++)
		for (const char *l = e->in[i].letters; *l; l++) n += *l == c;
	return n;
}

/* The default result: the axes of "...", and the letters that occur once, in alphabetical order. */
static bool derive_result(struct equation *e)
{
	size_t n = 0;
	if (times(e, '.')) e->out[n++] = '.';
	for (int c = 'A'; c <= 'z'; c++) {
		if (times(e, (char)c) != 1) continue;
		if (n == SL_MAX_NDIM) return false;
		e->out[n++] = (char)c;
	}
	e->out[n] = 0;
	return true;
}

static bool each_once(const char *letters)
{
	for (; *letters; letters++)
		if (has(letters + 1, *letters)) return false;
	return true;
}

static bool parse(struct equation *e, const char *text)
{
	for (int i = 0; i < e->count; i++) {
		text = read_letters(text, e->in[i].letters);
		if (!text || (i < e->count - 1 && *text++ != ',')) return false;
	}
	if (!*text) return derive_result(e);
	if (strncmp(text, "->", 2)) return false;
	text = read_letters(text + 2, e->out);
	return text && !*text && each_once(e->out);
}

/* The axes of "...": in each term those without a letter; the result has the largest number of them. */
static bool name_axes(struct equation *e)
{
	int most = 0;
	for (int i = 0; i < e->count; i++) {
		char *letters = e->in[i].letters;
		bool dot = has(letters, '.');
		int rest = sl_tensor_shape(e->in[i].t).ndim - ((int)strlen(letters) - dot);
		if (rest < 0 || (rest && !dot) || !expand(letters, rest)) {
			slp_call_fail(e->at, me, SL_ESHAPE, "tensor %d has %d axes, its term in \"%s\" another number",
			              i, sl_tensor_shape(e->in[i].t).ndim, e->text);
			return false;
		}
		if (rest > most) most = rest;
	}
	if (expand(e->out, most)) return true;
	slp_call_fail(e->at, me, SL_ESHAPE, "the result of \"%s\" has more than %d axes", e->text, SL_MAX_NDIM);
	return false;
}

static bool letter_fails(const struct equation *e, char c, int64_t size, int64_t other)
{
	if (other < 0)
		slp_call_fail(e->at, me, SL_ESHAPE, "letter %c of the result is in no term of \"%s\"", c, e->text);
	else if (isdigit((unsigned char)c))
		slp_call_fail(e->at, me, SL_ESHAPE, "an axis of ... in \"%s\" has both %lld and %lld elements", e->text,
		              (long long)size, (long long)other);
	else
		slp_call_fail(e->at, me, SL_ESHAPE, "letter %c of \"%s\" stands for axes of %lld and of %lld elements",
		              c, e->text, (long long)size, (long long)other);
	return false;
}

/* Finds the sizes of the letters; whether all tensors agree on them. Axes of "..." are broadcast. */
static bool measure(struct equation *e)
{
	for (int i = 0; i < (int)(sizeof e->size / sizeof *e->size); i++) e->size[i] = -1;
	for (int i = 0; i < e->count; i++) {
		sl_shape s = sl_tensor_shape(e->in[i].t);
		for (int axis = 0; axis < s.ndim; axis++) {
			unsigned char c = (unsigned char)e->in[i].letters[axis];
			int64_t *size = &e->size[c], n = s.dim[axis];
			if (*size >= 0 && *size != n && !(isdigit(c) && (*size == 1 || n == 1)))
				return letter_fails(e, (char)c, *size, n);
			if (*size < 0 || *size == 1) *size = n;
		}
	}
	for (const char *c = e->out; *c; c++)
		if (e->size[(unsigned char)*c] < 0) return letter_fails(e, *c, -1, -1);
	return true;
}

/* The term without axes of one element that are longer in other terms. */
static bool drop_broadcast(const struct equation *e, struct term *a)
{
	sl_shape s = sl_tensor_shape(a->t), to = {0};
	for (int axis = 0; axis < s.ndim; axis++) {
		if (s.dim[axis] == 1 && e->size[(unsigned char)a->letters[axis]] != 1) continue;
		a->letters[to.ndim] = a->letters[axis];
		to.dim[to.ndim++] = s.dim[axis];
	}
	a->letters[to.ndim] = 0;
	if (to.ndim < s.ndim) a->t = sl_reshape_at(e->at, a->t, to);
	return a->t != NULL;
}

/* The term with the diagonal of axes `first` and `second`, which have one letter, as its last axis: both are seen as
 * one axis, whose elements at steps of a row and an element are the diagonal. */
static bool take_diagonal(const struct equation *e, struct term *a, int first, int second)
{
	sl_shape s = sl_tensor_shape(a->t), flat = {0};
	char c = a->letters[first];
	int axes[SL_MAX_NDIM], n = 0;
	for (int axis = 0; axis < s.ndim; axis++) {
		if (axis == first || axis == second) continue;
		a->letters[n] = a->letters[axis];
		flat.dim[n] = s.dim[axis];
		axes[n++] = axis;
	}
	int64_t size = s.dim[first];
	axes[n] = first, axes[n + 1] = second;
	a->letters[n] = c, a->letters[n + 1] = 0;
	flat.dim[n] = size * size;
	flat.ndim = n + 1;
	a->t = sl_transpose_at(e->at, a->t, (struct sl_reduce_opts){.axes = axes, .naxes = s.ndim});
	a->t = a->t ? sl_reshape_at(e->at, a->t, flat) : NULL;
	a->t = a->t ? sl_slice_at(e->at, a->t, n, 0, size * size, size + 1) : NULL;
	return a->t != NULL;
}

/* The term with each letter once, and axes as long as the letters demand. */
static bool simplify(const struct equation *e, struct term *a)
{
	if (!drop_broadcast(e, a)) return false;
	for (bool again = true; again;) {
		again = false;
		for (int axis = 0; a->letters[axis] && !again; axis++) {
			const char *other = strchr(a->letters + axis + 1, a->letters[axis]);
			if (!other) continue;
			again = true;
			if (!take_diagonal(e, a, axis, (int)(other - a->letters))) return false;
		}
	}
	return true;
}

/* Whether a letter is needed after term i: in the result, or in a later term. */
static bool wanted(const struct equation *e, int i, char c)
{
	for (int j = i + 1; j < e->count; j++)
		if (has(e->in[j].letters, c)) return true;
	return has(e->out, c);
}

/* Sums a term over the letters that neither `other` nor a term after i needs. */
static void sum_out(const struct equation *e, int i, struct term *a, const char *other)
{
	int axes[SL_MAX_NDIM], n = 0, kept = 0;
	for (int axis = 0; a->letters[axis]; axis++)
		if (!has(other, a->letters[axis]) && !wanted(e, i, a->letters[axis])) axes[n++] = axis;
		else a->letters[kept++] = a->letters[axis];
	a->letters[kept] = 0;
	if (n) a->t = sl_sum_at(e->at, a->t, (struct sl_reduce_opts){.axes = axes, .naxes = n});
}

/* The term with its axes in the order of `letters`. */
static sl_tensor *ordered(const struct equation *e, const struct term *a, const char *letters)
{
	int axes[SL_MAX_NDIM], n = (int)strlen(letters);
	if (!strcmp(letters, a->letters)) return a->t;
	for (int i = 0; i < n; i++) axes[i] = (int)(strchr(a->letters, letters[i]) - a->letters);
	return sl_transpose_at(e->at, a->t, (struct sl_reduce_opts){.axes = axes, .naxes = n});
}

static int64_t product(const struct equation *e, const char *letters)
{
	int64_t n = 1;
	for (; *letters; letters++) n *= e->size[(unsigned char)*letters];
	return n;
}

/* Appends the letters of a that are in b or not, and that are needed later or not. */
static void collect(const struct equation *e, int i, const char *a, const char *b, bool in_b, bool later, char *to)
{
	size_t n = strlen(to);
	for (; *a; a++)
		if (has(b, *a) == in_b && wanted(e, i, *a) == later && n < SL_MAX_NDIM) to[n++] = *a;
	to[n] = 0;
}

typedef char letters[3 * SL_MAX_NDIM + 1];

static void joined(letters to, const char *a, const char *b, const char *c)
{
	strcpy(to, a);
	strcat(to, b);
	strcat(to, c);
}

/* The sizes of these letters; false if they are too many axes. */
static bool shape_of(const struct equation *e, const char *result, sl_shape *shape)
{
	shape->ndim = (int)strlen(result);
	if (shape->ndim > SL_MAX_NDIM) {
		slp_call_fail(e->at, me, SL_ESHAPE, "a product would have the %d axes %s", shape->ndim, result);
		return false;
	}
	for (int i = 0; i < shape->ndim; i++) shape->dim[i] = e->size[(unsigned char)result[i]];
	return true;
}

/* The product of a term with term i: a stack of matrices, whose axes remain from both, from one, or from none. */
static bool multiply(const struct equation *e, int i, struct term *a)
{
	struct term b = e->in[i];
	letters batch = "", rows = "", columns = "", gone = "", left, right, result;
	sum_out(e, i, a, b.letters);
	sum_out(e, i, &b, a->letters);
	collect(e, i, a->letters, b.letters, true, true, batch);
	collect(e, i, a->letters, b.letters, true, false, gone);
	collect(e, i, a->letters, b.letters, false, true, rows);
	collect(e, i, b.letters, a->letters, false, true, columns);
	joined(left, batch, rows, gone);
	joined(right, batch, gone, columns);
	joined(result, batch, rows, columns);
	int64_t stack = product(e, batch), m = product(e, rows), k = product(e, gone), n = product(e, columns);
	sl_shape shape;
	if (!shape_of(e, result, &shape)) return false;
	sl_tensor *x = sl_reshape_at(e->at, ordered(e, a, left), SL_SHAPE(stack, m, k));
	sl_tensor *y = sl_reshape_at(e->at, ordered(e, &b, right), SL_SHAPE(stack, k, n));
	if (!x || !y) return false;
	a->t = sl_reshape_at(e->at, sl_matmul_at(e->at, x, y, (struct sl_dot_opts){0}), shape);
	strcpy(a->letters, result);
	return a->t != NULL;
}

/* Sums of products of tensors by the letters of their axes, as numpy.einsum: axes whose letter is not in the result are
 * summed over, a letter that occurs twice in a term means the diagonal, "..." the other axes, which are broadcast.
 * Terms are multiplied from left to right, two at a time, as matrices.  Without "->" the result has the axes of "..."
 * and the letters that occur once, in alphabetical order.  All float32 or all float64.  SL_EINVAL: no equation, or one
 * with another number of terms; SL_ESHAPE: axes do not match their letters.
 *
 *     scores = sl_einsum("bqhd,bkhd->bhqk", q, k); */
sl_tensor *sl_einsum_at(const char *at, const char *equation, sl_tensor *const *tensors, int count)
{
	SLP_FUNCTION(me, at);
	struct equation e = {.at = at, .text = equation, .count = count};
	if (!equation || count < 1 || count > MOST)
		return slp_call_fail(at, me, SL_EINVAL, "an equation and 1 to %d tensors needed", MOST);
	if (!slp_given(at, me, "array of tensors", tensors)) return NULL;
	for (int i = 0; i < count; i++) {
		if (!slp_shape_given(at, me, "a tensor", tensors[i])) return NULL;
		e.in[i].t = tensors[i];
	}
	if (!parse(&e, equation))
		return slp_call_fail(at, me, SL_EINVAL, "\"%s\" is not an equation of %d terms", equation, count);
	if (!name_axes(&e) || !measure(&e)) return NULL;
	for (int i = 0; i < count; i++)
		if (!simplify(&e, &e.in[i])) return NULL;
	struct term a = e.in[0];
	for (int i = 1; i < count; i++)
		if (!multiply(&e, i, &a)) return NULL;
	sum_out(&e, count, &a, "");
	sl_tensor *y = a.t ? ordered(&e, &a, e.out) : NULL;
	return SLP_RETURN(y && y == tensors[0] ? sl_clone_at(at, y)
	                                       : y); /* a single term without sums: a new tensor all the same */
}
