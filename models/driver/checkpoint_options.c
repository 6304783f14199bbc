/* Options for checkpoints, of all drivers: the folder, the interval, and --resume. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint_options.h"
#include "health.h"

enum { KEY_CHECKPOINT = 0x400, KEY_EVERY, KEY_KEEP, KEY_RESUME, KEY_HEALTH };

/* ---- all drivers: where, how many, continuing -------------------------------------------------------------------- */

static const struct argp_option folder_options[] = {
        {"checkpoint", KEY_CHECKPOINT, "DIR", 0,
         "Write checkpoints to this folder during training, at its end, and after SIGINT, SIGTERM, SIGHUP, SIGPIPE or "
         "SIGXCPU",
         2},
        {"keep", KEY_KEEP, "N", 0, "Keep the newest N checkpoints (default: 3)", 2},
        {"resume", KEY_RESUME, "auto", OPTION_ARG_OPTIONAL,
         "Continue from the newest checkpoint in DIR, on any devices; with auto, start a new run if there is none", 2},
        {"health", KEY_HEALTH, "FILE", 0,
         "Write step, rate, loss, memory, last checkpoint and errors to FILE every ten seconds, in JSON; FILE.prom: as "
         "Prometheus reads it",
         20},
        {0},
};

static void check_folder(struct argp_state *state, const struct drv_checkpoint_options *o)
{
	if (o->resume && !o->folder) argp_error(state, "--resume: needs --checkpoint DIR");
	if (!o->folder && o->keep != DRV_KEEP) argp_error(state, "--keep: needs --checkpoint DIR");
}

static error_t parse_folder(int key, char *arg, struct argp_state *state)
{
	struct drv_checkpoint_options *o = state->input;
	switch (key) {
	case ARGP_KEY_INIT: *o = (struct drv_checkpoint_options){.every = 1, .keep = DRV_KEEP}; return 0;
	case KEY_CHECKPOINT: o->folder = arg; return 0;
	case KEY_KEEP: o->keep = (int)drv_int(state, "--keep", arg, 1, 1000000); return 0;
	case KEY_HEALTH: o->health = arg; return 0;
	case KEY_RESUME:
		if (arg && strcmp(arg, "auto")) argp_error(state, "--resume: \"%s\" must be auto", arg);
		o->resume = true;
		o->if_there = arg != NULL;
		return 0;
	case ARGP_KEY_ARG: /* --resume auto */
		if (!o->resume || o->if_there || strcmp(arg, "auto")) return ARGP_ERR_UNKNOWN;
		o->if_there = true;
		return 0;
	case ARGP_KEY_END: check_folder(state, o); return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

const struct argp drv_checkpoint_folder_argp = {.options = folder_options, .parser = parse_folder};

/* ---- training drivers: how often --------------------------------------------------------------------------------- */

static const struct argp_option options[] = {
        {"every", KEY_EVERY, "N[s|steps|epochs]", 0,
         "Interval of checkpoints in seconds, steps or epochs (default: 1 epoch)", 2},
        {0},
};

static bool parse_every(struct drv_checkpoint_options *o, const char *text)
{
	static const struct {
		const char *unit;
		int means;
	} units[] = {{"s", DRV_EVERY_SECONDS},    {"step", DRV_EVERY_STEPS},    {"steps", DRV_EVERY_STEPS},
	             {"epoch", DRV_EVERY_EPOCHS}, {"epochs", DRV_EVERY_EPOCHS}, {"", DRV_EVERY_EPOCHS}};
	char *end;
	errno = 0;
	long long n = strtoll(text, &end, 10);
	if (errno || *text < '0' || *text > '9' || n < 1) return false;
	end += *end == ' ';
	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		if (strcmp(end, units[i].unit)) continue;
		o->every = (double)n;
		o->unit = units[i].means;
		return true;
	}
	return false;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct drv_checkpoint_options *o = state->input;
	switch (key) {
	case ARGP_KEY_INIT: state->child_inputs[0] = o; return 0;
	case KEY_EVERY:
		if (!parse_every(o, arg))
			argp_error(state, "--every: \"%s\" must be like 30s, 100steps or 2epochs", arg);
		return 0;
	case ARGP_KEY_END:
		if (!o->folder && o->every != 1) argp_error(state, "--every: needs --checkpoint DIR");
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = {{&drv_checkpoint_folder_argp, 0, NULL, 0}, {0}};
const struct argp drv_checkpoint_argp = {.options = options, .parser = parse_option, .children = children};

/* ---- before a run ------------------------------------------------------------------------------------------------ */

static bool make_folder(const char *folder)
{
	struct stat s;
	if (mkdir(folder, 0777) == 0) return true;
	if (errno == EEXIST && stat(folder, &s) == 0) {
		if (S_ISDIR(s.st_mode)) return true;
		errno = ENOTDIR;
	}
	drv_error("--checkpoint: %s cannot be a folder: %s", folder, strerror(errno));
	return false;
}

/* Two runs at a time would mix their checkpoints; the lock lasts as long as the process. */
static bool take_folder(const char *folder)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* where that fails, runs cannot be distinguished */
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return true;
	close(fd);
	drv_error("--checkpoint: another run is writing checkpoints to %s", folder);
	return false;
}

/* Refuses to overwrite checkpoints that no option names. */
bool drv_checkpoint_ready(const struct drv_checkpoint_options *o)
{
	if (!drv_health_begin(o->health)) return false;
	if (!o->folder) return true;
	if (!make_folder(o->folder) || !take_folder(o->folder)) return false;
	int count = sl_checkpoint_count(o->folder);
	if (count && !o->resume)
		drv_error("%s has checkpoints of an earlier run: continue it with --resume, or name another folder",
		          o->folder);
	else if (!count && o->resume && !o->if_there)
		drv_error("--resume: %s has no checkpoints; --resume=auto would start a new run", o->folder);
	else return true;
	return false;
}

/* A checkpoint that was not written does not end the training: that is reported, and the next one may be.  Whether it
 * was. */
bool drv_checkpoint_written(enum sl_status s)
{
	drv_health_checkpoint(s == SL_OK);
	if (s == SL_OK) return true;
	drv_error("no checkpoint: %s", sl_error_message());
	sl_error_clear();
	return false;
}

/* Runs in different types are different runs. */
bool drv_checkpoint_is_of(const char *path, const json_t *note, const char *program, const struct drv_precision *here)
{
	const char *writer = json_string_value(json_object_get(note, "program"));
	const char *dtype = json_string_value(json_object_get(note, "dtype"));
	if (!writer || strcmp(writer, program)) {
		drv_error("--resume: %s is a checkpoint of %s, this is %s", path, writer ? writer : "another program",
		          program);
		return false;
	}
	if (!dtype) dtype = "fp32"; /* of an earlier version */
	if (!strcmp(dtype, drv_precision_name(here))) return true;
	drv_error("--resume: %s is a checkpoint in %s, this run is in %s: --dtype %s continues it", path, dtype,
	          drv_precision_name(here), dtype);
	return false;
}
