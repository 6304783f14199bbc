/* Starts the engine for a fuzz target, and makes files of inputs; and its main where there is no libFuzzer: runs the
 * target on each file that is named, cut off at every length, too. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <starling.h>

#include "fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	if (sl_init(NULL) == SL_OK) return 0;
	fprintf(stderr, "%s\n", sl_error_message());
	exit(1);
}

const char *fuzz_file(const unsigned char *data, size_t size)
{
	static char path[64];
	static int file = -1;
	if (file < 0) file = memfd_create("fuzz", MFD_CLOEXEC);
	snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	if (file < 0 || ftruncate(file, (off_t)size) || pwrite(file, data, size, 0) != (ssize_t)size) abort();
	return path;
}

static bool replay(const char *path)
{
	enum { MOST = 1 << 16 };
	static unsigned char data[MOST];
	FILE *f = fopen(path, "rb");
	if (!f) {
		perror(path);
		return false;
	}
	size_t size = fread(data, 1, sizeof data, f);
	fclose(f);
	for (size_t n = 0; n <= size; n++) LLVMFuzzerTestOneInput(data, n);
	printf("%s: %zu inputs\n", path, size + 1);
	return true;
}

/* Weak: libFuzzer has one of its own. */
__attribute__((weak)) int main(int argc, char **argv)
{
	int failures = 0;
	LLVMFuzzerInitialize(&argc, &argv);
	for (int i = 1; i < argc; i++) failures += !replay(argv[i]);
	sl_shutdown();
	return failures > 0 || argc < 2;
}
