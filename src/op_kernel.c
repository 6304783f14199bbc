/* Chooses the kernel of a call by its data types, for eager calls, plans and passes. */
#include <string.h>

#include "op.h"

struct slp_types slp_types_of(int nin, const struct slp_type *in, int nout, const struct slp_type *out)
{
	struct slp_types t = {0, 0};
	for (int i = 0; i < nin + nout; i++) {
		enum sl_dtype d = i < nin ? in[i].dtype : out[i - nin].dtype;
		if (!t.first) t.first = SLP_DTYPE(d);
		if (slp_is_float(d)) t.floats |= SLP_DTYPE(d);
	}
	return t;
}

static slp_kernel_fn *kernel_of(const struct slp_row *row, enum sl_device_kind device)
{
	switch (device) {
	case SL_DEVICE_GPU: return row->cuda;
	case SL_DEVICE_CPU: return !row->available || row->available() ? row->cpu : NULL;
	case SL_DEVICE_AUTO:
	case SL_DEVICE_DEFAULT: break;
	}
	return row->cuda ? row->cuda : kernel_of(row, SL_DEVICE_CPU);
}

static slp_kernel_fn *find(const struct sl_op *op, struct slp_types t, enum sl_device_kind device)
{
	for (const struct slp_row *row = op->rows; row && row->types; row++)
		if (row->types & t.first && !(t.floats & ~row->types) && kernel_of(row, device))
			return kernel_of(row, device);
	return NULL;
}

static unsigned promoted(unsigned set)
{
	return set & SLP_HALVES ? (set & ~SLP_HALVES) | SLP_F32 : set;
}

struct slp_choice slp_promoted_kernel_for(const struct sl_op *op, struct slp_types t, enum sl_device_kind device)
{
	struct slp_types wide = {promoted(t.first), promoted(t.floats)};
	return (struct slp_choice){find(op, wide, device), true};
}

struct slp_choice slp_kernel_for(const struct sl_op *op, struct slp_types t, enum sl_device_kind device)
{
	struct slp_choice c = {find(op, t, device), false};
	if (c.kernel || !((t.first | t.floats) & SLP_HALVES)) return c;
	return slp_promoted_kernel_for(op, t, device);
}

bool slp_has_kernel(const struct slp_infer *c, enum sl_device_kind device)
{
	return slp_kernel_for(c->op, slp_types_of(c->nin, c->in, c->nout, c->out), device).kernel != NULL;
}

const char *slp_row_types(const struct sl_op *op, char text[160])
{
	unsigned all = 0;
	size_t n = 0;
	for (const struct slp_row *row = op->rows; row && row->types; row++)
		all |= row->cpu ? row->types : row->types & ~SLP_HALVES;
	text[0] = '\0';
	for (int d = SL_DTYPE_DEFAULT + 1; d < SL_DTYPE_COUNT; d++) {
		if (!(all & SLP_DTYPE(d))) continue;
		bool last = all >> d == 1;
		n += (size_t)snprintf(text + n, 160 - n, "%s%s",
		                      !n     ? ""
		                      : last ? " or "
		                             : ", ",
		                      sl_dtype_name((enum sl_dtype)d));
	}
	return text;
}

bool slp_count_fits(const struct sl_op *op, int nin)
{
	return nin >= op->nin_min && nin <= op->nin_max;
}

const char *slp_count_text(const struct sl_op *op, char text[64])
{
	int least = op->nin_min, most = op->nin_max;
	if (most == SLP_MANY) snprintf(text, 64, "at least %d input%s", least, least == 1 ? "" : "s");
	else if (least == most) snprintf(text, 64, "%d input%s", least, least == 1 ? "" : "s");
	else snprintf(text, 64, "%d to %d inputs", least, most);
	return text;
}
