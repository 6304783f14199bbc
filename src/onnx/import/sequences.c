/* ONNX operators, computed: lists of tensors, whose lengths are known while a network is built. */
#include <stdlib.h>

#include "onnx/model/call.h"
#include "alloc.h"
#include "starling/tensor.h"

static struct slp_onnx_sequence *sequence_new(struct slp_onnx_call *c, const struct slp_onnx_sequence *before,
                                              struct slp_onnx_value last)
{
	struct slp_onnx_sequence *s = slp_onnx_sequence_new(c->sequences, before, last);
	if (!s) c->failed = true; /* and recorded */
	return s;
}

static void give_sequence(struct slp_onnx_call *c, const struct slp_onnx_sequence *s)
{
	slp_onnx_set_output_value(c, 0, (struct slp_onnx_value){.sequence = s});
}

static const struct slp_onnx_sequence *sequence_in(struct slp_onnx_call *c, int i)
{
	if (slp_onnx_has(c, i) && c->in[i].sequence) return c->in[i].sequence;
	slp_onnx_call_fail(c, SL_EFORMAT, "input %d must be a sequence", i);
	return NULL;
}

/* A place in a list, -1: the last one; n: behind it, if that is allowed. */
static int64_t place_in(struct slp_onnx_call *c, int i, int64_t n, bool behind)
{
	int64_t at = behind ? n : n - 1;
	if (slp_onnx_has(c, i) && slp_onnx_ints_in(c, i, NULL, &at, 1) != 1)
		slp_onnx_call_fail(c, SL_EFORMAT, "input %d must be one number", i);
	if (at < 0) at += n;
	if (!c->failed && (at < 0 || at >= n + behind))
		slp_onnx_call_fail(c, SL_ESHAPE, "place %lld of %lld", (long long)at, (long long)n);
	return at;
}

/* The list that ends with element `at`. */
static const struct slp_onnx_sequence *until(const struct slp_onnx_sequence *s, int64_t at)
{
	while (s->count > at + 1) s = s->before;
	return s;
}

void slp_onnx_import_sequence_empty(struct slp_onnx_call *c)
{
	give_sequence(c, sequence_new(c, NULL, (struct slp_onnx_value){0}));
}

void slp_onnx_import_sequence_construct(struct slp_onnx_call *c)
{
	struct slp_onnx_sequence *s = sequence_new(c, NULL, (struct slp_onnx_value){0});
	for (int i = 0; i < c->nin && s; i++) s = sequence_new(c, s, c->in[i]);
	give_sequence(c, s);
}

/* s, then the elements of `all` from element `from` on. */
static const struct slp_onnx_sequence *followed(struct slp_onnx_call *c, const struct slp_onnx_sequence *s,
                                                const struct slp_onnx_sequence *all, int64_t from)
{
	for (int64_t i = from; s && i < all->count; i++) s = sequence_new(c, s, slp_onnx_sequence_at(all, i));
	return s;
}

void slp_onnx_import_sequence_insert(struct slp_onnx_call *c)
{
	const struct slp_onnx_sequence *all = sequence_in(c, 0);
	int64_t at = all ? place_in(c, 2, all->count, true) : 0;
	if (c->failed) return;
	give_sequence(c, followed(c, sequence_new(c, until(all, at - 1), c->in[1]), all, at));
}

void slp_onnx_import_sequence_erase(struct slp_onnx_call *c)
{
	const struct slp_onnx_sequence *all = sequence_in(c, 0);
	int64_t at = all ? place_in(c, 1, all->count, false) : 0;
	if (!c->failed) give_sequence(c, followed(c, until(all, at - 1), all, at + 1));
}

void slp_onnx_import_sequence_at(struct slp_onnx_call *c)
{
	const struct slp_onnx_sequence *all = sequence_in(c, 0);
	int64_t at = all ? place_in(c, 1, all->count, false) : 0;
	if (!c->failed) slp_onnx_set_output_value(c, 0, slp_onnx_sequence_at(all, at));
}

