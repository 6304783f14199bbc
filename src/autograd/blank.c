/* Tensors without memory until they have values: gradients that nothing computes, results of later programs. */
#include "autograd/blank.h"

#include "runtime/engine.h"
#include "runtime/task/storage.h"
#include "starling/arithmetic.h"
#include "starling/autograd.h"
#include "starling/primitives.h"

sl_tensor *slp_blank(struct slp_type type, sl_device device)
{
	slp_lock();
	struct slp_storage *s = slp_storage_new((size_t)sl_shape_size(type.shape) * sl_dtype_size(type.dtype), device);
	slp_unlock();
	sl_tensor *t = s ? slp_tensor_new(s, 0, type, device) : NULL;
	return t ? slp_scope_add(t) : NULL;
}

bool slp_is_blank(const sl_tensor *t)
{
	slp_lock();
	const struct slp_storage *s = t->storage;
	bool blank = s && !s->buffer && s->slot < 0 && s->generation == slp_engine.generation;
	slp_unlock();
	return blank;
}

/* False: another thread has been faster. */
static bool swap(sl_tensor *t, sl_tensor *with)
{
	slp_lock();
	struct slp_storage *own = t->storage;
	bool blank = !own->buffer && own->slot < 0;
	if (blank) {
		t->storage = with->storage;
		with->storage = own;
	}
	slp_unlock();
	return blank;
}

bool slp_blank_fill(const char *at, sl_tensor *t)
{
	bool ok = true;
	if (!slp_is_blank(t)) return true;
	SL_PAUSE
		SL_SCOPE {
			sl_tensor *zeros = sl_zeros_at(at, t->type.shape, (struct sl_make){t->type.dtype, t->device});
			ok = zeros != NULL;
			if (ok) swap(t, zeros);
		}
	return ok;
}

bool slp_blank_copy(const char *at, sl_tensor *t, sl_tensor *values)
{
	bool done = false, failed = false;
	if (slp_is_blank(t))
		SL_PAUSE
			SL_SCOPE {
				sl_tensor *copy = sl_clone_at(at, values);
				failed = !copy;
				done = copy && swap(t, copy);
			}
	return !failed && (done || sl_copy_inplace_at(at, t, values));
}
