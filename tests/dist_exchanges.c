/* What dist.c has several processes exchange when they do not train: sums, batches, masks, figures. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <starling.h>
#include <starling/dist.h>

#include "dist.h"

/* 22 images, in batches of `rows` for each process. */
bool dist_show_batches(const char *data, int rows)
{
	int32_t labels[64];
	sl_dataset *images = sl_dataset_mnist(data, SL_TEST);
	sl_loader *loader = sl_loader_new(images, .batch_size = rows, .shuffle = true, .seed = 3, .limit = 22);
	bool more = sl_dist_share(loader) == SL_OK;
	while (more)
		SL_SCOPE {
			struct sl_batch b;
			if (!(more = sl_loader_next(loader, &b))) break;
			int64_t n = sl_tensor_shape(b.y).dim[0];
			sl_read(b.y, labels, (size_t)n * sizeof *labels);
			printf("batch %d", (int)b.index);
			for (int64_t i = 0; i < n; i++) printf(" %d", (int)labels[i]);
			printf("\n");
		}
	sl_loader_free(loader);
	sl_dataset_free(images);
	return sl_error() == SL_OK;
}

/* What all have added: here, rank + 1 times the rank. */
void dist_show_mean(void)
{
	sl_metric *mean = sl_mean_new();
	SL_SCOPE
		sl_metric_add(mean, sl_full(SL_SHAPE(sl_dist_rank() + 1), sl_dist_rank()), NULL);
	printf("mean %.4f\n", sl_metric_get(mean));
	sl_metric_free(mean);
}

/* The way that was decided upon, and what it was decided by: the sums of all ranks' times, to the last bit. */
bool dist_show_trial(void)
{
	sl_autotune *trial = sl_autotune_new(2);
	while (!sl_autotune_decided(trial)) sl_autotune_next(trial);
	printf("way %d of %.17g %.17g\n", sl_autotune_next(trial), sl_autotune_seconds(trial, 0),
	       sl_autotune_seconds(trial, 1));
	sl_autotune_free(trial);
	return sl_error() == SL_OK;
}

/* sl_wait_all waits for a sum, which is not a task. */
static bool waits_for_sums(void)
{
	uint64_t before = sl_dist_info().exchanges;
	bool ok = true;
	SL_SCOPE
		ok = sl_dist_sum(sl_ones(SL_SHAPE(3))) == SL_OK && sl_wait_all() == SL_OK;
	return ok && sl_dist_info().exchanges == before + (sl_dist_size() > 1);
}

/* More than a double holds: 2^53 + 1 on rank 0, 2 on others. */
static bool sums_are_exact(void)
{
	int64_t first = (INT64_C(1) << 53) + 1, sum = sl_dist_rank() ? 2 : first;
	bool ok = true;
	SL_SCOPE {
		sl_tensor *t = sl_from(&sum, SL_SHAPE(1), .dtype = SL_INT64);
		ok = sl_dist_sum(t) == SL_OK && sl_read(t, &sum, sizeof sum) == SL_OK;
	}
	return ok && sum == first + 2 * (sl_dist_size() - 1);
}

/* Whole numbers, whose sum over the ranks is the same in any order. */
bool dist_show_sums(sl_device device)
{
	enum { N = 100003 }; /* several messages each */
	static double sums[N];
	static const enum sl_dtype types[] = {SL_FLOAT32, SL_FLOAT64, SL_INT32, SL_INT64, SL_UINT8, SL_BFLOAT16};
	int size = sl_dist_size(), wrong = 0, all = size * (size + 1) / 2;
	for (size_t k = 0; k < sizeof types / sizeof *types; k++)
		SL_SCOPE {
			sl_tensor *t = sl_arange(0, N, 1, .dtype = SL_FLOAT64, .device = device);
			t = sl_sub(t, sl_mul_scalar(sl_floor(sl_mul_scalar(t, 1 / 7.0)), 7));
			t = sl_cast(sl_mul_scalar(t, sl_dist_rank() + 1), types[k]);
			if (sl_dist_sum(t) != SL_OK || sl_read(sl_cast(t, SL_FLOAT64), sums, sizeof sums) != SL_OK)
				return false;
			for (int i = 0; i < N; i++) wrong += sums[i] != all * (i % 7);
		}
	wrong += !waits_for_sums() + !sums_are_exact();
	printf("%d wrong sums\n", wrong);
	return true;
}

/* Tensors of as many elements, but not of one shape. */
bool dist_sum_shapes(void)
{
	bool ok = true;
	SL_SCOPE {
		sl_tensor *t = sl_zeros(SL_SHAPE(sl_dist_rank() ? 2 : 3, sl_dist_rank() ? 3 : 2));
		ok = sl_dist_sum(t) == SL_OK && sl_wait(t) == SL_OK;
	}
	return ok;
}

static sl_tensor *drop(sl_tensor *x)
{
	return sl_dropout(x, 0.5);
}

static void print_mask(const char *what, sl_tensor *y)
{
	float mask[64] = {0};
	sl_read(y, mask, sizeof mask);
	printf("%s ", what);
	for (int i = 0; i < 64; i++) printf("%d", mask[i] != 0);
	printf("\n");
}

/* Of dropout, call by call and compiled, which each rank has of its own, and of numbers that are the same for all. */
bool dist_show_masks(void)
{
	sl_block *compiled = sl_lambda("drop", drop);
	sl_hybridize(compiled);
	SL_SCOPE {
		sl_tensor *ones = sl_ones(SL_SHAPE(64)), *y[2];
		SL_RECORD {
			y[0] = sl_dropout(ones, 0.5);
			y[1] = sl_forward(compiled, ones);
		}
		print_mask("eager", y[0]);
		print_mask("compiled", y[1]);
		print_mask("uniform", sl_floor(sl_uniform(SL_SHAPE(64), 0, 2)));
	}
	sl_block_free(compiled);
	return sl_error() == SL_OK;
}

bool dist_time_sum(int units)
{
	SL_SCOPE {
		sl_tensor *t = sl_zeros(SL_SHAPE(units));
		sl_wait_all();
		double start = sl_time();
		if (sl_dist_sum(t) != SL_OK || sl_wait(t) != SL_OK) return false;
		printf("lasted %.9f\n", sl_time() - start);
	}
	return true;
}
