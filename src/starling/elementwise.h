/* Elementwise functions of one tensor; ops.h says what holds for all operations. */
#ifndef STARLING_ELEMENTWISE_H
#define STARLING_ELEMENTWISE_H

#include <starling/arithmetic.h>
#include <starling/options.h>

#pragma GCC system_header
#ifdef __cplusplus
extern "C" {
#endif

SL_API sl_tensor *sl_activate_at(const char *at, sl_tensor *x, enum sl_activation activation);
#define sl_activate(x, activation) sl_activate_at(SL_HERE, x, activation)
SL_API const char *sl_activation_name(enum sl_activation activation);

SL_API sl_tensor *sl_neg_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_abs_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_exp_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_log_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_sqrt_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_square_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_reciprocal_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_relu_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_sigmoid_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_tanh_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_gelu_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_softplus_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_sin_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_cos_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_tan_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_asin_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_acos_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_atan_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_sinh_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_cosh_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_asinh_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_acosh_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_atanh_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_erf_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_erfc_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_log1p_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_expm1_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_rsqrt_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_silu_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_hard_swish_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_gelu_tanh_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_sign_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_floor_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_ceil_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_round_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_isnan_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_isfinite_at(const char *at, sl_tensor *x);
SL_API sl_tensor *sl_logical_not_at(const char *at, sl_tensor *x);
#define sl_neg(x) sl_neg_at(SL_HERE, x)
#define sl_abs(x) sl_abs_at(SL_HERE, x)
#define sl_exp(x) sl_exp_at(SL_HERE, x)
#define sl_log(x) sl_log_at(SL_HERE, x)
#define sl_sqrt(x) sl_sqrt_at(SL_HERE, x)
#define sl_square(x) sl_square_at(SL_HERE, x)
#define sl_reciprocal(x) sl_reciprocal_at(SL_HERE, x)
#define sl_relu(x) sl_relu_at(SL_HERE, x)
#define sl_sigmoid(x) sl_sigmoid_at(SL_HERE, x)
#define sl_tanh(x) sl_tanh_at(SL_HERE, x)
#define sl_gelu(x) sl_gelu_at(SL_HERE, x)
#define sl_softplus(x) sl_softplus_at(SL_HERE, x)
#define sl_sin(x) sl_sin_at(SL_HERE, x)
#define sl_cos(x) sl_cos_at(SL_HERE, x)
#define sl_tan(x) sl_tan_at(SL_HERE, x)
#define sl_asin(x) sl_asin_at(SL_HERE, x)
#define sl_acos(x) sl_acos_at(SL_HERE, x)
#define sl_atan(x) sl_atan_at(SL_HERE, x)
#define sl_sinh(x) sl_sinh_at(SL_HERE, x)
#define sl_cosh(x) sl_cosh_at(SL_HERE, x)
#define sl_asinh(x) sl_asinh_at(SL_HERE, x)
#define sl_acosh(x) sl_acosh_at(SL_HERE, x)
#define sl_atanh(x) sl_atanh_at(SL_HERE, x)
#define sl_erf(x) sl_erf_at(SL_HERE, x)
#define sl_erfc(x) sl_erfc_at(SL_HERE, x)
#define sl_log1p(x) sl_log1p_at(SL_HERE, x)
#define sl_expm1(x) sl_expm1_at(SL_HERE, x)
#define sl_rsqrt(x) sl_rsqrt_at(SL_HERE, x)
#define sl_silu(x) sl_silu_at(SL_HERE, x)
#define sl_hard_swish(x) sl_hard_swish_at(SL_HERE, x)
#define sl_gelu_tanh(x) sl_gelu_tanh_at(SL_HERE, x)
#define sl_sign(x) sl_sign_at(SL_HERE, x)
#define sl_floor(x) sl_floor_at(SL_HERE, x)
#define sl_ceil(x) sl_ceil_at(SL_HERE, x)
#define sl_round(x) sl_round_at(SL_HERE, x)
#define sl_isnan(x, ...) SL_COMPARED_(sl_isnan_at(SL_HERE, x), __VA_ARGS__)
#define sl_isfinite(x, ...) SL_COMPARED_(sl_isfinite_at(SL_HERE, x), __VA_ARGS__)
#define sl_logical_not(x, ...) SL_COMPARED_(sl_logical_not_at(SL_HERE, x), __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
