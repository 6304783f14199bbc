/* ONNX models: the inputs and results of a run.  A sequence is as many tensors as it has elements, one after another. */
#include <stdlib.h>

#include "alloc.h"
#include "onnx/model/run.h"
#include "op_inner.h"
#include "starling/primitives.h"
#include "tensor/tensor.h"

/* ---- sequences --------------------------------------------------------------------------------------------------- */

struct slp_onnx_sequence *slp_onnx_sequence_new(struct slp_onnx_sequence **list, const struct slp_onnx_sequence *before,
                                                struct slp_onnx_value last)
{
	struct slp_onnx_sequence *s = slp_calloc(1, sizeof *s);
	if (!s) return NULL;
	*s = (struct slp_onnx_sequence){.next = *list, .before = before, .last = last};
	s->count = before ? before->count + 1 : 0;
	sl_retain(last.t);
	return *list = s;
}

void slp_onnx_sequences_free(struct slp_onnx_sequence *s)
{
	for (struct slp_onnx_sequence *next; s; s = next) {
		next = s->next;
		sl_release(s->last.t);
		free(s);
	}
}

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

bool slp_onnx_count_inputs(struct slp_onnx_run *r, int nin)
{
	const struct slp_onnx_model *m = &r->b->model;
	const char *at = slp_forward_call_site(), *name = sl_block_name(&r->b->base);
	int rest = nin - (m->ninputs - m->nlists);
	r->length = m->nlists && rest > 0 ? rest / m->nlists : 0;
	if (rest == r->length * m->nlists) return true;
	if (!m->nlists) slp_call_fail(at, "sl_forward", SL_EINVAL, "%s takes %d inputs, got %d", name, m->ninputs, nin);
	else
		slp_call_fail(at, "sl_forward", SL_EINVAL,
		              "%s takes %d sequences of one length, and %d tensors; it got %d tensors", name, m->nlists,
		              m->ninputs - m->nlists, nin);
	return false;
}

/* The place of an input's first tensor. */
static int place_of(const struct slp_onnx_run *r, int input)
{
	int place = input;
	for (int i = 0; i < input && r->b->model.nlists; i++)
		if (slp_onnx_is_list(&r->b->model, i)) place += r->length - 1;
	return place;
}

/* A tensor as the model declares it: whole numbers of another width, or floats, are converted. */
static sl_tensor *declared_of(struct slp_onnx_run *r, int input, sl_tensor *x)
{
	const char *at = slp_forward_call_site(), *name = r->b->model.names[r->b->model.inputs[input]].name;
	struct slp_type wanted = slp_onnx_declared(&r->b->model, input);
	sl_shape s = sl_tensor_shape(x);
	char got[128], declared[128];
	bool fits = wanted.shape.ndim < 0 || s.ndim < 0 || s.ndim == wanted.shape.ndim;
	for (int i = 0; fits && s.ndim >= 0 && i < wanted.shape.ndim; i++)
		fits = wanted.shape.dim[i] < 0 || s.dim[i] < 0 || s.dim[i] == wanted.shape.dim[i];
	if (!fits)
		return slp_call_fail(at, "sl_forward", SL_ESHAPE, "input \"%.100s\" has shape %s, the model takes %s",
		                     name, sl_shape_string(s, got), sl_shape_string(wanted.shape, declared));
	if (wanted.dtype == SL_DTYPE_DEFAULT) wanted.dtype = sl_tensor_dtype(x);
	if (slp_is_float(wanted.dtype) != slp_is_float(sl_tensor_dtype(x)))
		return slp_call_fail(at, "sl_forward", SL_EDTYPE, "input \"%.100s\" is %s, the model takes %s", name,
		                     sl_dtype_name(sl_tensor_dtype(x)), sl_dtype_name(wanted.dtype));
	sl_tensor *y = NULL;
	if (wanted.dtype == sl_tensor_dtype(x)) return sl_retain(x);
	bool bits = sl_tensor_dtype(x) == SL_UINT64 && wanted.dtype == SL_INT64;
	SL_SCOPE
		y = sl_retain(bits ? slp_wrap(at, x, SL_INT64) : sl_cast_at(at, x, wanted.dtype));
	return y;
}

