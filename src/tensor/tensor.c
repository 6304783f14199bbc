/* The tensor object: references, properties that need no wait, and scopes. */
#include <stdlib.h>

#include "runtime/task/storage.h"
#include "tensor/tensor.h"

void (*slp_var_release)(struct slp_var *var);
_Thread_local struct slp_mode slp_mode;
const struct slp_symbolic *slp_symbolic;
_Thread_local char slp_trace_complaint[SLP_COMPLAINT_MAX];

/* Tensors that wait for the end of the calling thread's scopes. */
static _Thread_local struct {
	sl_tensor **list;
	size_t count, capacity;
	sl_scope *innermost;
} scopes;

sl_tensor *slp_tensor_new(struct slp_storage *storage, size_t offset, struct slp_type type, sl_device device)
{
	sl_tensor *t = slp_malloc(sizeof *t);
	if (!t) {
		if (storage) slp_storage_release(storage);
		return NULL;
	}
	atomic_init(&t->refs, 1);
	t->storage = storage;
	t->offset = offset;
	t->type = type;
	t->device = device;
	t->var = NULL;
	t->symbol = NULL;
	t->output = 0;
	t->gradient = t->part = false;
	return t;
}

sl_tensor *slp_tensor_alias(const sl_tensor *t, bool values)
{
	struct slp_storage *storage = values ? t->storage : NULL;
	if (storage) slp_storage_retain(storage);
	sl_tensor *alias = slp_tensor_new(storage, t->offset, t->type, t->device);
	if (!alias || !values || !t->symbol) return alias;
	alias->symbol = t->symbol;
	alias->output = t->output;
	slp_symbolic->retain(t->symbol);
	return alias;
}

/* Adds a reference: the tensor outlives its scope, until sl_release.  Returns t; NULL stays NULL. */
sl_tensor *sl_retain(sl_tensor *t)
{
	if (t) atomic_fetch_add(&t->refs, 1);
	return t;
}

/* Releases a reference.  Never waits: operations in flight keep the values that they need.  NULL is ignored. */
void sl_release(sl_tensor *t)
{
	if (!t || atomic_fetch_sub(&t->refs, 1) != 1) return;
	if (t->var) slp_var_release(t->var);
	if (t->storage) slp_storage_release(t->storage);
	if (t->symbol) slp_symbolic->release(t->symbol);
	free(t);
}

/* The shape, without waiting for values.  A scalar's shape for NULL; for a symbol of unknown shape, ndim and all dims
 * are -1. */
sl_shape sl_tensor_shape(const sl_tensor *t)
{
	static const sl_shape unknown = {-1, {-1, -1, -1, -1, -1, -1}};
	return !t ? SL_SCALAR : t->type.shape.ndim < 0 ? unknown : t->type.shape;
}

/* The number of elements; 0 for NULL. */
int64_t sl_tensor_size(const sl_tensor *t)
{
	return t ? sl_shape_size(t->type.shape) : 0;
}

/* The size of the values in bytes; 0 for NULL. */
size_t sl_tensor_bytes(const sl_tensor *t)
{
	return t ? (size_t)sl_shape_size(t->type.shape) * sl_dtype_size(t->type.dtype) : 0;
}

/* The data type of its elements; SL_DTYPE_DEFAULT for NULL. */
enum sl_dtype sl_tensor_dtype(const sl_tensor *t)
{
	return t ? t->type.dtype : SL_DTYPE_DEFAULT;
}

/* The device that operations on the tensor run on; the default device for NULL. */
sl_device sl_tensor_device(const sl_tensor *t)
{
	return t ? t->device : (sl_device){SL_DEVICE_DEFAULT, -1};
}

/* ---- scopes ------------------------------------------------------------------------------------------------------ */

/* The start of SL_SCOPE: the scope becomes the calling thread's innermost one.  The structure belongs to the caller,
 * and must not move until sl_scope_close; the thread that opened scopes closes them in reverse order.
 */
void sl_scope_open(sl_scope *scope)
{
	if (!scope) return;
	scope->outer = scopes.innermost;
	scope->mark = scopes.count;
	scope->open = 1;
	scopes.innermost = scope;
}

/* The end of SL_SCOPE, however control leaves the block: releases the tensors made since sl_scope_open. */
void sl_scope_close(sl_scope *scope)
{
	if (!scope || !scope->open) return;
	while (scopes.count > scope->mark) sl_release(scopes.list[--scopes.count]);
	scopes.innermost = scope->outer;
	scope->open = 0;
	if (scopes.innermost) return;
	free(scopes.list); /* the thread may end now */
	scopes.list = NULL;
	scopes.capacity = 0;
}

bool slp_scope_reserve(size_t n)
{
	if (!scopes.innermost || scopes.count + n <= scopes.capacity) return true;
	size_t capacity = 2 * scopes.capacity + (n > 64 ? n : 64);
	sl_tensor **list = slp_realloc(scopes.list, capacity * sizeof *list);
	if (!list) return false;
	scopes.list = list;
	scopes.capacity = capacity;
	return true;
}

bool slp_scope_is_open(void)
{
	return scopes.innermost != NULL;
}

/* Tensors before the mark belong to the outer scope. */
sl_tensor *slp_scope_give(sl_scope *inside, sl_tensor *y)
{
	if (!y || !inside->outer) return sl_retain(y);
	if (!slp_scope_reserve(1)) return NULL;
	scopes.list[scopes.count] = scopes.list[inside->mark];
	scopes.list[inside->mark++] = sl_retain(y);
	scopes.count++;
	return y;
}

sl_tensor *slp_scope_add(sl_tensor *t)
{
	if (!t || !scopes.innermost) return t;
	if (!slp_scope_reserve(1)) {
		sl_release(t);
		return NULL;
	}
	scopes.list[scopes.count++] = t;
	return t;
}
