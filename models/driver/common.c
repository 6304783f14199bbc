/* The command line of every driver, start and stop of the engine, messages, signals. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common.h"
#include "health.h"

/* ---- the command line ------------------------------------------------------------------------------------------- */

enum { KEY_SEED = 0x100, KEY_JSON, KEY_STATS, KEY_SPILL, KEY_SPILL_MEMORY };

static const struct argp_option options[] = {
        {"device", 'd', "LIST", 0, "Devices: cpu:0, gpu:0-3, auto (default: gpu:0 if there is one, else cpu:0)", 10},
        {"seed", KEY_SEED, "N", 0, "Seed of all random numbers (default: 0)", 10},
        {"spill", KEY_SPILL, "FILE", 0,
         "Without GPUs: keep values that do not fit into main memory in this new file, or in this folder", 10},
        {"spill-memory", KEY_SPILL_MEMORY, "SIZE", 0,
         "With --spill: the most main memory for values (default: half of the free memory, more for one operation that "
         "needs it)",
         10},
        {"json", KEY_JSON, "FILE", 0, "Write the results as JSON; -: to standard output, and text to standard error",
         20},
        {"quiet", 'q', NULL, 0, "Print errors only", 20},
        {"stats", KEY_STATS, NULL, 0, "At the end, print statistics of the runtime on standard error", 20},
        {0},
};

