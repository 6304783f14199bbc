/* Images with channels last, on CPUs (channels_last.h). */
#include "channels_last.h"

#include "workspace.h"

enum { INPUTS = 3, OUTPUTS = 2, TILE = 16 };

/* ---- from one order into the other: each image is a matrix, and transposed ---------------------------------------- */

struct turn {
	const char *from;
	char *to;
	int64_t rows, columns; /* of an image at `from` */
	size_t element;
};

/* Rows [row, row + TILE) of an image. */
#define TURN(bits)                                                                                                     \
	static void turn##bits(const uint##bits##_t *from, uint##bits##_t *to, int64_t row, int64_t rows,              \
	                       int64_t columns)                                                                        \
	{                                                                                                              \
		int64_t end = row + TILE < rows ? row + TILE : rows;                                                   \
		for (int64_t c = 0; c < columns; c++)                                                                  \
			for (int64_t r = row; r < end; r++) to[c * rows + r] = from[r * columns + c];                  \
	}
TURN(16)
TURN(32)
TURN(64)

static void turn_rows(void *arg, int64_t begin, int64_t end)
{
	const struct turn *t = arg;
	int64_t tiles = (t->rows + TILE - 1) / TILE;
	for (int64_t i = begin; i < end; i++) {
		int64_t row = i % tiles * TILE;
		size_t image = (size_t)(i / tiles * t->rows * t->columns) * t->element;
		const void *from = t->from + image;
		void *to = t->to + image;
		if (t->element == 2) turn16(from, to, row, t->rows, t->columns);
		else if (t->element == 4) turn32(from, to, row, t->rows, t->columns);
		else turn64(from, to, row, t->rows, t->columns);
	}
}

static void reorder(struct slp_type type, const void *from, void *to, bool to_last)
{
	sl_shape x = type.shape;
	int64_t channels = x.dim[1], plane = x.dim[2] * x.dim[3];
	struct turn t = {from, to, to_last ? channels : plane, to_last ? plane : channels, sl_dtype_size(type.dtype)};
	if (sl_shape_size(x) == 0) return;
	slp_parallel_for(x.dim[0] * ((t.rows + TILE - 1) / TILE), 1 + SLP_GRAIN / (TILE * t.columns), turn_rows, &t);
}

/* ---- calls -------------------------------------------------------------------------------------------------------- */

static size_t bytes_of(const struct slp_view *v)
{
	return ((size_t)slp_size(v) * sl_dtype_size(v->type.dtype) + 63) & ~(size_t)63;
}

static char *place(const struct slp_kernel *k, unsigned last)
{
	size_t bytes = 64;
	for (int i = 0; i < k->nin; i++) bytes += last & SLP_IN(i) ? bytes_of(&k->in[i]) : 0;
	for (int i = 0; i < k->nout; i++) bytes += last & SLP_OUT(i) ? bytes_of(&k->out[i]) : 0;
	return slp_workspace(SLP_WORK_PLAIN, bytes);
}

/* The view, or a place for its copy. */
static struct slp_view plain_of(const struct slp_view *v, bool last, char **next)
{
	struct slp_view plain = *v;
	if (!last) return plain;
	plain.ptr = *next;
	*next += bytes_of(v);
	return plain;
}

enum sl_status slp_by_plain(const struct slp_kernel *k, unsigned last, const void *attrs, slp_kernel_fn *kernel)
{
	struct slp_view in[INPUTS], out[OUTPUTS];
	struct slp_kernel plain = *k;
	plain.in = in;
	plain.out = out;
	plain.attrs = attrs;
	if (k->nin > INPUTS || k->nout > OUTPUTS) return slp_kernel_fail(k, SL_EINTERNAL, "too many operands");
	char *next = place(k, last);
	if (!next) return slp_kernel_fail(k, SL_ENOMEM, "no memory to reorder images in");
	for (int i = 0; i < k->nin; i++) {
		in[i] = plain_of(&k->in[i], last & SLP_IN(i), &next);
		if (last & SLP_IN(i)) reorder(in[i].type, k->in[i].ptr, in[i].ptr, false);
	}
	for (int i = 0; i < k->nout; i++) out[i] = plain_of(&k->out[i], last & SLP_OUT(i), &next);
	enum sl_status s = kernel(&plain);
	for (int i = 0; i < k->nout && s == SL_OK; i++)
		if (last & SLP_OUT(i)) reorder(out[i].type, out[i].ptr, k->out[i].ptr, true);
	return s;
}
