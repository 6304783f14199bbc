/* Arithmetic, comparisons and logic of two tensors, or of a tensor and a number, and in place; ops.h says what holds for
 * all operations. */
#ifndef STARLING_ARITHMETIC_H
#define STARLING_ARITHMETIC_H

#include <starling/tensor.h>

#pragma GCC system_header
#ifdef __cplusplus
extern "C" {
#endif

/* Comparisons and predicates give 1 or 0 in the data type of their arguments, or in .dtype: sl_lt(a, b, .dtype =
 * SL_BOOL). */
struct sl_compare_opts {
	enum sl_dtype dtype;
};
SL_API sl_tensor *sl_compared_at(const char *at, sl_tensor *result, struct sl_compare_opts opts);
#define SL_COMPARED_(result, ...) sl_compared_at(SL_HERE, result, (struct sl_compare_opts){__VA_ARGS__})

/* ---- of two tensors; shapes are broadcast as in NumPy --------------------------------------------------------- */

SL_API sl_tensor *sl_add_at(const char *at, sl_tensor *a, sl_tensor *b);
SL_API sl_tensor *sl_sub_at(const char *at, sl_tensor *a, sl_tensor *b);
SL_API sl_tensor *sl_mul_at(const char *at, sl_tensor *a, sl_tensor *b);
SL_API sl_tensor *sl_div_at(const char *at, sl_tensor *a, sl_tensor *b);
SL_API sl_tensor *sl_pow_at(const char *at, sl_tensor *a, sl_tensor *b);
SL_API sl_tensor *sl_maximum_at(const char *at, sl_tensor *a, sl_tensor *b);
SL_API sl_tensor *sl_minimum_at(const char *at, sl_tensor *a, sl_tensor *b);
SL_API sl_tensor *sl_atan2_at(const char *at, sl_tensor *a, sl_tensor *b);
SL_API sl_tensor *sl_fmod_at(const char *at, sl_tensor *a, sl_tensor *b);
SL_API sl_tensor *sl_remainder_at(const char *at, sl_tensor *a, sl_tensor *b);
SL_API sl_tensor *sl_floor_divide_at(const char *at, sl_tensor *a, sl_tensor *b);
SL_API sl_tensor *sl_fmax_at(const char *at, sl_tensor *a, sl_tensor *b);
SL_API sl_tensor *sl_fmin_at(const char *at, sl_tensor *a, sl_tensor *b);
SL_API sl_tensor *sl_copysign_at(const char *at, sl_tensor *a, sl_tensor *b);
SL_API sl_tensor *sl_eq_at(const char *at, sl_tensor *a, sl_tensor *b);
SL_API sl_tensor *sl_ne_at(const char *at, sl_tensor *a, sl_tensor *b);
SL_API sl_tensor *sl_lt_at(const char *at, sl_tensor *a, sl_tensor *b);
SL_API sl_tensor *sl_le_at(const char *at, sl_tensor *a, sl_tensor *b);
SL_API sl_tensor *sl_gt_at(const char *at, sl_tensor *a, sl_tensor *b);
SL_API sl_tensor *sl_ge_at(const char *at, sl_tensor *a, sl_tensor *b);
SL_API sl_tensor *sl_logical_and_at(const char *at, sl_tensor *a, sl_tensor *b);
SL_API sl_tensor *sl_logical_or_at(const char *at, sl_tensor *a, sl_tensor *b);
SL_API sl_tensor *sl_logical_xor_at(const char *at, sl_tensor *a, sl_tensor *b);
#define sl_add(a, b) sl_add_at(SL_HERE, a, b)
#define sl_sub(a, b) sl_sub_at(SL_HERE, a, b)
#define sl_mul(a, b) sl_mul_at(SL_HERE, a, b)
#define sl_div(a, b) sl_div_at(SL_HERE, a, b)
#define sl_pow(a, b) sl_pow_at(SL_HERE, a, b)
#define sl_maximum(a, b) sl_maximum_at(SL_HERE, a, b)
#define sl_minimum(a, b) sl_minimum_at(SL_HERE, a, b)
#define sl_atan2(a, b) sl_atan2_at(SL_HERE, a, b)
#define sl_fmod(a, b) sl_fmod_at(SL_HERE, a, b)
#define sl_remainder(a, b) sl_remainder_at(SL_HERE, a, b)
#define sl_floor_divide(a, b) sl_floor_divide_at(SL_HERE, a, b)
#define sl_fmax(a, b) sl_fmax_at(SL_HERE, a, b)
#define sl_fmin(a, b) sl_fmin_at(SL_HERE, a, b)
#define sl_copysign(a, b) sl_copysign_at(SL_HERE, a, b)
#define sl_eq(a, b, ...) SL_COMPARED_(sl_eq_at(SL_HERE, a, b), __VA_ARGS__)
#define sl_ne(a, b, ...) SL_COMPARED_(sl_ne_at(SL_HERE, a, b), __VA_ARGS__)
#define sl_lt(a, b, ...) SL_COMPARED_(sl_lt_at(SL_HERE, a, b), __VA_ARGS__)
#define sl_le(a, b, ...) SL_COMPARED_(sl_le_at(SL_HERE, a, b), __VA_ARGS__)
#define sl_gt(a, b, ...) SL_COMPARED_(sl_gt_at(SL_HERE, a, b), __VA_ARGS__)
#define sl_ge(a, b, ...) SL_COMPARED_(sl_ge_at(SL_HERE, a, b), __VA_ARGS__)
#define sl_logical_and(a, b, ...) SL_COMPARED_(sl_logical_and_at(SL_HERE, a, b), __VA_ARGS__)
#define sl_logical_or(a, b, ...) SL_COMPARED_(sl_logical_or_at(SL_HERE, a, b), __VA_ARGS__)
#define sl_logical_xor(a, b, ...) SL_COMPARED_(sl_logical_xor_at(SL_HERE, a, b), __VA_ARGS__)

/* ---- with a number: x op s, and s op x for the r… forms ------------------------------------------------------- */

SL_API sl_tensor *sl_add_scalar_at(const char *at, sl_tensor *x, double s);
SL_API sl_tensor *sl_sub_scalar_at(const char *at, sl_tensor *x, double s);
SL_API sl_tensor *sl_mul_scalar_at(const char *at, sl_tensor *x, double s);
SL_API sl_tensor *sl_div_scalar_at(const char *at, sl_tensor *x, double s);
SL_API sl_tensor *sl_pow_scalar_at(const char *at, sl_tensor *x, double s);
SL_API sl_tensor *sl_maximum_scalar_at(const char *at, sl_tensor *x, double s);
SL_API sl_tensor *sl_minimum_scalar_at(const char *at, sl_tensor *x, double s);
SL_API sl_tensor *sl_eq_scalar_at(const char *at, sl_tensor *x, double s);
SL_API sl_tensor *sl_ne_scalar_at(const char *at, sl_tensor *x, double s);
SL_API sl_tensor *sl_lt_scalar_at(const char *at, sl_tensor *x, double s);
SL_API sl_tensor *sl_le_scalar_at(const char *at, sl_tensor *x, double s);
SL_API sl_tensor *sl_gt_scalar_at(const char *at, sl_tensor *x, double s);
SL_API sl_tensor *sl_ge_scalar_at(const char *at, sl_tensor *x, double s);
SL_API sl_tensor *sl_rsub_scalar_at(const char *at, sl_tensor *x, double s);
SL_API sl_tensor *sl_rdiv_scalar_at(const char *at, sl_tensor *x, double s);
SL_API sl_tensor *sl_rpow_scalar_at(const char *at, sl_tensor *x, double s);
#define sl_add_scalar(x, s) sl_add_scalar_at(SL_HERE, x, s)
#define sl_sub_scalar(x, s) sl_sub_scalar_at(SL_HERE, x, s)
#define sl_mul_scalar(x, s) sl_mul_scalar_at(SL_HERE, x, s)
#define sl_div_scalar(x, s) sl_div_scalar_at(SL_HERE, x, s)
#define sl_pow_scalar(x, s) sl_pow_scalar_at(SL_HERE, x, s)
#define sl_maximum_scalar(x, s) sl_maximum_scalar_at(SL_HERE, x, s)
#define sl_minimum_scalar(x, s) sl_minimum_scalar_at(SL_HERE, x, s)
#define sl_eq_scalar(x, s, ...) SL_COMPARED_(sl_eq_scalar_at(SL_HERE, x, s), __VA_ARGS__)
#define sl_ne_scalar(x, s, ...) SL_COMPARED_(sl_ne_scalar_at(SL_HERE, x, s), __VA_ARGS__)
#define sl_lt_scalar(x, s, ...) SL_COMPARED_(sl_lt_scalar_at(SL_HERE, x, s), __VA_ARGS__)
#define sl_le_scalar(x, s, ...) SL_COMPARED_(sl_le_scalar_at(SL_HERE, x, s), __VA_ARGS__)
#define sl_gt_scalar(x, s, ...) SL_COMPARED_(sl_gt_scalar_at(SL_HERE, x, s), __VA_ARGS__)
#define sl_ge_scalar(x, s, ...) SL_COMPARED_(sl_ge_scalar_at(SL_HERE, x, s), __VA_ARGS__)
#define sl_rsub_scalar(x, s) sl_rsub_scalar_at(SL_HERE, x, s)
#define sl_rdiv_scalar(x, s) sl_rdiv_scalar_at(SL_HERE, x, s)
#define sl_rpow_scalar(x, s) sl_rpow_scalar_at(SL_HERE, x, s)

/* ---- in place: the result is written over the first argument, which is also returned (no reference is added) ---- */

SL_API sl_tensor *sl_add_inplace_at(const char *at, sl_tensor *a, sl_tensor *b);
SL_API sl_tensor *sl_sub_inplace_at(const char *at, sl_tensor *a, sl_tensor *b);
SL_API sl_tensor *sl_mul_inplace_at(const char *at, sl_tensor *a, sl_tensor *b);
SL_API sl_tensor *sl_div_inplace_at(const char *at, sl_tensor *a, sl_tensor *b);
SL_API sl_tensor *sl_add_scalar_inplace_at(const char *at, sl_tensor *x, double s);
SL_API sl_tensor *sl_sub_scalar_inplace_at(const char *at, sl_tensor *x, double s);
SL_API sl_tensor *sl_mul_scalar_inplace_at(const char *at, sl_tensor *x, double s);
SL_API sl_tensor *sl_div_scalar_inplace_at(const char *at, sl_tensor *x, double s);
SL_API sl_tensor *sl_relu_inplace_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_fill_inplace_at(const char *at, sl_tensor *x, double value);
SL_API sl_tensor *sl_copy_inplace_at(const char *at, sl_tensor *x, sl_tensor *from);
#define sl_add_(a, b) sl_add_inplace_at(SL_HERE, a, b)
#define sl_sub_(a, b) sl_sub_inplace_at(SL_HERE, a, b)
#define sl_mul_(a, b) sl_mul_inplace_at(SL_HERE, a, b)
#define sl_div_(a, b) sl_div_inplace_at(SL_HERE, a, b)
#define sl_add_scalar_(x, s) sl_add_scalar_inplace_at(SL_HERE, x, s)
#define sl_sub_scalar_(x, s) sl_sub_scalar_inplace_at(SL_HERE, x, s)
#define sl_mul_scalar_(x, s) sl_mul_scalar_inplace_at(SL_HERE, x, s)
#define sl_div_scalar_(x, s) sl_div_scalar_inplace_at(SL_HERE, x, s)
#define sl_relu_(x) sl_relu_inplace_at(SL_HERE, x)
#define sl_fill_(x, value) sl_fill_inplace_at(SL_HERE, x, value)
#define sl_copy_(x, from) sl_copy_inplace_at(SL_HERE, x, from)

#ifdef __cplusplus
}
#endif
#endif
