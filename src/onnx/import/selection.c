/* ONNX operators, computed: selections, whose sizes depend on values, and counts of sequences.  These are read
 * (onnx/model/reading.c); the selected elements themselves are gathered by operations. */
#include <math.h>
#include <stdlib.h>

#include "onnx/model/call.h"
#include "op.h"
#include "runtime/budget.h"

static void give(struct slp_onnx_call *c, int i, struct slp_onnx_known *k)
{
	if (k) slp_onnx_set_output_value(c, i, (struct slp_onnx_value){.known = k});
	else c->failed = true; /* and recorded */
}

/* ---- NonZero, Compress ------------------------------------------------------------------------------------------- */

void slp_onnx_import_nonzero(struct slp_onnx_call *c)
{
	const struct slp_onnx_known *k = slp_onnx_known_in(c, 0);
	int64_t n = k ? sl_shape_size(k->shape) : 0, count = 0, place = 0;
	for (int64_t i = 0; i < n; i++) count += slp_onnx_known_number(k, i) != 0;
	struct slp_onnx_known *y = k ? slp_onnx_known_new(c->made, SL_INT64, SL_SHAPE(k->shape.ndim, count)) : NULL;
	for (int64_t i = 0; y && i < n; i++) {
		if (slp_onnx_known_number(k, i) == 0) continue;
		int64_t rest = i;
		for (int a = k->shape.ndim - 1; a >= 0; rest /= k->shape.dim[a--])
			y->v[a * count + place].i = rest % k->shape.dim[a];
		place++;
	}
	if (k) give(c, 0, y);
}

/* The places of an axis of n elements where the condition holds; it may be shorter. */
static struct slp_onnx_known *places_of(struct slp_onnx_call *c, const struct slp_onnx_known *k, int64_t n)
{
	int64_t m = sl_shape_size(k->shape), count = 0;
	for (int64_t i = 0; i < m && i < n; i++) count += slp_onnx_known_number(k, i) != 0;
	struct slp_onnx_known *y = slp_onnx_known_new(c->made, SL_INT64, SL_SHAPE(count));
	for (int64_t i = 0, place = 0; y && i < m && i < n; i++)
		if (slp_onnx_known_number(k, i) != 0) y->v[place++].i = i;
	return y;
}

void slp_onnx_import_compress(struct slp_onnx_call *c)
{
	sl_shape x = slp_onnx_shape(c, 0);
	const struct slp_onnx_known *k = slp_onnx_known_in(c, 1);
	struct slp_onnx_value v = c->in[0];
	int axis = 0;
	if (slp_onnx_attr(c, "axis")) axis = slp_onnx_axis(c, slp_onnx_attr_int(c, "axis", 0), x.ndim);
	else if (!c->failed) x = SL_SHAPE(sl_shape_size(x)), v = slp_onnx_reshaped(c, v, x);
	struct slp_onnx_known *places = c->failed ? NULL : places_of(c, k, x.dim[axis]);
	if (!places) c->failed = true; /* and recorded */
	else slp_onnx_set_output_value(c, 0, slp_onnx_gathered(c, v, (struct slp_onnx_value){.known = places}, axis));
}

/* ---- Unique ------------------------------------------------------------------------------------------------------ */

/* Rows of known numbers: an axis of n elements, with all that lies at one place of it. */
struct rows {
	const struct slp_onnx_known *k;
	int64_t n, outer, inner;
};

static int64_t place_of(const struct rows *r, int64_t row, int64_t i)
{
	return (i / r->inner * r->n + row) * r->inner + i % r->inner;
}

/* NaN is larger than all numbers, and equal to itself. */
static int compare_numbers(double a, double b)
{
	if (isnan(a) || isnan(b)) return (int)isnan(a) - (int)isnan(b);
	return (a > b) - (a < b);
}

static int compare(const struct rows *r, int64_t a, int64_t b)
{
	bool whole = !slp_is_float(r->k->dtype);
	int order = 0;
	for (int64_t i = 0; i < r->outer * r->inner && !order; i++) {
		const union slp_onnx_element *p = &r->k->v[place_of(r, a, i)], *q = &r->k->v[place_of(r, b, i)];
		order = whole ? (p->i > q->i) - (p->i < q->i) : compare_numbers(p->f, q->f);
	}
	return order;
}

