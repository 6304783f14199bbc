/* The tables of all cases, by family. */
#include "cases.h"

#define TABLES(X)                                                                                                      \
	X(attention)                                                                                                   \
	X(binary)                                                                                                      \
	X(blocked)                                                                                                     \
	X(conv2d)                                                                                                      \
	X(convert_all)                                                                                                 \
	X(fill)                                                                                                        \
	X(fused)                                                                                                       \
	X(layout)                                                                                                      \
	X(loss)                                                                                                        \
	X(norm)                                                                                                        \
	X(order)                                                                                                       \
	X(optim)                                                                                                       \
	X(pool2d)                                                                                                      \
	X(products)                                                                                                    \
	X(quant)                                                                                                       \
	X(random)                                                                                                      \
	X(recurrent)                                                                                                   \
	X(reduce)                                                                                                      \
	X(relayout)                                                                                                    \
	X(unary)

#define X(family) extern const struct slp_case slp_cases_##family[];
TABLES(X)
#undef X

const struct slp_case *const slp_case_tables[] = {
#define X(family) slp_cases_##family,
        TABLES(X)
#undef X
                NULL,
};
