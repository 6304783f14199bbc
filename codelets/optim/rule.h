/* How a rule is written once for CPUs and GPUs.  optimizers.c reads the files of rules/ as C, with numbers T in float;
 * optim.cu as C++, with templates by T.
 *
 *	SLP_RULE_STRUCT(NAME) { T …; };         coefficients that all elements share
 *	SLP_RULE_COEFFICIENTS(NAME) { … }       makes them, *r, of the attributes, struct slp_NAME_attrs *a
 *	SLP_RULE_ELEMENT(NAME, s0, s1) { … }    a step of one element: T g, the gradient, is clipped; T *w, the parameter;
 *	                                        T *s0, *s1, its states, NULL where the operation has none
 *	SLP_RULE_CUDA(NAME, check)              slp_cuda_NAME; check: slp_optim_check_number or _nothing
 *	#ifndef __cplusplus
 *	static void NAME_one(const void *attrs, double t[]) { … }
 *	                                        the same step by the formula: the reference
 *	SLP_RULE_STEP(NAME, NAME, states)       the loop of CPUs
 *	SLP_RULE_KERNELS(NAME, NAME, check)     NAME_ref, NAME_cpu
 *	…                                       attributes, infer, the operation, the descriptor
 *	#endif
 *
 * A layerwise rule (layerwise.c) steps by  w -= rate ratio direction, where ratio depends on all elements of a parameter.
 * SLP_RULE_ELEMENT and NAME_one of it update the states alone, the coefficients have a rate, and
 *	SLP_RULE_DIRECTION(NAME, s0, s1) { … }  returns the direction of one element: T w, T s0, T s1
 *	SLP_RULE_LAYERWISE_CUDA(NAME, check), SLP_RULE_LAYERWISE_KERNELS(NAME, states, check)
 *                                              instead of SLP_RULE_CUDA and SLP_RULE_KERNELS
 *	static double NAME_direction_one(const void *attrs, const double t[]) { … }
 *                                              the direction by the formula */
#ifndef SLP_OPTIM_RULE_H
#define SLP_OPTIM_RULE_H

#include "optim/optim.h"

#define SLP_UNUSED_ __attribute__((unused))

#ifdef __cplusplus

#define SLP_RULE_STRUCT(name) template <class T> struct name##_rule
#define SLP_RULE_COEFFICIENTS(name)                                                                                    \
	template <class T>                                                                                             \
	static inline __host__ void name##_coefficients(name##_rule<T> *r, const struct slp_##name##_attrs *a)
#define SLP_RULE_ELEMENT(name, s0, s1)                                                                                 \
	template <class T> static inline __device__ void name##_element(const name##_rule<T> *r, T g, T *w,            \
	                                                                SLP_UNUSED_ T *s0, SLP_UNUSED_ T *s1)
#define SLP_RULE_DIRECTION(name, s0, s1)                                                                               \
	template <class T>                                                                                             \
	static inline __device__ T name##_direction(const name##_rule<T> *r, T w, SLP_UNUSED_ T s0, SLP_UNUSED_ T s1)
#define slp_rule_sqrt(x) sqrt(x)

/* update() of optim.cu calls it for each element. */
#define SLP_RULE_FUNCTOR_(name, ...)                                                                                   \
	template <class T> struct name##_step {                                                                        \
		name##_rule<T> rule;                                                                                   \
		static __host__ name##_step of(const slp_kernel *k)                                                    \
		{                                                                                                      \
			name##_step s;                                                                                 \
			name##_coefficients<T>(&s.rule, (const slp_##name##_attrs *)k->attrs);                         \
			return s;                                                                                      \
		}                                                                                                      \
		__device__ void operator()(T g, T *w, T *s0, T *s1) const                                              \
		{                                                                                                      \
			name##_element<T>(&rule, g, w, s0, s1);                                                        \
		}                                                                                                      \
		__VA_ARGS__                                                                                            \
	};
#define SLP_RULE_LAUNCH_(name, check, dispatch)                                                                        \
	extern "C" sl_status slp_cuda_##name(const slp_kernel *k)                                                      \
	{                                                                                                              \
		sl_status status = check(k);                                                                           \
		return status ? status : dispatch<name##_step>(k);                                                     \
	}
