/* ONNX operators, computed: determinants, of values that are read. */
#include <math.h>

#include "onnx/model/call.h"
#include "op.h"

/* The row at or below i with the largest number in column i is exchanged with row i; false: all are 0. */
static bool pivot(union slp_onnx_element *a, int64_t n, int64_t i, double *sign)
{
	int64_t best = i;
	for (int64_t r = i + 1; r < n; r++)
		if (fabs(a[r * n + i].f) > fabs(a[best * n + i].f)) best = r;
	for (int64_t k = 0; k < n && best != i; k++) {
		union slp_onnx_element other = a[i * n + k];
		a[i * n + k] = a[best * n + k];
		a[best * n + k] = other;
	}
	if (best != i) *sign = -*sign;
	return a[i * n + i].f != 0;
}

/* By elimination, in place. */
static double determinant(union slp_onnx_element *a, int64_t n)
{
	double y = 1;
	for (int64_t i = 0; i < n; i++) {
		if (!pivot(a, n, i, &y)) return 0;
		y *= a[i * n + i].f;
		for (int64_t r = i + 1; r < n; r++) {
			double factor = a[r * n + i].f / a[i * n + i].f;
			for (int64_t k = i; k < n; k++) a[r * n + k].f -= factor * a[i * n + k].f;
		}
	}
	return y;
}

void slp_onnx_import_det(struct slp_onnx_call *c)
{
	sl_shape s = slp_onnx_shape(c, 0), y = s;
	int64_t n = s.ndim > 1 ? s.dim[s.ndim - 1] : -1;
	if (!c->failed && (n < 0 || s.dim[s.ndim - 2] != n || !slp_is_float(slp_onnx_dtype(&c->in[0]))))
		slp_onnx_call_fail(c, SL_ESHAPE, "takes square matrices of floats");
	const struct slp_onnx_known *k = c->failed ? NULL : slp_onnx_known_in(c, 0);
	if (!k) return;
	y.ndim -= 2;
	struct slp_onnx_known *copy = slp_onnx_known_new(c->made, SL_FLOAT64, s);
	struct slp_onnx_known *to = slp_onnx_known_new(c->made, k->dtype, y);
	int64_t all = sl_shape_size(s);
	if (copy && all) memcpy(copy->v, k->v, (size_t)all * sizeof *k->v);
	for (int64_t i = 0; copy && to && i < sl_shape_size(y); i++)
		slp_onnx_known_put(to, i, determinant(copy->v + i * n * n, n));
	slp_onnx_set_output_value(c, 0, (struct slp_onnx_value){.known = copy ? to : NULL});
}
