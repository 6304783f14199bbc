/* ONNX operators, computed: sums of products and determinants; integers are exact, determinants are of values read. */
#include <math.h>

#include "onnx/model/call.h"
#include "op.h"
#include "op_inner.h"
#include "starling/functions.h"
#include "starling/primitives.h"

/* ---- products of integers ---------------------------------------------------------------------------------------- */

enum { LIMBS = 4, LIMB = 16 };

/* The parts of 16 bits that matter in a number of this type; products of products are larger. */
static int limbs_of(int type, int factors)
{
	enum { INT32 = 6, INT64 = 7, UINT32 = 12, UINT64 = 13 };
	return type == INT64 || type == UINT64 ? 4 : type == INT32 || type == UINT32 || factors > 2 ? 2 : 1;
}

static sl_tensor *with_number(struct slp_onnx_call *c, sl_tensor *x, double number, int kind)
{
	struct sl_make make = {SL_INT64, sl_tensor_device(x)};
	sl_tensor *n = sl_full_at(c->at, sl_tensor_shape(x), number, make);
	return n ? slp_modular(c->at, x, n, kind) : NULL;
}

/* Part i of int64, not negative, as float64. */
static sl_tensor *limb(struct slp_onnx_call *c, sl_tensor *x, int i)
{
	if (i) x = with_number(c, x, LIMB * i, SLP_MODULAR_RIGHT);
	x = x ? with_number(c, x, (1 << LIMB) - 1, SLP_MODULAR_AND) : NULL;
	return x ? sl_cast_at(c->at, x, SL_FLOAT64) : NULL;
}

/* Adds the products of parts that lie LIMB * weight bits up. */
static sl_tensor *add_products(struct slp_onnx_call *c, sl_tensor *sum, sl_tensor *const *a, sl_tensor *const *b,
                               int weight, slp_onnx_multiply *multiply, const void *how)
{
	for (int i = 0; i <= weight; i++) {
		sl_tensor *p = multiply(c, a[i], b[weight - i], how);
		p = p ? sl_cast_at(c->at, p, SL_INT64) : NULL;
		if (p && weight) p = with_number(c, p, LIMB * weight, SLP_MODULAR_LEFT);
		if (!p) return NULL;
		sum = sum ? slp_modular(c->at, sum, p, SLP_MODULAR_ADD) : p;
	}
	return sum;
}

/* A double holds the sums of up to 2^19 products of 16 bits. */
sl_tensor *slp_onnx_whole_product(struct slp_onnx_call *c, sl_tensor *a, sl_tensor *b, slp_onnx_multiply *multiply,
                                  const void *how)
{
	sl_tensor *p[LIMBS], *q[LIMBS], *y = NULL;
	enum sl_dtype dtype = sl_tensor_dtype(a);
	int n = dtype == SL_INT64 ? limbs_of(slp_onnx_type_of(&c->in[0]), c->nin) : 1;
	if (n == 1) {
		a = sl_cast_at(c->at, a, SL_FLOAT64), b = sl_cast_at(c->at, b, SL_FLOAT64);
		y = a && b ? multiply(c, a, b, how) : NULL;
		return y ? sl_cast_at(c->at, y, dtype) : NULL;
	}
	for (int i = 0; i < n; i++)
		if (!(p[i] = limb(c, a, i)) || !(q[i] = limb(c, b, i))) return NULL;
	for (int weight = 0; weight < n; weight++)
		if (!(y = add_products(c, y, p, q, weight, multiply, how))) return NULL;
	return y;
}

/* ---- Einsum ------------------------------------------------------------------------------------------------------ */

enum { MOST_TEXT = 160, MOST_INPUTS = 8 }; /* texts of three terms have room for them */

static sl_tensor *einsum_of(struct slp_onnx_call *c, sl_tensor *a, sl_tensor *b, const void *equation)
{
	return sl_einsum_at(c->at, equation, ((sl_tensor *[]){a, b}), 2);
}