/* Sorts numbers of rows by the rows, equal ones by their places: merges parts of 1, 2, 4, … */
static void sort_rows(const struct rows *r, int64_t *order, int64_t *room)
{
	for (int64_t width = 1; width < r->n; width *= 2) {
		for (int64_t low = 0; low < r->n; low += 2 * width) {
			int64_t middle = low + width < r->n ? low + width : r->n;
			int64_t high = middle + width < r->n ? middle + width : r->n, a = low, b = middle;
			for (int64_t i = low; i < high; i++) {
				bool first = b >= high || (a < middle && compare(r, order[a], order[b]) <= 0);
				room[i] = order[first ? a++ : b++];
			}
		}
		memcpy(order, room, (size_t)r->n * sizeof *order);
	}
}

/* Groups of equal rows: the first row of each, the group of each row, the sizes. */
struct groups {
	int64_t count, *first, *of, *size;
};

static void find_groups(const struct rows *r, const int64_t *order, struct groups *g)
{
	g->count = 0;
	for (int64_t i = 0; i < r->n; i++) {
		bool fresh = i == 0 || compare(r, order[i - 1], order[i]) != 0;
		if (fresh) g->first[g->count] = order[i], g->size[g->count++] = 0;
		g->of[order[i]] = g->count - 1;
		g->size[g->count - 1]++;
	}
}

/* Groups by their first rows instead of their values. */
static void keep_order(const struct rows *r, struct groups *g, int64_t *room)
{
	int64_t *renumbered = room, count = 0, *first = room + r->n, *size = room + 2 * r->n;
	for (int64_t i = 0; i < r->n; i++) {
		if (g->first[g->of[i]] != i) continue;
		first[count] = i;
		size[count] = g->size[g->of[i]];
		renumbered[g->of[i]] = count++;
	}
	for (int64_t i = 0; i < r->n; i++) g->of[i] = renumbered[g->of[i]];
	memcpy(g->first, first, (size_t)count * sizeof *first);
	memcpy(g->size, size, (size_t)count * sizeof *size);
}

static void give_groups(struct slp_onnx_call *c, struct slp_onnx_value v, int axis, int64_t n, const struct groups *g)
{
	const int64_t *lists[] = {g->first, g->first, g->of, g->size};
	for (int i = 0; i < 4 && !c->failed; i++) {
		int64_t length = i == 2 ? n : g->count;
		struct slp_onnx_known *k = slp_onnx_known_new(c->made, SL_INT64, SL_SHAPE(length));
		for (int64_t j = 0; k && j < length; j++) k->v[j].i = lists[i][j];
		struct slp_onnx_value list = {.known = k, .type = 7}; /* int64 */
		if (!k) c->failed = true;                             /* and recorded */
		else if (i) slp_onnx_set_output_value(c, i, list);
		else slp_onnx_set_output_value(c, 0, slp_onnx_gathered(c, v, list, axis));
	}
}

void slp_onnx_import_unique(struct slp_onnx_call *c)
{
	sl_shape x = slp_onnx_shape(c, 0);
	struct slp_onnx_value v = c->in[0];
	struct rows r = {.k = slp_onnx_known_in(c, 0), .outer = 1, .inner = 1};
	int axis = 0;
	if (slp_onnx_attr(c, "axis")) axis = slp_onnx_axis(c, slp_onnx_attr_int(c, "axis", 0), x.ndim);
	else if (!c->failed) x = SL_SHAPE(sl_shape_size(x)), v = slp_onnx_reshaped(c, v, x);
	if (c->failed) return;
	r.n = x.dim[axis];
	for (int i = 0; i < x.ndim; i++)
		if (i != axis) *(i < axis ? &r.outer : &r.inner) *= x.dim[i];
	double work = (double)r.n * log2((double)r.n + 2) * (double)(r.outer * r.inner);
	int64_t *room = slp_budget_allows(work) ? slp_calloc(7 * (size_t)r.n + 1, sizeof *room) : NULL, n = r.n;
	struct groups g = {0, room + n, room + 2 * n, room + 3 * n};
	if (!room) c->failed = true; /* and recorded */
	for (int64_t i = 0; room && i < n; i++) room[i] = i;
	if (room) {
		sort_rows(&r, room, room + 4 * n);
		find_groups(&r, room, &g);
		if (!slp_onnx_attr_int(c, "sorted", 1)) keep_order(&r, &g, room + 4 * n);
		give_groups(c, v, axis, n, &g);
	}
	free(room);
}