#define SLP_RULE_CUDA(name, check) SLP_RULE_FUNCTOR_(name, ) SLP_RULE_LAUNCH_(name, check, dispatch)
#define SLP_RULE_LAYERWISE_CUDA(name, check)                                                                           \
	SLP_RULE_FUNCTOR_(                                                                                             \
	        name, __device__ T direction(T w, T s0, T s1) const { return name##_direction<T>(&rule, w, s0, s1); }) \
	SLP_RULE_LAUNCH_(name, check, dispatch_layerwise)

#else

#include "common/vmath.h"
#include "loss/softmax_rows.h"

typedef float T;
#define SLP_RULE_STRUCT(name) struct name##_rule
#define SLP_RULE_COEFFICIENTS(name)                                                                                    \
	static void name##_coefficients(struct name##_rule *r, const struct slp_##name##_attrs *a)
#define SLP_RULE_ELEMENT(name, s0, s1)                                                                                 \
	SLP_VFN void name##_element(const struct name##_rule *r, T g, T *w, SLP_UNUSED_ T *s0, SLP_UNUSED_ T *s1)
#define SLP_RULE_DIRECTION(name, s0, s1)                                                                               \
	SLP_VFN T name##_direction(const struct name##_rule *r, T w, SLP_UNUSED_ T s0, SLP_UNUSED_ T s1)
#define SLP_RULE_CUDA(name, check)
#define SLP_RULE_LAYERWISE_CUDA(name, check)
#define slp_rule_sqrt(x) sqrtf(x)

#define SLP_RULE_STEP(name, rule_name, states)                                                                         \
	static SLP_CLONES void name##_step(const void *rule, const struct slp_optim_clip *clip, float *const t[],      \
	                                   int64_t n)                                                                  \
	{                                                                                                              \
		const struct rule_name##_rule r = *(const struct rule_name##_rule *)rule;                              \
		const struct slp_optim_clip c = *clip;                                                                 \
		float *w = t[0], *s0 = (states) > 0 ? t[2] : NULL, *s1 = (states) > 1 ? t[3] : NULL;                   \
		const float *g = t[1];                                                                                 \
		SLP_INDEPENDENT                                                                                        \
		for (int64_t i = 0; i < n; i++) {                                                                      \
			float value = w[i], first = (states) > 0 ? s0[i] : 0, second = (states) > 1 ? s1[i] : 0;       \
			rule_name##_element(&r, slp_optim_clipped(&c, g[i]), &value, (states) > 0 ? &first : NULL,     \
			                    (states) > 1 ? &second : NULL);                                            \
			w[i] = value;                                                                                  \
			if ((states) > 0) s0[i] = first;                                                               \
			if ((states) > 1) s1[i] = second;                                                              \
		}                                                                                                      \
	}

#define SLP_RULE_KERNELS(name, rule_name, check)                                                                       \
	static enum sl_status name##_ref(const struct slp_kernel *k)                                                   \
	{                                                                                                              \
		enum sl_status status = check(k);                                                                      \
		return status ? status : slp_optim_ref(k, name##_one);                                                 \
	}                                                                                                              \
	static enum sl_status name##_cpu(const struct slp_kernel *k)                                                   \
	{                                                                                                              \
		enum sl_status status = check(k);                                                                      \
		struct rule_name##_rule rule;                                                                          \
		rule_name##_coefficients(&rule, k->attrs);                                                             \
		return status ? status : slp_optim_cpu(k, name##_step, &rule);                                         \
	}

#define SLP_RULE_LAYERWISE_KERNELS(name, states, check)                                                                \
	SLP_RULE_STEP(name, name, states)                                                                              \
	static SLP_CLONES void name##_norms(const void *rule, float *const t[], int64_t n, double sum[2])              \
	{                                                                                                              \
		const struct name##_rule r = *(const struct name##_rule *)rule;                                        \
		const float *w = t[0], *s0 = (states) > 0 ? t[2] : w, *s1 = (states) > 1 ? t[3] : w;                   \
		SLP_ROW_SUM(sum[0], n, (double)w[i] * w[i]);                                                           \
		SLP_ROW_SUM(sum[1], n, slp_optim_square(name##_direction(&r, w[i], s0[i], s1[i])));                    \
	}                                                                                                              \
	static SLP_CLONES void name##_move(const void *rule, float ratio, float *const t[], int64_t n)                 \
	{                                                                                                              \
		const struct name##_rule r = *(const struct name##_rule *)rule;                                        \
		float *w = t[0], rate = r.rate * ratio;                                                                \
		const float *s0 = (states) > 0 ? t[2] : w, *s1 = (states) > 1 ? t[3] : w;                              \
		SLP_INDEPENDENT                                                                                        \
		for (int64_t i = 0; i < n; i++) w[i] -= rate * name##_direction(&r, w[i], s0[i], s1[i]);               \
	}                                                                                                              \
	static enum sl_status name##_ref(const struct slp_kernel *k)                                                   \
	{                                                                                                              \
		enum sl_status status = check(k);                                                                      \
		return status ? status : slp_optim_layerwise_ref(k, name##_one, name##_direction_one);                 \
	}                                                                                                              \
	static enum sl_status name##_cpu(const struct slp_kernel *k)                                                   \
	{                                                                                                              \
		static const struct slp_optim_layerwise how = {name##_step, name##_norms, name##_move};                \
		enum sl_status status = check(k);                                                                      \
		struct name##_rule rule;                                                                               \
		name##_coefficients(&rule, k->attrs);                                                                  \
		return status ? status : slp_optim_layerwise_cpu(k, &how, &rule);                                      \
	}

#endif

static inline enum sl_status slp_optim_check_nothing(const struct slp_kernel *k)
{
	(void)k;
	return SL_OK;
}

#endif
