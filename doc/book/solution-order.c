/* Writing into a tensor that others still read: the result is that of the serial program. */
#include "book.h"

int main(void)
{
	if (sl_init(&(struct sl_config){.teams = 2}) != SL_OK) return finish();
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(300, 300));
		sl_tensor *before = sl_dot(x, x); /* reads x; takes a while */
		sl_fill_(x, 2);                   /* writes x: has to wait for that */
		sl_tensor *after = sl_dot(x, x);  /* reads what was written */
		sl_tensor *other =
		        sl_dot(sl_ones(SL_SHAPE(300, 300)), sl_ones(SL_SHAPE(300, 300))); /* waits for nothing */
		printf("before %g, after %g, other %g\n", sl_item(sl_max(before)), sl_item(sl_max(after)),
		       sl_item(sl_max(other)));
	}
	return finish();
}