/* ---- NonMaxSuppression ------------------------------------------------------------------------------------------- */

/* The boxes and scores of one image, (boxes, 4) and (classes, boxes), as float32. */
struct boxes {
	const union slp_onnx_element *box, *score;
	int64_t n, most; /* boxes; selections of a class */
	bool centred, limited;
	float overlap, least; /* limits: of shared areas, of scores */
};

struct corners {
	float low[2], high[2];
};

static struct corners corners_of(const struct boxes *b, int64_t i)
{
	struct corners k;
	float v[4];
	for (int a = 0; a < 4; a++) v[a] = (float)b->box[4 * i + a].f;
	for (int a = 0; a < 2; a++) {
		float low = b->centred ? v[a] - v[2 + a] / 2 : v[a], high = b->centred ? v[a] + v[2 + a] / 2 : v[2 + a];
		k.low[a] = low < high ? low : high;
		k.high[a] = low < high ? high : low;
	}
	return k;
}

static float area(const struct corners *k)
{
	return (k->high[0] - k->low[0]) * (k->high[1] - k->low[1]);
}

static bool overlaps(const struct boxes *b, int64_t i, int64_t j)
{
	struct corners p = corners_of(b, i), q = corners_of(b, j), shared;
	for (int a = 0; a < 2; a++) {
		shared.low[a] = p.low[a] > q.low[a] ? p.low[a] : q.low[a];
		shared.high[a] = p.high[a] < q.high[a] ? p.high[a] : q.high[a];
		if (shared.high[a] <= shared.low[a]) return false;
	}
	float both = area(&shared), one = area(&p), other = area(&q);
	return one > 0 && other > 0 && both / (one + other - both) > b->overlap;
}

struct candidate {
	float score;
	int64_t box;
};

static int by_score(const void *a, const void *b)
{
	const struct candidate *p = a, *q = b;
	if (p->score != q->score) return p->score > q->score ? -1 : 1;
	return (p->box > q->box) - (p->box < q->box);
}

/* The boxes of one class that stay, the best first; returns their number. */
static int64_t select_boxes(const struct boxes *b, struct candidate *list, int64_t *kept)
{
	int64_t n = 0, count = 0;
	for (int64_t i = 0; i < b->n; i++) {
		float score = (float)b->score[i].f;
		if (!b->limited || score > b->least) list[n++] = (struct candidate){score, i};
	}
	qsort(list, (size_t)n, sizeof *list, by_score);
	for (int64_t i = 0; i < n && count < b->most; i++) {
		bool hidden = false;
		for (int64_t j = 0; j < count && !hidden; j++) hidden = overlaps(b, kept[j], list[i].box);
		if (!hidden) kept[count++] = list[i].box;
	}
	return count;
}

/* (image, class, box) of the selections so far. */
struct selections {
	int64_t *v, count, room;
};

static bool note(struct selections *s, int64_t image, int64_t class, const int64_t *boxes, int64_t n)
{
	if (s->count + n > s->room) {
		int64_t room = 2 * (s->count + n), *more = slp_realloc(s->v, (size_t)room * 3 * sizeof *more);
		if (!more) return false;
		s->v = more, s->room = room;
	}
	for (int64_t i = 0; i < n; i++, s->count++) {
		int64_t *v = s->v + 3 * s->count;
		v[0] = image, v[1] = class, v[2] = boxes[i];
	}
	return true;
}

static bool select_all(struct boxes b, const struct slp_onnx_known *boxes, const struct slp_onnx_known *scores,
                       struct selections *s)
{
	struct candidate *list = slp_calloc((size_t)b.n + 1, sizeof *list);
	int64_t *kept = slp_calloc((size_t)b.n + 1, sizeof *kept), classes = scores->shape.dim[1];
	bool ok = list && kept;
	double pairs = (double)b.n * (double)(b.most < b.n ? b.most : b.n), lists = (double)boxes->shape.dim[0];
	ok = ok && slp_budget_allows(pairs > 0 ? pairs * lists * (double)classes : 0);
	for (int64_t i = 0; i < boxes->shape.dim[0] && ok; i++)
		for (int64_t k = 0; k < classes && ok; k++) {
			b.box = boxes->v + i * b.n * 4;
			b.score = scores->v + (i * classes + k) * b.n;
			ok = note(s, i, k, kept, select_boxes(&b, list, kept));
		}
	free(list);
	free(kept);
	return ok;
}

