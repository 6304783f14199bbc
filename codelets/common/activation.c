/* Applies activations in place to another kernel's results. */
#include "activation.h"
#include "op.h"
#include "starling/options.h"

/* Most unary functions are no activations.  clang does not take the attribute "unused" beside target_clones. */
#pragma GCC diagnostic ignored "-Wunused-function"
#define UNARY(name, dtypes, saved, value, slope, doc)                                                                  \
	SLP_CLONES static void name##_over(float *y, int64_t n)                                                        \
	{                                                                                                              \
		typedef float T;                                                                                       \
		for (int64_t i = 0; i < n; i++) {                                                                      \
			const T x = y[i];                                                                              \
			y[i] = value;                                                                                  \
		}                                                                                                      \
	}
#include "elementwise/activations.def"
#undef UNARY

void slp_activate_range(float *y, int64_t n, int activation)
{
	switch (activation) {
/* clang-format off */
#define X(symbol, name)                                                                                                \
	case symbol:                                                                                                   \
		name##_over(y, n);                                                                                     \
		break;
		/* clang-format on */
		SLP_ACTIVATION_LIST(X)
#undef X
	default: break;
	}
}

struct job {
	float *y;
	int activation;
};

static void activate_part(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	slp_activate_range(j->y + begin, end - begin, j->activation);
}

void slp_activate_all(float *y, int64_t n, int activation)
{
	struct job j = {y, activation};
	if (activation != SL_IDENTITY) slp_parallel_for(n, SLP_GRAIN, activate_part, &j);
}