static const struct slp_onnx_sequence *list_of(struct slp_onnx_run *r, int input, int type)
{
	struct slp_onnx_value none = {0};
	const struct slp_onnx_sequence *s = slp_onnx_sequence_new(&r->sequences, NULL, none);
	for (int i = 0, place = place_of(r, input); i < r->length && s; i++) {
		struct slp_onnx_value v = {.t = declared_of(r, input, r->given[place + i]), .type = type};
		s = v.t ? slp_onnx_sequence_new(&r->sequences, s, v) : NULL;
		sl_release(v.t);
	}
	return s;
}

bool slp_onnx_take_input(struct slp_onnx_run *r, int input, struct slp_onnx_value *v)
{
	int type = slp_onnx_declared_number(&r->b->model, input);
	if (slp_onnx_is_list(&r->b->model, input)) v->sequence = list_of(r, input, type);
	else *v = (struct slp_onnx_value){.t = declared_of(r, input, r->given[place_of(r, input)]), .type = type};
	return slp_onnx_present(*v);
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

/* Tensors for the caller; it owns them. */
struct results {
	sl_tensor *y[SL_MAX_RESULTS];
	int count;
};

static bool add_tensor(struct slp_onnx_run *r, int result, struct slp_onnx_value v, struct results *all)
{
	const struct slp_onnx_model *m = &r->b->model;
	struct slp_onnx_call c = {.at = slp_forward_call_site(), .made = &r->made, .beside = r->given[0]};
	const char *name = m->names[m->results[result]].name;
	if (all->count == SL_MAX_RESULTS)
		return slp_call_fail(c.at, "sl_forward", SL_EUNSUPPORTED, "more than %d tensors are results",
		                     SL_MAX_RESULTS);
	sl_tensor *y = slp_onnx_as_tensor(&c, slp_onnx_plain(&c, v));
	if (!y && sl_error() == SL_OK)
		slp_call_fail(c.at, "sl_forward", SL_EUNSUPPORTED,
		              "\"%.100s\" is not computed by the supported part of its node", name);
	y = sl_retain(y ? slp_onnx_in_type(&c, y, slp_onnx_result_type(m, result, slp_onnx_type_of(&v))) : NULL);
	if (y) all->y[all->count++] = y;
	return y != NULL;
}

static bool add_list(struct slp_onnx_run *r, int result, const struct slp_onnx_sequence *s, struct results *all)
{
	bool ok = true;
	for (int64_t i = 0; i < s->count && ok; i++) ok = add_tensor(r, result, slp_onnx_sequence_at(s, i), all);
	return ok;
}

static bool add_result(struct slp_onnx_run *r, int result, struct results *all)
{
	const struct slp_onnx_value *v = &r->values[r->b->model.results[result]];
	return v->sequence ? add_list(r, result, v->sequence, all) : add_tensor(r, result, *v, all);
}

sl_tensor *slp_onnx_give_results(struct slp_onnx_run *r)
{
	struct results all = {.count = 0};
	const char *at = slp_forward_call_site();
	bool ok = true;
	SL_SCOPE
		for (int i = 0; i < r->b->model.nresults && ok; i++) ok = add_result(r, i, &all);
	if (ok && !all.count)
		ok = slp_call_fail(at, "sl_forward", SL_EUNSUPPORTED, "its sequence is empty: no tensor is a result");
	for (int i = 1; i < all.count && ok; i++) ok = sl_also_at(at, all.y[i]) == SL_OK;
	for (int i = ok ? 1 : 0; i < all.count; i++) sl_release(all.y[i]);
	return ok ? all.y[0] : NULL;
}