void slp_onnx_import_nms(struct slp_onnx_call *c)
{
	const struct slp_onnx_known *boxes = slp_onnx_known_in(c, 0), *scores = boxes ? slp_onnx_known_in(c, 1) : NULL;
	if (!scores) return;
	sl_shape p = boxes->shape, q = scores->shape;
	if (p.ndim != 3 || q.ndim != 3 || p.dim[2] != 4 || p.dim[0] != q.dim[0] || p.dim[1] != q.dim[2] ||
	    !slp_is_float(boxes->dtype) || !slp_is_float(scores->dtype))
		slp_onnx_call_fail(c, SL_ESHAPE, "boxes that do not fit the scores");
	struct boxes b = {.n = p.dim[1],
	                  .centred = slp_onnx_attr_int(c, "center_point_box", 0) != 0,
	                  .limited = slp_onnx_has(c, 4),
	                  .overlap = (float)slp_onnx_number_in(c, 3, NULL, 0),
	                  .least = (float)slp_onnx_number_in(c, 4, NULL, 0)};
	struct selections s = {0};
	struct slp_onnx_known *y = NULL;
	if (slp_onnx_has(c, 2) && slp_onnx_ints_in(c, 2, NULL, &b.most, 1) != 1)
		slp_onnx_call_fail(c, SL_EFORMAT, "input 2 must be one number");
	if (!c->failed && select_all(b, boxes, scores, &s))
		y = slp_onnx_known_new(c->made, SL_INT64, SL_SHAPE(s.count, 3));
	for (int64_t i = 0; y && i < 3 * s.count; i++) y->v[i].i = s.v[i];
	free(s.v);
	if (!c->failed) give(c, 0, y);
	if (!c->failed) c->out[0].type = 7; /* int64 */
}

/* ---- TfIdfVectorizer --------------------------------------------------------------------------------------------- */

/* Sequences of whole numbers that are counted, shorter ones first: those of n numbers begin at first[n - 1] of the pool. */
struct ngrams {
	const int64_t *pool, *first, *place; /* place: the column of each sequence */
	int64_t numbers, lengths, count, columns;
	int64_t least, most, skip;
};

static int64_t end_of(const struct ngrams *g, int64_t n)
{
	return n < g->lengths ? g->first[n] : g->numbers;
}

/* Whether lists are as long as they must be, and sizes within them. */
static bool fit(struct slp_onnx_call *c, struct ngrams *g, int64_t places)
{
	bool ok = g->least >= 1 && g->most >= g->least && g->skip >= 0 && g->lengths >= 1;
	for (int64_t n = 1; n <= g->lengths && ok; n++) {
		int64_t size = end_of(g, n) - g->first[n - 1];
		ok = g->first[n - 1] >= 0 && size >= 0 && size % n == 0 && end_of(g, n) <= g->numbers;
		g->count += ok ? size / n : 0;
	}
	ok = ok && g->first[0] == 0 && g->count == places;
	for (int64_t i = 0; i < places && ok; i++) {
		ok = g->place[i] >= 0 && g->place[i] < INT32_MAX;
		if (g->place[i] >= g->columns) g->columns = g->place[i] + 1;
	}
	if (!ok) slp_onnx_call_fail(c, SL_EFORMAT, "its lists do not fit each other");
	return ok;
}

