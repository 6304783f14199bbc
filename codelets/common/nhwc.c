/* Runs kernels for the plain layout on images in NHWC, on CPUs (nhwc.h). */
#include "nhwc.h"
/* Images with channels last, on CPUs (channels_last.h). */
#include "op.h"

#include "strided.h"
#include "workspace.h"

enum { INPUTS = 3, OUTPUTS = 2 };

/* Copies from one layout into the other: each image is a matrix, which is transposed. */
static enum sl_status reorder(const struct slp_kernel *k, struct slp_type type, void *from, void *to, bool to_nhwc)
{
	sl_shape x = type.shape;
	int64_t channels = x.dim[1], plane = x.dim[2] * x.dim[3];
	int64_t rows = to_nhwc ? channels : plane, columns = to_nhwc ? plane : channels;
	struct slp_view in = {from, type}, out = {to, type};
	struct slp_kernel copy = {.op = k->op, .nin = 1, .nout = 1, .in = &in, .out = &out};
	struct slp_strided p = {0};
	slp_strided_add(&p, x.dim[0], rows * columns);
	slp_strided_add(&p, columns, 1);
	slp_strided_add(&p, rows, columns);
	return slp_strided_cpu(&copy, &p);
}

static size_t bytes_of(const struct slp_view *v)
{
	return ((size_t)slp_size(v) * sl_dtype_size(v->type.dtype) + 63) & ~(size_t)63;
}

static char *place(const struct slp_kernel *k, unsigned nhwc)
{
	size_t bytes = 64;
	for (int i = 0; i < k->nin; i++) bytes += nhwc & SLP_IN(i) ? bytes_of(&k->in[i]) : 0;
	for (int i = 0; i < k->nout; i++) bytes += nhwc & SLP_OUT(i) ? bytes_of(&k->out[i]) : 0;
	return slp_workspace(SLP_WORK_PLAIN, bytes);
}

/* The view, or memory for its copy. */
static struct slp_view plain_of(const struct slp_view *v, bool nhwc, char **next)
{
	struct slp_view plain = *v;
	if (!nhwc) return plain;
	plain.ptr = *next;
	*next += bytes_of(v);
	return plain;
}

enum sl_status slp_by_plain(const struct slp_kernel *k, unsigned nhwc, const void *attrs, slp_kernel_fn *kernel)
{
	struct slp_view in[INPUTS], out[OUTPUTS];
	struct slp_kernel plain = *k;
	plain.in = in;
	plain.out = out;
	plain.attrs = attrs;
	if (k->nin > INPUTS || k->nout > OUTPUTS) return slp_kernel_fail(k, SL_EINTERNAL, "too many operands");
	char *next = place(k, nhwc);
	if (!next) return slp_kernel_fail(k, SL_ENOMEM, "no memory to reorder images in");
	enum sl_status s = SL_OK;
	for (int i = 0; i < k->nin; i++) {
		in[i] = plain_of(&k->in[i], nhwc & SLP_IN(i), &next);
		if (s == SL_OK && nhwc & SLP_IN(i)) s = reorder(k, in[i].type, k->in[i].ptr, in[i].ptr, false);
	}
	for (int i = 0; i < k->nout; i++) out[i] = plain_of(&k->out[i], nhwc & SLP_OUT(i), &next);
	if (s == SL_OK) s = kernel(&plain);
	for (int i = 0; i < k->nout && s == SL_OK; i++)
		if (nhwc & SLP_OUT(i)) s = reorder(k, out[i].type, out[i].ptr, k->out[i].ptr, true);
	return s;
}
