/* Views and copies: other tensors in the same memory, and copies of values. */
#include "op_inner.h"
#include "op_list/move.h"
#include "runtime/device/device.h"
#include "runtime/task/storage.h"
#include "tensor/tensor.h"

/* A tensor over part of t's values. */
static sl_tensor *view(const sl_tensor *t, size_t offset, sl_shape shape)
{
	slp_storage_retain(t->storage);
	return slp_scope_add(
	        slp_tensor_new(t->storage, t->offset + offset, (struct slp_type){t->type.dtype, shape}, t->device));
}

static sl_tensor *slice(const char *at, sl_tensor *t, int64_t begin, int64_t end)
{
	const struct slp_slice_attrs attrs = {.axis = 0, .begin = begin, .end = end, .step = 1};
	return slp_apply1(at, &slp_op_slice, &attrs, 1, &t);
}

static bool is_recorded(const sl_tensor *t)
{
	return slp_mode.recorder && slp_mode.recorder->wants(t);
}

/* Rows [begin, end) along axis 0, in the same memory: operations in place change both tensors.  Under SL_RECORD, if
 * gradients flow through t, it is a copy, which cannot be changed in place while recording (SL_ESTATE), since t would
 * not change.  SL_ESHAPE if the rows do not exist.
 *
 *     sl_tensor *first = sl_rows(x, 0, 128); */
sl_tensor *sl_rows_at(const char *at, sl_tensor *t, int64_t begin, int64_t end)
{
	SLP_CALL("sl_rows", at);
	if (slp_is_symbolic(1, &t)) return slice(at, t, begin, end);
	if (!slp_tensor_usable(at, "sl_rows", t)) return NULL;
	sl_shape shape = t->type.shape;
	if (shape.ndim < 1 || begin < 0 || end < begin || end > shape.dim[0]) {
		char text[128];
		return slp_call_fail(at, "sl_rows", SL_ESHAPE, "there are no rows %lld to %lld in a tensor of shape %s",
		                     (long long)begin, (long long)end, sl_shape_string(shape, text));
	}
	if (is_recorded(t)) {
		sl_tensor *copy = slice(at, t, begin, end);
		if (copy) copy->part = true;
		return copy;
	}
	shape.dim[0] = 1;
	size_t row = (size_t)sl_shape_size(shape) * sl_dtype_size(t->type.dtype);
	shape.dim[0] = end - begin;
	return view(t, (size_t)begin * row, shape);
}

/* Replaces the one dim that may be -1; false if the sizes do not fit. */
static bool complete_shape(const sl_tensor *t, sl_shape *shape)
{
	int64_t known = 1, size = sl_tensor_size(t);
	int open = -1;
	if (shape->ndim < 0 || shape->ndim > SL_MAX_NDIM) return false;
	for (int i = 0; i < shape->ndim; i++) {
		if (shape->dim[i] == -1 && open < 0) open = i;
		else if (shape->dim[i] < 0 || __builtin_mul_overflow(known, shape->dim[i], &known)) return false;
	}
	if (open < 0) return known == size;
	if (known == 0 || size % known) return false;
	shape->dim[open] = size / known;
	return true;
}

/* The same values in another shape, in the same memory.  One dim may be -1, and is computed.  SL_ESHAPE if the sizes
 * differ.
 *
 *     sl_tensor *flat = sl_reshape(t, SL_SHAPE(-1, 800)); */
sl_tensor *sl_reshape_at(const char *at, sl_tensor *t, sl_shape shape)
{
	SLP_CALL("sl_reshape", at);
	if (slp_is_symbolic(1, &t)) return slp_apply1(at, &slp_op_reshape, &shape, 1, &t);
	if (!slp_tensor_usable(at, "sl_reshape", t)) return NULL;
	sl_shape wanted = shape;
	if (shape.ndim > SL_MAX_NDIM)
		return slp_call_fail(at, "sl_reshape", SL_ESHAPE, "%d axes: a tensor has at most %d", shape.ndim,
		                     SL_MAX_NDIM);
	if (!complete_shape(t, &shape)) {
		char from[128], to[128];
		return slp_call_fail(at, "sl_reshape", SL_ESHAPE, "a tensor of shape %s does not fill the shape %s",
		                     sl_shape_string(t->type.shape, from), sl_shape_string(wanted, to));
	}
	sl_tensor *r = view(t, 0, shape);
	if (r) r->part = t->part;
	if (r && is_recorded(t) && !slp_mode.recorder->call(at, &slp_op_reshape, &shape, 1, &t, 1, &r)) return NULL;
	return r;
}

