/* ONNX models: numbers that are known while a network is built: shapes, and the results of computing with them. */
#include <math.h>
#include <stdlib.h>

#include "onnx/model/call.h"
#include "op.h"

struct slp_onnx_known *slp_onnx_known_new(struct slp_onnx_known **list, enum sl_dtype dtype, sl_shape shape)
{
	size_t n = (size_t)sl_shape_size(shape);
	struct slp_onnx_known *k = slp_calloc(1, sizeof *k + (n + 1) * sizeof *k->v);
	if (!k) return NULL; /* and recorded */
	k->dtype = dtype;
	k->shape = shape;
	k->next = *list;
	*list = k;
	return k;
}

void slp_onnx_known_free(struct slp_onnx_known *list)
{
	for (struct slp_onnx_known *next; list; list = next) {
		next = list->next;
		sl_release(list->made);
		free(list);
	}
}

double slp_onnx_known_number(const struct slp_onnx_known *k, int64_t i)
{
	return slp_is_float(k->dtype) ? k->v[i].f : (double)k->v[i].i;
}

bool slp_onnx_known_is_double(const struct slp_onnx_known *k)
{
	const int64_t most = INT64_C(1) << 53;
	return slp_is_float(k->dtype) || (k->v[0].i <= most && k->v[0].i >= -most);
}

/* As the data type has it. */
void slp_onnx_known_put(struct slp_onnx_known *k, int64_t i, double v)
{
	if (k->dtype == SL_FLOAT64) k->v[i].f = v;
	else if (slp_is_float(k->dtype)) k->v[i].f = (double)(float)v;
	else if (k->dtype == SL_INT64) k->v[i].i = slp_int64_of(v);
	else if (k->dtype == SL_INT32) k->v[i].i = slp_int32_of(v);
	else k->v[i].i = k->dtype == SL_BOOL ? v != 0 : slp_uint8_of(v);
}

bool slp_onnx_is_few(sl_shape shape)
{
	return slp_shape_valid(shape) && sl_shape_size(shape) <= SLP_ONNX_KNOWN_MAX;
}

struct slp_onnx_known *slp_onnx_known_strided(struct slp_onnx_call *c, const struct slp_onnx_known *k, sl_shape shape,
                                              int64_t first, const int64_t *steps)
{
	struct slp_onnx_known *y = slp_onnx_known_new(c->made, k->dtype, shape);
	int64_t at[SL_MAX_NDIM] = {0}, n = sl_shape_size(shape), from = first;
	for (int64_t i = 0; y && i < n; i++) {
		y->v[i] = k->v[from];
		for (int a = shape.ndim - 1; a >= 0; a--) {
			from += steps[a];
			if (++at[a] < shape.dim[a]) break;
			from -= steps[a] * shape.dim[a];
			at[a] = 0;
		}
	}
	if (!y) c->failed = true;
	return y;
}