/* The letters of the terms a and b, each once, that the rest of the equation has, too; "..." of either stays. */
static void letters_kept(const char *a, const char *b, const char *rest, char *to)
{
	char *start = to;
	bool dots = strchr(a, '.') || strchr(b, '.');
	for (int i = 0; i < 3 * dots; i++) *to++ = '.';
	for (const char *terms[] = {a, b, NULL}, **t = terms; *t; t++)
		for (const char *s = *t; *s; s++) {
			*to = '\0';
			if (*s != '.' && strchr(rest, *s) && !strchr(start, *s)) *to++ = *s;
		}
	*to = '\0';
}

/* Integers of at most two inputs; one is multiplied by 1. */
static sl_tensor *short_einsum(struct slp_onnx_call *c, const char *text, sl_tensor *const *in)
{
	char equation[MOST_TEXT + 1];
	const char *arrow = strstr(text, "->");
	if (c->nin == 2) return slp_onnx_whole_product(c, in[0], in[1], einsum_of, text);
	int before = arrow ? (int)(arrow - text) : (int)strlen(text);
	snprintf(equation, sizeof equation, "%.*s,%s", before, text, text + before);
	struct sl_make make = {sl_tensor_dtype(in[0]), sl_tensor_device(in[0])};
	sl_tensor *one = sl_ones_at(c->at, SL_SCALAR, make);
	return one ? slp_onnx_whole_product(c, in[0], one, einsum_of, equation) : NULL;
}

/* Integers of several inputs, two after the other. */
static sl_tensor *long_einsum(struct slp_onnx_call *c, const char *text, sl_tensor *const *in)
{
	char equation[3 * MOST_TEXT + 4], kept[MOST_TEXT], term[MOST_TEXT], next[MOST_TEXT];
	const char *arrow = strstr(text, "->"), *rest = strchr(text, ',');
	sl_tensor *y = in[0];
	if (!arrow || !rest) {
		slp_onnx_call_fail(c, SL_EUNSUPPORTED, "of several integers needs \"->\" in its equation");
		return NULL;
	}
	snprintf(term, sizeof term, "%.*s", (int)(rest - text), text);
	for (int i = 1; i < c->nin && y && *rest == ','; i++) {
		const char *end = strpbrk(rest + 1, ",-");
		snprintf(next, sizeof next, "%.*s", (int)(end - rest - 1), rest + 1);
		letters_kept(term, next, end, kept);
		snprintf(equation, sizeof equation, "%s,%s->%s", term, next, i == c->nin - 1 ? arrow + 2 : kept);
		y = slp_onnx_whole_product(c, y, in[i], einsum_of, equation);
		memcpy(term, kept, sizeof term);
		rest = end;
	}
	return y;
}

void slp_onnx_import_einsum(struct slp_onnx_call *c)
{
	sl_tensor *in[MOST_INPUTS];
	const SlpOnnx__AttributeProto *a = slp_onnx_attr(c, "equation");
	char text[MOST_TEXT], *to = text;
	if (!a || a->s.len >= sizeof text || c->nin > MOST_INPUTS) {
		slp_onnx_call_fail(c, SL_EUNSUPPORTED, "has no equation, one that is too long, or more than %d inputs",
		                   MOST_INPUTS);
		return;
	}
	for (size_t i = 0; i < a->s.len; i++)
		if (a->s.data[i] != ' ') *to++ = (char)a->s.data[i];
	*to = '\0';
	for (int i = 0; i < c->nin; i++)
		if (!(in[i] = slp_onnx_tensor(c, i))) c->failed = true;
	if (c->failed) return;
	sl_tensor *y = slp_is_float(sl_tensor_dtype(in[0])) ? sl_einsum_at(c->at, text, in, c->nin)
	               : c->nin > 2                         ? long_einsum(c, text, in)
	                                                    : short_einsum(c, text, in);
	slp_onnx_set_output(c, 0, y);
}

/* ---- determinants ------------------------------------------------------------------------------------------------ */

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
