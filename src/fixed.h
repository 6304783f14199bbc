/* SL_FIXED_SUMS: bits must not depend on the number of threads of a team, even if a library's do. */
#ifndef SLP_FIXED_H
#define SLP_FIXED_H

#include <stdbool.h>

/* SL_FIXED_SUMS=1; read once. */
bool slp_fixed_sums(void);

#endif
