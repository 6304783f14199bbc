/* Reads files that are small and ask for much (tests/fuzz/bombs.py), within sl_config.untrusted: bombs FILE...
 *
 * A process of its own reads each by what its name ends in; what is a network runs, call by call and compiled.  It must
 * end with an error, within 2 s, of the clock or of its processor time, and with 500 MB of memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <starling.h>

#include "data/image/image.h"
#include "io/params.h"

enum { MEMORY = 256 << 20, MOST_KB = 500000, HANGS = 600, MOST_PROCESSOR_SECONDS = 30 };
static const double most_seconds = 2;

static bool ends(const char *text, const char *ending)
{
	size_t n = strlen(text), m = strlen(ending);
	return n > m && !strcmp(text + n - m, ending);
}

/* ---- what is read ------------------------------------------------------------------------------------------------ */

/* NAME@2x3.onnx takes an input of shape (2, 3). */
static sl_shape input_shape(const char *path)
{
	sl_shape shape = {.ndim = 0};
	const char *p = strrchr(path, '@');
	while (p && (*p == '@' || *p == 'x')) shape.dim[shape.ndim++] = strtol(p + 1, (char **)&p, 10);
	return p ? shape : SL_SHAPE(2, 3);
}

static void run(sl_block *net, const char *path)
{
	for (int compiled = 0; net && compiled < 2 && sl_error() == SL_OK; compiled++)
		SL_SCOPE {
			sl_tensor *x = sl_ones(input_shape(path));
			if (compiled) sl_hybridize(net);
			for (int i = 0; i < 2 && sl_error() == SL_OK; i++)
				sl_forward(net, x); /* a run has its own budget */
			enum sl_status s = sl_wait_all();
			if (s != SL_OK) sl_error_raise(s, sl_error_message());
		}
	sl_block_free(net);
}

static void read_arrays(const char *path)
{
	char **names;
	sl_tensor **tensors;
	int n = slp_arrays_load(SL_HERE, path, &names, &tensors);
	if (n >= 0) slp_arrays_free(names, tensors, n);
}

static void read_image(const char *path)
{
	struct slp_image image;
	if (slp_image_read(path, &image)) free(image.pixels);
}

static void read_file(const char *path)
{
	if (ends(path, ".onnx")) run(sl_import_onnx(path), path);
	else if (ends(path, ".json")) run(sl_import(path, SL_NAMES("data"), NULL), path);
	else if (ends(path, ".params") || ends(path, ".safetensors")) read_arrays(path);
	else if (ends(path, ".npy")) sl_release(sl_load_npy(path));
	else if (ends(path, ".png") || ends(path, ".jpg")) read_image(path);
	else if (ends(path, ".csv")) sl_dataset_free(sl_dataset_csv(path));
	else sl_dataset_free(sl_dataset_idx(path, path, 10));
}

/* ---- what it costs ----------------------------------------------------------------------------------------------- */

static double clock_of(clockid_t id)
{
	struct timespec t;
	clock_gettime(id, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Returns how many of these things are wrong: no error, too late. */
static int try_here(const char *path)
{
	struct sl_config config = {.untrusted = {.bytes = MEMORY, .seconds = 1.5, .operations = 3e10}};
	if (sl_init(&config) != SL_OK) return 3;
	double clock = clock_of(CLOCK_MONOTONIC), processors = clock_of(CLOCK_PROCESS_CPUTIME_ID);
	read_file(path);
	clock = clock_of(CLOCK_MONOTONIC) - clock;
	processors = clock_of(CLOCK_PROCESS_CPUTIME_ID) - processors;
	double seconds = clock < processors ? clock : processors;
	bool error = sl_error() != SL_OK, soon = seconds <= most_seconds;
	printf("%s%s%.2f s: %s\n", error ? "" : "NO ERROR, ", soon ? "" : "LATE, ", seconds, sl_error_message());
	sl_error_clear();
	fflush(stdout);
	_exit(!error + !soon);
}

static bool try(const char *path)
{
	const char *name = strrchr(path, '/');
	printf("%s: ", name ? name + 1 : path);
	fflush(stdout);
	pid_t child = fork();
	if (!child) {
		const struct rlimit processors = {MOST_PROCESSOR_SECONDS, MOST_PROCESSOR_SECONDS};
		setrlimit(RLIMIT_CPU, &processors);
		alarm(HANGS); /* other processes may take most of the machine */
		_exit(try_here(path));
	}
	int status = 0;
	struct rusage usage;
	if (child < 0 || wait4(child, &status, 0, &usage) != child) return false;
	bool small = usage.ru_maxrss <= MOST_KB, ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	if (WIFSIGNALED(status)) printf("SIGNAL %d\n", WTERMSIG(status));
	if (!small) printf("%s: %ld KB OF MEMORY\n", path, usage.ru_maxrss);
	return ok && small;
}

int main(int argc, char **argv)
{
	int failures = 0;
	for (int i = 1; i < argc; i++) failures += !try(argv[i]);
	printf("%d files, %d wrong\n", argc - 1, failures);
	return failures > 0 || argc < 2;
}