void slp_onnx_import_sequence_length(struct slp_onnx_call *c)
{
	const struct slp_onnx_sequence *all = sequence_in(c, 0);
	if (!all) return;
	struct slp_onnx_value v = slp_onnx_list_value(c, SL_INT64, &all->count, 1);
	if (v.known) v = slp_onnx_reshaped(c, v, SL_SCALAR);
	slp_onnx_set_output_value(c, 0, v);
}

void slp_onnx_import_concat_from_sequence(struct slp_onnx_call *c)
{
	const struct slp_onnx_sequence *s = sequence_in(c, 0);
	int64_t axis = slp_onnx_attr_int(c, "axis", 0), n = s ? s->count : 0;
	bool rows = slp_onnx_attr_int(c, "new_axis", 0) != 0;
	if (s && !n) slp_onnx_call_fail(c, SL_ESHAPE, "the sequence is empty");
	struct slp_onnx_value *list = c->failed ? NULL : slp_malloc((size_t)n * sizeof *list);
	if (!list) c->failed = true; /* and recorded */
	for (int64_t i = n - 1; i >= 0 && !c->failed; i--, s = s->before)
		list[i] = rows ? slp_onnx_with_axis(c, s->last, axis) : s->last;
	int at = c->failed ? 0 : slp_onnx_axis(c, axis, slp_onnx_shape_of(c, list[0]).ndim);
	if (!c->failed) slp_onnx_set_output_value(c, 0, slp_onnx_joined(c, list, (int)n, at));
	free(list);
}

/* ---- optionals: the value itself, or none ------------------------------------------------------------------------- */

void slp_onnx_import_optional(struct slp_onnx_call *c)
{
	if (slp_onnx_has(c, 0)) slp_onnx_set_output_value(c, 0, c->in[0]);
}

void slp_onnx_import_optional_element(struct slp_onnx_call *c)
{
	if (slp_onnx_has(c, 0)) slp_onnx_set_output_value(c, 0, c->in[0]);
	else slp_onnx_call_fail(c, SL_EFORMAT, "its optional has no value");
}

void slp_onnx_import_has_element(struct slp_onnx_call *c)
{
	struct slp_onnx_known *k = slp_onnx_known_new(c->made, SL_BOOL, SL_SCALAR);
	if (k) k->v[0].i = slp_onnx_has(c, 0);
	slp_onnx_set_output_value(c, 0, (struct slp_onnx_value){.known = k});
}

/* Sizes of parts: each its own, or all the same but for the last one; none: 1, and no such axis is left. */
void slp_onnx_import_split_to_sequence(struct slp_onnx_call *c)
{
	enum { MOST = 4096 };
	int64_t sizes[MOST], begin = 0, size;
	sl_shape x = slp_onnx_shape(c, 0), y = {0};
	int axis = slp_onnx_axis(c, slp_onnx_attr_int(c, "axis", 0), x.ndim);
	int n = slp_onnx_has(c, 1) ? slp_onnx_ints_in(c, 1, NULL, sizes, MOST) : -1;
	bool each = n >= 0 && !c->failed && c->in[1].known->shape.ndim == 1,
	     keep = n >= 0 || slp_onnx_attr_int(c, "keepdims", 1) != 0;
	if (!c->failed && (n == 0 || (n > 0 && sizes[0] < 1 && !each)))
		slp_onnx_call_fail(c, SL_EFORMAT, "input 1 must be sizes");
	const struct slp_onnx_sequence *s = c->failed ? NULL : sequence_new(c, NULL, (struct slp_onnx_value){0});
	for (int i = 0; i < x.ndim && !c->failed; i++)
		if (keep || i != axis) y.dim[y.ndim++] = x.dim[i];
	for (int i = 0; s && !c->failed && (each ? i < n : begin < x.dim[axis]); i++, begin += size) {
		size = each ? sizes[i] : n < 0 ? 1 : sizes[0];
		if (!each && begin + size > x.dim[axis]) size = x.dim[axis] - begin;
		if (size < 0 || size > x.dim[axis] - begin) slp_onnx_call_fail(c, SL_ESHAPE, "its sizes do not fit");
		struct slp_onnx_value v =
		        c->failed ? c->in[0] : slp_onnx_sliced(c, c->in[0], axis, begin, begin + size, 1);
		if (!keep && !c->failed) v = slp_onnx_reshaped(c, v, y);
		if (!slp_onnx_present(v)) c->failed = true; /* and recorded */
		s = c->failed ? s : sequence_new(c, s, v);
	}
	if (!c->failed) give_sequence(c, s);
}

