/* Sums over four devices: one collects from all, or pairs add first and half of the sums run at the same time. */
#include "book.h"

enum { N = 4, SIZE = 1 << 20, TIMES = 4 };

static void star(sl_tensor **t)
{
	for (int i = 1; i < N; i++) sl_add_(t[0], sl_copy_to(t[i], sl_tensor_device(t[0])));
	for (int i = 1; i < N; i++) sl_copy_(t[i], sl_copy_to(t[0], sl_tensor_device(t[i])));
}

/* Distance 1: 0 and 1, 2 and 3; distance 2: 0 and 2; and back. */
static void tree(sl_tensor **t)
{
	for (int d = 1; d < N; d *= 2)
		for (int i = 0; i + d < N; i += 2 * d) sl_add_(t[i], sl_copy_to(t[i + d], sl_tensor_device(t[i])));
	for (int d = N / 2; d > 0; d /= 2)
		for (int i = 0; i + d < N; i += 2 * d) sl_copy_(t[i + d], sl_copy_to(t[i], sl_tensor_device(t[i + d])));
}

static void measure(const char *name, void (*sum)(sl_tensor **))
{
	sl_tensor *t[N];
	double start = 0;
	for (int i = 0; i < N; i++) t[i] = sl_full(SL_SHAPE(SIZE), i, .device = sl_cpu(i));
	for (int round = -1; round < TIMES; round++) { /* the first warms up */
		if (round == 0) {
			sl_wait_all();
			start = sl_time();
		}
		for (int i = 0; i < N; i++) sl_fill_(t[i], i);
		sum(t);
	}
	sl_wait_all();
	double seconds = (sl_time() - start) / TIMES;
	printf("%s: %.4f s; the sums are", name, seconds);
	for (int i = 0; i < N; i++) printf(" %g", sl_item(sl_mean(t[i])));
	puts("");
}

int main(void)
{
	if (sl_init(&(struct sl_config){.teams = N}) != SL_OK) return finish();
	SL_SCOPE
		measure("star", star);
	SL_SCOPE
		measure("tree", tree);
	return finish();
}