/* Each device once: the same one twice is a slip of the finger. */
static void parse_devices(struct argp_state *state, struct drv_options *o, const char *text)
{
	o->ndevices = sl_device_parse(text, o->devices, DRV_MAX_DEVICES);
	if (o->ndevices == 0)
		argp_error(state, "--device: \"%s\" is not a list of devices such as cpu:0,cpu:1 or gpu:0-3 or auto",
		           text);
	if (o->ndevices > DRV_MAX_DEVICES) argp_error(state, "--device: at most %d devices", DRV_MAX_DEVICES);
	for (int i = 0; i < o->ndevices; i++)
		for (int j = 0; j < i; j++) {
			char name[SL_DEVICE_NAME_MAX];
			if (!sl_device_equal(o->devices[i], o->devices[j])) continue;
			argp_error(state, "--device: %s is named twice", sl_device_name(o->devices[i], name));
		}
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct drv_options *o = state->input;
	switch (key) {
	case 'd': parse_devices(state, o, arg); return 0;
	case KEY_SEED: o->seed = (uint64_t)drv_int(state, "--seed", arg, 0, INT64_MAX); return 0;
	case KEY_JSON: o->json = arg; return 0;
	case KEY_SPILL: o->spill = arg; return 0;
	case KEY_SPILL_MEMORY: o->spill_memory = drv_size(state, "--spill-memory", arg); return 0;
	case 'q': o->quiet = true; return 0;
	case KEY_STATS: o->stats = true; return 0;
	case ARGP_KEY_END:
		if (o->spill_memory && !o->spill) argp_error(state, "--spill-memory needs --spill");
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

const struct argp drv_argp = {.options = options, .parser = parse_option};

static void print_version(FILE *out, struct argp_state *state)
{
	fprintf(out, "%s (Starling) %s\n", state->name, sl_version());
}

/* Reads the command line into input.  Ends the program after --help and --version, and with DRV_USAGE after a
 * mistake. */
void drv_parse(const struct argp *argp, int argc, char **argv, void *input)
{
	argp_program_version_hook = print_version;
	argp_err_exit_status = DRV_USAGE;
	argp_parse(argp, argc, argv, 0, NULL, input);
}

/* Decimal digits: nothing before or after them, no sign of plus, no hexadecimal digits, no infinity. */
static bool is_plain(const char *text, const char *characters)
{
	return *text && strchr("-.0123456789", *text) && strspn(text, characters) == strlen(text);
}

int64_t drv_int(struct argp_state *state, const char *option, const char *text, int64_t low, int64_t high)
{
	char *end;
	errno = 0;
	long long v = strtoll(text, &end, 10);
	if (errno || !is_plain(text, "-0123456789") || end == text || *end || v < low || v > high) {
		if (high == INT64_MAX)
			argp_error(state, "%s: \"%s\" is not a whole number of at least %lld", option, text,
			           (long long)low);
		else
			argp_error(state, "%s: \"%s\" is not a whole number from %lld to %lld", option, text,
			           (long long)low, (long long)high);
	}
	return v;
}

size_t drv_size(struct argp_state *state, const char *option, const char *text)
{
	static const char units[] = "KMGT";
	char *end;
	errno = 0;
	unsigned long long n = strtoull(text, &end, 10);
	const char *unit = *end ? strchr(units, *end) : NULL;
	int shift = unit ? 10 * (int)(unit - units + 1) : 0;
	if (errno || *text < '0' || *text > '9' || (*end && (!unit || end[1])) || !n || n > SIZE_MAX >> shift)
		argp_error(state, "%s: \"%s\" is not a number of bytes such as 8G, 512M or 65536", option, text);
	return (size_t)n << shift;
}

/* StarPU would keep up to four pieces of 32 MiB for tensors made before the step is compiled. */
size_t drv_limit(struct argp_state *state, const char *text)
{
	size_t bytes = drv_size(state, "--memory", text);
	if (setenv("STARPU_SUBALLOCATOR", "0", 0)) argp_failure(state, DRV_ERROR, errno, "the environment");
	return bytes;
}

double drv_real(struct argp_state *state, const char *option, const char *text, double low, double high)
{
	char *end;
	errno = 0;
	double v = strtod(text, &end);
	if (errno || !is_plain(text, "-+.0123456789eE") || end == text || *end || !(v >= low && v <= high))
		argp_error(state, "%s: \"%s\" is not a number from %g to %g", option, text, low, high);
	return v;
}

sl_device drv_device(struct argp_state *state, const char *option, const char *text)
{
	sl_device device[2] = {{SL_DEVICE_DEFAULT, -1}};
	if (!strcmp(text, "cpu")) return sl_cpu(-1);
	if (sl_device_parse(text, device, 2) != 1 || device[0].kind == SL_DEVICE_AUTO)
		argp_error(state, "%s: \"%s\" must be one device: cpu, cpu:0, gpu:0", option, text);
	return device[0];
}

/* ---- a run ------------------------------------------------------------------------------------------------------ */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
	if (number != SIGPIPE || !interrupted) interrupted = number; /* Ctrl-C ends who reads the output, too */
}

static void take(int number, int flags)
{
	struct sigaction a = {.sa_handler = on_interrupt, .sa_flags = flags | SA_RESTART};
	sigemptyset(&a.sa_mask);
	sigaction(number, &a, NULL);
}

static bool is_ignored(int number)
{
	struct sigaction a;
	return sigaction(number, NULL, &a) || a.sa_handler == SIG_IGN;
}

/* A second signal ends the program at once, except those that repeat by themselves: SIGPIPE with every line that nobody
 * reads, SIGXCPU with every second beyond ulimit -t. */
static void catch_interrupts(void)
{
	take(SIGINT, (int)SA_RESETHAND);
	take(SIGTERM, (int)SA_RESETHAND);
	if (!is_ignored(SIGHUP)) take(SIGHUP, (int)SA_RESETHAND); /* nohup ignores it */
	if (!is_ignored(SIGPIPE)) take(SIGPIPE, 0);
	take(SIGXCPU, 0);
	signal(SIGXFSZ, SIG_IGN); /* a file that may not be longer is an error like a full disk */
}

/* Whether SIGINT, SIGTERM, SIGHUP, SIGPIPE or SIGXCPU came: loops end after the batch they are at. */
bool drv_interrupted(void)
{
	return interrupted;
}

/* The exit status in that case. */
int drv_interrupted_status(void)
{
	return DRV_INTERRUPTED + interrupted;
}

double drv_now(void)
{
	return sl_time();
}

/* Prints a message, as PROGRAM: MESSAGE. */
void drv_error(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fprintf(stderr, "%s: ", program_invocation_short_name);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	va_start(args, format);
	drv_health_error(format, args);
	va_end(args);
}

/* Waits for all work; reports an error and returns false if there was one. */
bool drv_sync(void)
{
	if (sl_wait_all() == SL_OK) return true;
	drv_error("%s", sl_error_message());
	return false;
}

/* The end of a driver's work, which went well or not: reports the error that is pending, and waits for the rest. */
bool drv_settle(bool ok)
{
	if (drv_failed()) drv_error("%s", sl_error_message());
	sl_error_clear();
	return ok && drv_sync();
}

/* Whether a call was wrong so far.  Does not wait: kernels that fail show at the next drv_sync. */
bool drv_failed(void)
{
	return sl_error() != SL_OK;
}

/* The CPU devices that the list asks for; 0, the engine's default, if it asks for no special one. */
static int teams(const struct drv_options *o)
{
	int highest = 0;
	for (int i = 0; i < o->ndevices; i++)
		if (o->devices[i].kind == SL_DEVICE_CPU && o->devices[i].index > highest) highest = o->devices[i].index;
	return highest ? highest + 1 : 0;
}

static void choose_device(struct drv_options *o)
{
	o->devices[0] = sl_device_count(SL_DEVICE_GPU) ? sl_gpu(0) : sl_cpu(0);
	o->ndevices = 1;
}

/* Starts the engine with the requested devices, each a separate team, and makes the first one the default.  Reports a
 * missing device, or a file of results that could not be written at the end, and returns false. */
bool drv_start(struct drv_options *o)
{
	if (o->json && strcmp(o->json, "-") != 0 && !drv_writable(o->json)) return false;
	catch_interrupts();
	struct sl_spill_opts spill = {.memory = (int64_t)o->spill_memory};
	enum sl_status s = o->spill ? sl_spill_at(SL_HERE, o->spill, spill) : SL_OK;
	if (s == SL_OK)
		s = sl_init(&(struct sl_config){
		        .teams = teams(o), .seed = o->seed, .tf32 = o->tf32, .untrusted = o->untrusted});
	if (s == SL_OK && o->ndevices == 0) choose_device(o);
	if (s == SL_OK && (o->stats || o->json)) s = sl_energy_start();
	for (int i = o->ndevices - 1; i >= 0 && s == SL_OK; i--) s = sl_device_default(o->devices[i]);
	if (s != SL_OK) drv_error("%s", sl_error_message());
	sl_error_clear();
	return s == SL_OK;
}

/* Stops the engine and returns the status to exit with: the given one, or DRV_ERROR if output was lost. */
int drv_stop(const struct drv_options *o, int status)
{
	if (!drv_health_end(status) && status == DRV_OK) status = DRV_ERROR;
	if (o->stats) sl_stats_print(stderr);
	sl_shutdown();
	bool lost = fflush(stdout) || ferror(stdout);
	if (lost && status == DRV_OK && interrupted == SIGPIPE)
		return drv_interrupted_status(); /* as without a handler */
	if (lost && status == DRV_OK) {
		drv_error("standard output: %s", strerror(errno));
		status = DRV_ERROR;
	}
	return status;
}

/* Where lines for people go. */
FILE *drv_out(const struct drv_options *o)
{
	return o->json && strcmp(o->json, "-") == 0 ? stderr : stdout;
}

/* Prints for people, flushed even into a pipe, unless they want quiet. */
void drv_print(const struct drv_options *o, const char *format, ...)
{
	if (o->quiet) return;
	drv_plot_withdraw();
	va_list args;
	va_start(args, format);
	vfprintf(drv_out(o), format, args);
	va_end(args);
	fflush(drv_out(o));
}

/* Whether a file can be written, found out before the work is done; says why not. */
bool drv_writable(const char *path)
{
	struct stat s;
	if (stat(path, &s) == 0) {
		if (S_ISDIR(s.st_mode)) errno = EISDIR;
		else if (access(path, W_OK) == 0) return true;
	} else {
		const char *slash = strrchr(path, '/');
		char *dir = !slash ? strdup(".") : slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
		bool ok = dir && access(dir, W_OK | X_OK) == 0;
		free(dir);
		if (ok) return true;
	}
	drv_error("cannot write %s: %s", path, strerror(errno));
	return false;
}

static bool lost(const char *path)
{
	drv_error("cannot write %s: %s", path, strerror(errno));
	sl_error_clear();
	return false;
}

/* Begins to write the file that will replace the one at path, see sl_file_begin; NULL after reporting an error. */
sl_file *drv_file_begin(const char *path)
{
	sl_file *f = sl_file_begin(path);
	if (!f) lost(path);
	return f;
}

/* Gives it its name; says why not and returns false. */
bool drv_file_end(sl_file *file, const char *path)
{
	return sl_file_commit(file) == SL_OK || lost(path);
}