/* ---- SequenceMap ------------------------------------------------------------------------------------------------- */

/* A graph that is run for each place in lists; inputs that are tensors are the same for all. */
struct map {
	int graph, nin, nout;
	struct slp_onnx_value *in, *out;
	const struct slp_onnx_sequence **lists; /* of its results */
};

static bool map_place(struct slp_onnx_call *c, struct map *m, int64_t place)
{
	for (int i = 0; i < m->nin; i++)
		m->in[i] = c->in[i].sequence ? slp_onnx_sequence_at(c->in[i].sequence, place) : c->in[i];
	if (!slp_onnx_graph_run(c, m->graph, m->in, m->out)) return false;
	for (int i = 0; i < m->nout; i++) {
		if (!c->failed) m->lists[i] = sequence_new(c, m->lists[i], m->out[i]);
		slp_onnx_drop(&m->out[i]);
	}
	return !c->failed;
}

static bool map_fits(struct slp_onnx_call *c, const struct map *m, int64_t count)
{
	if (m->nin != c->nin || m->nout < c->nout)
		slp_onnx_call_fail(c, SL_EFORMAT, "its graph has %d inputs and %d results, which do not fit %d and %d",
		                   m->nin, m->nout, c->nin, c->nout);
	for (int i = 1; i < c->nin && !c->failed; i++)
		if (c->in[i].sequence && c->in[i].sequence->count != count)
			slp_onnx_call_fail(c, SL_ESHAPE, "its sequences have different lengths, %lld and %lld",
			                   (long long)count, (long long)c->in[i].sequence->count);
	return !c->failed;
}

static void map_all(struct slp_onnx_call *c, struct map *m, int64_t count)
{
	bool ok = true;
	for (int i = 0; i < m->nout && !c->failed; i++) m->lists[i] = sequence_new(c, NULL, (struct slp_onnx_value){0});
	for (int64_t place = 0; place < count && ok && !c->failed; place++)
		SL_SCOPE
			ok = map_place(c, m, place);
	for (int i = 0; i < c->nout && ok && !c->failed; i++)
		slp_onnx_set_output_value(c, i, (struct slp_onnx_value){.sequence = m->lists[i]});
}

void slp_onnx_import_sequence_map(struct slp_onnx_call *c)
{
	const struct slp_onnx_sequence *first = sequence_in(c, 0);
	struct map m = {.graph = first ? slp_onnx_graph_named(c, "body") : -1};
	if (m.graph < 0) return;
	m.nin = slp_onnx_graph_inputs(c, m.graph);
	m.nout = slp_onnx_graph_outputs(c, m.graph);
	if (!map_fits(c, &m, first->count)) return;
	m.in = slp_calloc((size_t)m.nin + 1, sizeof *m.in);
	m.out = slp_calloc((size_t)m.nout + 1, sizeof *m.out);
	m.lists = slp_calloc((size_t)m.nout + 1, sizeof *m.lists);
	if (m.in && m.out && m.lists) map_all(c, &m, first->count);
	else c->failed = true; /* and recorded */
	free(m.in);
	free(m.out);
	free(m.lists);
}
