/* to_onnx PREFIX FILE SIZE: writes a network that MXNet exported, for images of three channels, SIZE by SIZE, as ONNX;
 * for dev/zoo-check. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include <starling.h>
#include <starling/io.h>

static enum sl_status convert(const char *prefix, const char *file, int64_t size)
{
	char symbol[PATH_MAX], params[PATH_MAX];
	snprintf(symbol, sizeof symbol, "%s-symbol.json", prefix);
	snprintf(params, sizeof params, "%s-0000.params", prefix);
	enum sl_status s = SL_OK;
	SL_SCOPE {
		sl_block *net = sl_import(symbol, SL_NAMES("data"), params);
		s = net ? sl_export_onnx(net, file, SL_SHAPES(SL_SHAPE(1, 3, size, size))) : sl_error();
		sl_block_free(net);
	}
	return s;
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: to_onnx PREFIX FILE SIZE\n");
		return 2;
	}
	enum sl_status s = convert(argv[1], argv[2], atoll(argv[3]));
	if (s != SL_OK) fprintf(stderr, "%s\n", sl_error_message());
	sl_error_clear();
	sl_shutdown();
	return s != SL_OK;
}
