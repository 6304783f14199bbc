/* exported FOLDER: exports networks into a folder, each in every format, with an input and what it says to that; for
 * tools/mxnet-check and tools/onnx-check. */
#include <limits.h>
#include <stdio.h>

#include "config.h"
#include "io_networks.h"

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
	sl_error_clear();
	sl_shutdown();
	return failures > 0;
}