static bool read_ngrams(struct slp_onnx_call *c, struct ngrams *g)
{
	const SlpOnnx__AttributeProto *pool = slp_onnx_attr(c, "pool_int64s"),
	                              *first = slp_onnx_attr(c, "ngram_counts"),
	                              *place = slp_onnx_attr(c, "ngram_indexes");
	if (!c->failed && (!pool || !first || !place))
		slp_onnx_call_fail(c, SL_EUNSUPPORTED, "without pool_int64s, ngram_counts and ngram_indexes");
	if (c->failed) return false;
	*g = (struct ngrams){.pool = pool->ints,
	                     .first = first->ints,
	                     .place = place->ints,
	                     .numbers = (int64_t)pool->n_ints,
	                     .lengths = (int64_t)first->n_ints,
	                     .least = slp_onnx_attr_int(c, "min_gram_length", 1),
	                     .most = slp_onnx_attr_int(c, "max_gram_length", 1),
	                     .skip = slp_onnx_attr_int(c, "max_skip_count", 0)};
	return !c->failed && fit(c, g, (int64_t)place->n_ints);
}

/* Counts the sequences of n numbers that begin at x, a step apart. */
static void count_one(const struct ngrams *g, const union slp_onnx_element *x, int64_t step, int64_t n, double *counts)
{
	int64_t number = 0;
	for (int64_t k = 1; k < n; k++) number += (end_of(g, k) - g->first[k - 1]) / k;
	for (int64_t at = g->first[n - 1]; at < end_of(g, n); at += n, number++) {
		int64_t same = 0;
		while (same < n && g->pool[at + same] == x[same * step].i) same++;
		if (same == n) counts[g->place[number]]++;
	}
}

/* Single numbers have no step, so they are counted once. */
static void count_row(const struct ngrams *g, const union slp_onnx_element *x, int64_t length, double *counts)
{
	for (int64_t step = 1; step <= g->skip + 1 && (step - 1) < length; step++)
		for (int64_t i = 0; i < length; i++)
			for (int64_t n = g->least; n <= g->most && n <= g->lengths; n++)
				if ((n > 1 || step == 1) && (n - 1) <= (length - 1 - i) / step)
					count_one(g, x + i, step, n, counts);
}

/* The factor of a column: that of the sequence which has it. */
static double weight_of(const struct ngrams *g, const SlpOnnx__AttributeProto *weights, int64_t column)
{
	for (int64_t i = 0; weights && i < g->count && i < (int64_t)weights->n_floats; i++)
		if (g->place[i] == column) return (double)weights->floats[i];
	return 1;
}

void slp_onnx_import_tfidf(struct slp_onnx_call *c)
{
	const struct slp_onnx_known *k = slp_onnx_known_in(c, 0);
	bool tf = slp_onnx_attr_is(c, "mode", "", "TF"), idf = slp_onnx_attr_is(c, "mode", "", "IDF");
	struct ngrams g;
	if (!k) return;
	if (k->shape.ndim < 1 || k->shape.ndim > 2 || slp_is_float(k->dtype))
		slp_onnx_call_fail(c, SL_EUNSUPPORTED, "only of whole numbers with 1 or 2 axes");
	if (!tf && !idf && !slp_onnx_attr_is(c, "mode", "", "TFIDF"))
		slp_onnx_call_fail(c, SL_EFORMAT, "attribute mode is none of TF, IDF, TFIDF");
	if (!read_ngrams(c, &g)) return;
	const SlpOnnx__AttributeProto *weights = tf ? NULL : slp_onnx_attr(c, "weights");
	int64_t length = k->shape.dim[k->shape.ndim - 1], rows = k->shape.ndim == 2 ? k->shape.dim[0] : 1;
	sl_shape shape = k->shape.ndim == 2 ? SL_SHAPE(rows, g.columns) : SL_SHAPE(g.columns);
	double work =
	        (double)rows * (double)length * (double)g.numbers * (double)(g.skip < length ? g.skip + 1 : length);
	struct slp_onnx_known *y = slp_budget_allows(work) ? slp_onnx_known_new(c->made, SL_FLOAT32, shape) : NULL;
	double *counts = y ? slp_calloc((size_t)g.columns + 1, sizeof *counts) : NULL;
	for (int64_t r = 0; counts && r < rows; r++) {
		memset(counts, 0, (size_t)g.columns * sizeof *counts);
		count_row(&g, k->v + r * length, length, counts);
		for (int64_t i = 0; i < g.columns; i++)
			y->v[r * g.columns + i].f = (idf ? counts[i] > 0 : counts[i]) * weight_of(&g, weights, i);
	}
	if (!counts) c->failed = true; /* and recorded */
	else give(c, 0, y);
	free(counts);
}
