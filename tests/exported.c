/* exported FOLDER: exports networks into a folder, each in every format, with an input and what it says to that; for
 * dev/mxnet-check and dev/onnx-check. */
#include <limits.h>
#include <stdio.h>

#include "config.h"
#include "io_networks.h"
#include "starling.h"

static bool save(const char *prefix, const char *ending, sl_tensor *t)
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s-%s.npy", prefix, ending);
	return sl_save_npy(t, path) == SL_OK;
}

static bool export_onnx(const char *prefix, sl_block *net, const struct slp_network *n)
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s.onnx", prefix);
	return sl_export_onnx(net, path, SL_SHAPES(n->shape)) == SL_OK;
}

/* Of integers that no float32 tells apart, and truth values. */
static sl_tensor *whole(sl_tensor *x)
{
	sl_tensor *y = sl_sub_scalar(sl_mul_scalar(sl_relu(x), 3), 0x1p45);
	y = sl_add(y, sl_cast(sl_argmax(sl_cast(x, SL_FLOAT64), 0), SL_INT64));
	y = sl_where(sl_lt_scalar(y, 0.5, .dtype = SL_BOOL), sl_neg(sl_round(y)), y);
	y = sl_maximum(sl_div_scalar(y, 7), sl_sign(sl_cumsum(x, 0)));
	sl_tensor *low = sl_logical_not(sl_le_scalar(y, 2.5, .dtype = SL_BOOL));
	y = sl_add(y, sl_cast(sl_logical_xor(sl_gt(x, y, .dtype = SL_BOOL), low), SL_INT64));
	return sl_sub(y, sl_sum(sl_gather(y, sl_argsort(x, 0, true)), SL_AXES(0)));
}

static bool export_whole(const char *folder)
{
	enum { N = 4 };
	const int64_t values[N] = {(INT64_C(1) << 41) + 1, -5, (INT64_C(1) << 50) - 3, 7};
	char prefix[PATH_MAX / 2];
	bool ok = true;
	snprintf(prefix, sizeof prefix, "%s/whole", folder);
#ifdef HAVE_ONNX
	SL_SCOPE {
		sl_block *net = sl_lambda("whole", whole);
		sl_tensor *x = sl_from(values, SL_SHAPE(N), .dtype = SL_INT64);
		char path[PATH_MAX];
		snprintf(path, sizeof path, "%s.onnx", prefix);
		ok = sl_export_onnx(net, path, SL_SHAPES(SL_SHAPE(N)), .dtype = SL_INT64) == SL_OK &&
		     save(prefix, "x", x) && save(prefix, "y", sl_forward(net, x));
		sl_block_free(net);
	}
	printf("whole: %s\n", ok ? "exported" : sl_error_message());
#else
	(void)whole, (void)values;
#endif
	return ok;
}

static bool export(const char *folder, const struct slp_network *n)
{
	char prefix[PATH_MAX / 2];
	bool ok = false;
	snprintf(prefix, sizeof prefix, "%s/%s", folder, n->name);
	SL_SCOPE {
		sl_block *net = n->make();
		sl_tensor *x = sl_uniform(n->shape, 0, 10);
		ok = sl_initialize(net, .init = sl_xavier_init()) == SL_OK;
		SL_RECORD
			sl_forward(net, x); /* running statistics move */
		ok = ok && (n->onnx_alone || sl_export(net, prefix, SL_SHAPES(n->shape)) == SL_OK);
#ifdef HAVE_ONNX
		ok = ok && export_onnx(prefix, net, n);
#else
		(void)export_onnx;
#endif
		ok = ok && save(prefix, "x", x) && save(prefix, "y", sl_forward(net, x));
		sl_block_free(net);
	}
	printf("%s: %s\n", n->name, ok ? "exported" : sl_error_message());
	return ok;
}

int main(int argc, char **argv)
{
	int failures = 0;
	if (argc != 2) {
		fprintf(stderr, "usage: exported FOLDER\n");
		return 2;
	}
	if (sl_init(NULL) != SL_OK) return 1;
	for (const struct slp_network *n = slp_networks; n->name; n++) failures += !export(argv[1], n);
	failures += !export_whole(argv[1]);
	sl_error_clear();
	sl_shutdown();
	return failures > 0;
}
