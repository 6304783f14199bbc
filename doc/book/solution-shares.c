/* Devices of unequal speed: shares of a batch by given weights, and by measured speed. */
#include "book.h"

enum { ROWS = 128, N = 2 };

static void show(const char *what, sl_tensor **parts)
{
	printf("%-28s", what);
	for (int i = 0; i < N; i++) printf(" %3lld rows", (long long)sl_tensor_shape(parts[i]).dim[0]);
	puts("");
}

int main(void)
{
	if (sl_init(&(struct sl_config){.teams = N}) != SL_OK) return finish();
	sl_device devices[N] = {sl_cpu(0), sl_cpu(1)};
	sl_balance *balance = sl_balance_new(devices, N);
	SL_SCOPE {
		sl_tensor *batch = sl_ones(SL_SHAPE(ROWS, 512)), *parts[N];
		sl_split_and_load(batch, devices, N, parts);
		show("equal", parts);
		sl_split_and_load(batch, devices, N, parts, .weights = ((double[]){3, 1}));
		show("three to one", parts);

		sl_tensor *w = sl_ones(SL_SHAPE(512, 512)); /* work whose time is measured */
		for (int i = 0; i < 200; i++)
			SL_SCOPE
				for (int d = 0; d < N; d++)
					sl_dot(sl_place(parts[d], devices[d]), sl_place(w, devices[d]));
		sl_balance_update(balance);
		sl_split_and_load(batch, devices, N, parts, .balance = balance);
		show("by measured speed", parts);
	}
	sl_balance_free(balance);
	return finish();
}