/* Joins all axes except the first: (n, a, b, …) becomes (n, a·b·…). The result uses the same memory. */
sl_tensor *sl_flatten_at(const char *at, sl_tensor *t)
{
	SLP_CALL("sl_flatten", at);
	if (slp_is_symbolic(1, &t)) return slp_apply1(at, &slp_op_reshape, &SL_SHAPE(SLP_DIM_KEEP, -1), 1, &t);
	if (!slp_tensor_usable(at, "sl_flatten", t)) return NULL;
	sl_shape shape = t->type.shape;
	int64_t rows = shape.ndim ? shape.dim[0] : 1, columns = 1;
	for (int i = 1; i < shape.ndim; i++) columns *= shape.dim[i];
	return sl_reshape_at(at, t, SL_SHAPE(rows, columns));
}

/* The same values, in the same memory, without their history: no gradient flows through the result.  A symbol gives a
 * symbol. */
sl_tensor *sl_detach_at(const char *at, sl_tensor *t)
{
	SLP_CALL("sl_detach", at);
	if (!(t && t->symbol) && !slp_tensor_usable(at, "sl_detach", t)) return NULL;
	return slp_scope_add(slp_tensor_alias(t, true));
}

/* A program runs on one device: a symbol cannot go to another; any will do for `auto`. */
static sl_tensor *move_symbol(const char *at, sl_tensor *t, sl_device device)
{
	if (sl_device_equal(t->device, device) || device.kind == SL_DEVICE_AUTO) return sl_clone_at(at, t);
	slp_trace_complain("sl_copy_to at %s copies to another device", at);
	return slp_call_fail(at, "sl_copy_to", SL_ESTATE, "a copy to another device cannot be traced");
}

/* The same values, in the same memory, for operations on another device: StarPU copies them there when an operation
 * needs them, including the whole memory that t is a view of; devices that share memory, such as CPU devices, need no
 * copy.  Operations in place change both tensors.  Gradients flow through it.  SL_EDEVICE: the device does not exist;
 * SL_ESTATE: t is a symbol, because a program runs on one device.
 *
 *     sl_tensor *mine = sl_place(sl_rows(x, 0, 128), sl_cpu(1)); */
sl_tensor *sl_place_at(const char *at, sl_tensor *t, sl_device device)
{
	SLP_CALL("sl_place", at);
	if (slp_is_symbolic(1, &t)) return slp_given(at, "sl_place", "tensor", t) ? move_symbol(at, t, device) : NULL;
	if (!slp_tensor_usable(at, "sl_place", t) || slp_device_resolve(at, &device) != SL_OK) return NULL;
	sl_tensor *there = slp_scope_add(slp_tensor_alias(t, true));
	if (!there) return slp_call_fail(at, "sl_place", SL_ENOMEM, "no memory for the tensor");
	there->device = device;
	if (is_recorded(t) && !slp_mode.recorder->call(at, &slp_op_copy, NULL, 1, &t, 1, &there)) return NULL;
	return there;
}

/* A copy of the values in new memory, on the same device.  Gradients flow through it. */
sl_tensor *sl_clone_at(const char *at, sl_tensor *t)
{
	SLP_CALL("sl_clone", at);
	return slp_apply1(at, &slp_op_copy, NULL, 1, &t);
}

/* A copy of the values on another device, or on the same.  The transfer runs when the values are computed and a link is
 * free; the call does not wait.  Gradients flow through it.  SL_EDEVICE: the device does not exist.
 *
 *     sl_tensor *there = sl_copy_to(x, sl_gpu(0)); */
sl_tensor *sl_copy_to_at(const char *at, sl_tensor *t, sl_device device)
{
	SLP_CALL("sl_copy_to", at);
	if (slp_is_symbolic(1, &t)) return slp_given(at, "sl_copy_to", "tensor", t) ? move_symbol(at, t, device) : NULL;
	if (!slp_tensor_usable(at, "sl_copy_to", t) || slp_device_resolve(at, &device) != SL_OK) return NULL;
	sl_tensor *here = slp_tensor_alias(t, true), *out = NULL;
	if (!here) return slp_call_fail(at, "sl_copy_to", SL_ENOMEM, "no memory for the tensor");
	here->device = device;
	const struct slp_recorder *recorder = slp_mode.recorder;
	slp_mode.recorder = NULL; /* the copy is of t, not of the alias */
	slp_apply(at, &slp_op_copy, NULL, 1, &here, device, &out);
	slp_mode.recorder = recorder;
	if (out && is_recorded(t) && !slp_mode.recorder->call(at, &slp_op_copy, NULL, 1, &t, 1, &out)) out = NULL;
	sl_release(here);
	return out;
}
