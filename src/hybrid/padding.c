/* Pads inputs to the sizes of buckets, and cuts results back.
 *
 * Whether that is correct is checked once for each program: it is traced for the bucket's size and for one less, and
 * graph/prefix.h proves that the results for the longer inputs begin with those for the shorter ones.  Then the
 * gradients are correct, too: padded elements get none, and do not contribute to the others. */
#include <stdlib.h>
#include <string.h>

#include "hybrid/padding.h"
#include "op.h"
#include "starling/nn.h"
#include "starling/primitives.h"

bool slp_buckets_usable(const char *at, const char *function, const struct sl_buckets *b)
{
	const int most = (int)(sizeof b->sizes / sizeof *b->sizes) - 1;
	int64_t last = 0;
	bool rising = b->sizes[most] == 0;
	for (int i = 0; rising && b->sizes[i]; last = b->sizes[i++]) rising = b->sizes[i] > last;
	if (!rising)
		slp_call_fail(at, function, SL_EINVAL,
		              "the sizes of buckets must rise from 1, at most %d, with a 0 at the end", most);
	else if (b->axis < 0 || b->axis >= SL_MAX_NDIM)
		slp_call_fail(at, function, SL_EINVAL, "the axis of the buckets is %d", b->axis);
	else if (!last && (b->axis || b->inputs))
		slp_call_fail(at, function, SL_EINVAL, "there are no sizes of buckets");
	else return true;
	return false;
}

/* ---- choosing ---------------------------------------------------------------------------------------------------- */

/* The size of the axis; -1: there is none. */
static int64_t length_of(const sl_tensor *t, int axis)
{
	return axis < t->type.shape.ndim ? t->type.shape.dim[axis] : -1;
}

/* The inputs that follow the size of the first of them; 0 with an error. */
static unsigned which(const char *at, const char *what, const struct sl_buckets *b, int nin, sl_tensor *const *in)
{
	const int bits = 8 * (int)sizeof(unsigned);
	int first = b->inputs ? __builtin_ctz(b->inputs) : 0;
	int64_t length = first < nin ? length_of(in[first], b->axis) : -1;
	unsigned found = 0;
	for (int i = 0; i < nin && i < bits; i++)
		if (length >= 0 && length_of(in[i], b->axis) == length && (!b->inputs || b->inputs >> i & 1))
			found |= 1u << i;
	if (found && (!b->inputs || found == b->inputs)) return found;
	slp_call_fail(at, what, SL_ESHAPE, "the inputs of its buckets do not all have one size along axis %d", b->axis);
	return 0;
}

bool slp_padding_of(const char *at, const char *what, const struct sl_buckets *b, int nin, sl_tensor *const *in,
                    struct slp_padding *f)
{
	*f = (struct slp_padding){.axis = b->axis};
	if (!b->sizes[0]) return true;
	unsigned found = which(at, what, b, nin, in);
	if (!found) return false;
	const sl_tensor *first = in[__builtin_ctz(found)];
	if (!sl_tensor_size(first)) return true;
	f->length = length_of(first, b->axis);
	for (int i = 0; b->sizes[i] && f->size < f->length; i++) f->size = b->sizes[i];
	if (f->size >= f->length && f->size > 1) f->which = found;
	return true;
}

/* ---- padding and unpadding --------------------------------------------------------------------------------------- */

/* Repeats of the last element: whatever the network makes of them, it can make something of that one. */
static sl_tensor *filler(const char *at, const struct slp_padding *f, sl_tensor *x)
{
	sl_shape shape = x->type.shape;
	shape.dim[f->axis] = f->size - f->length;
	sl_tensor *last = NULL;
	SL_PAUSE
		last = sl_broadcast_to_at(at, sl_slice_at(at, x, f->axis, f->length - 1, f->length, 1), shape);
	return last;
}

bool slp_pad(const char *at, const struct slp_padding *f, int nin, sl_tensor *const *in, sl_tensor **out)
{
	for (int i = 0; i < nin; i++) {
		bool full = f->length == f->size || i >= 8 * (int)sizeof f->which || !(f->which >> i & 1);
		sl_tensor *both[] = {in[i], full ? NULL : filler(at, f, in[i])};
		if (!(out[i] = full ? in[i] : sl_concat_at(at, both, 2, f->axis))) return false;
	}
	return true;
}

sl_tensor *slp_unpad(const char *at, const struct slp_padding *f, struct slp_follows follows, sl_tensor *y)
{
	if (follows.kind != SLP_BEGINS || f->length == f->size) return y;
	sl_shape shape = y->type.shape;
	int64_t runs = follows.runs ? follows.runs : 1, each = shape.dim[follows.axis] / runs / f->size;
	int64_t keep = each * f->length, outer = runs, inner = 1;
	if (!follows.runs) return sl_slice_at(at, y, follows.axis, 0, shape.dim[follows.axis] / f->size * f->length, 1);
	if (runs == 1) return sl_slice_at(at, y, follows.axis, 0, keep, 1);
	for (int i = 0; i < follows.axis; i++) outer *= shape.dim[i];
	for (int i = follows.axis + 1; i < shape.ndim; i++) inner *= shape.dim[i];
	sl_tensor *parts = sl_reshape_at(at, y, SL_SHAPE(outer, each * f->size, inner));
	shape.dim[follows.axis] = runs * keep;
	return sl_reshape_at(at, sl_slice_at(at, parts, 1, 0, keep, 1), shape);
}

/* ---- checking ---------------------------------------------------------------------------------------------------- */

bool slp_padding_follows(const char *at, const char *what, const struct slp_padding *f, const sl_graph *more,
                         const sl_graph *less, int nout, struct slp_follows *out)
{
	return slp_prefix(at, what, more, less, (int64_t[]){f->size, f->size - 1}, nout, out) == SL_OK;
}
