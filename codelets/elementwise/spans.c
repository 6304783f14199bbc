/* Loops over spans that many files share: compiled once, for each variant of the CPU. */
#include "spans.h"

SLP_CLONES static void beside_number(const int64_t *x, double s, double *to, int64_t n)
{
	bool inside = s >= -0x1p63 && s < 0x1p63;
	int64_t whole = inside ? (int64_t)s : 0;
	double rest = (double)whole - s, outside = slp_whole_beside(0, s);
	for (int64_t i = 0; i < n; i++) to[i] = x[i] < whole ? -1 : x[i] > whole ? 1 : rest;
	for (int64_t i = 0; !inside && i < n; i++) to[i] = outside;
}

void slp_span_beside(const int64_t *x, double s, double *to, int64_t n)
{
	beside_number(x, s, to, n);
}
