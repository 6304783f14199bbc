/* Command lines, start and stop, progress, JSON and plots, for all drivers. */
#ifndef MODELS_DRIVER_COMMON_H
#define MODELS_DRIVER_COMMON_H

#include <argp.h>
#include <jansson.h>

/* All but elementwise.h: few files call functions of it, and a new one recompiles those alone. */
#include <starling/arithmetic.h>
#include <starling/checkpoint.h>
#include <starling/data.h>
#include <starling/functions.h>
#include <starling/io.h>
#include <starling/nn.h>
#include <starling/primitives.h>
#include <starling/spill.h>

/* Exit statuses.  After SIGINT, SIGTERM, SIGHUP, SIGPIPE or SIGXCPU, the driver completes the current batch, writes
 * results, and exits with 128 plus the signal's number, as shells expect.  A second signal ends it at once. */
enum { DRV_OK = 0, DRV_ERROR = 1, DRV_USAGE = 2, DRV_INTERRUPTED = 128 };
#define DRV_INTERRUPTED_STATUS                                                                                         \
	"130 after SIGINT, 143 after SIGTERM, 129 after SIGHUP, 141 after SIGPIPE, 152 after SIGXCPU"

enum { DRV_MAX_DEVICES = 64 };

/* Options of every driver. */
struct drv_options {
	sl_device devices[DRV_MAX_DEVICES];
	int ndevices; /* 0: chosen by drv_start */
	uint64_t seed;
	enum sl_tf32 tf32;             /* sl_config */
	struct sl_untrusted untrusted; /* sl_config */
	const char *json, *spill;
	size_t spill_memory; /* bytes; 0: sl_spill chooses */
	bool quiet, stats;
};

/* The types that a network computes in. */
struct drv_precision {
	enum sl_dtype dtype; /* of products: SL_FLOAT32, or autocast to a half type */
	enum sl_tf32 tf32;   /* of float32 products on GPUs */
};

/* ---- the command line: common.c --------------------------------------------------------------------------------- */

/* The parser of the options above: the first child of a driver's argp, which gives it a struct drv_options at
 * ARGP_KEY_INIT. */
extern const struct argp drv_argp;

void drv_parse(const struct argp *argp, int argc, char **argv, void *input);

/* Numbers within bounds; anything else is a usage error, which does not return. */
int64_t drv_int(struct argp_state *state, const char *option, const char *text, int64_t low, int64_t high);
/* Bytes: "8G", "512M", "65536"; units are powers of 1024. */
size_t drv_size(struct argp_state *state, const char *option, const char *text);
/* Bytes of a limit of a GPU's memory, --memory. */
size_t drv_limit(struct argp_state *state, const char *text);
#define DRV_MEMORY_HELP                                                                                                \
	"Memory of the GPU that a step may use, such as 8G or 512M; copies to main memory are planned for it "         \
	"(default: what there is)"
double drv_real(struct argp_state *state, const char *option, const char *text, double low, double high);
/* One device, cpu or gpu:0. */
sl_device drv_device(struct argp_state *state, const char *option, const char *text);
#define DRV_STATE_ON_HELP                                                                                              \
	"Keep the optimiser's states on this device, and update parameters there: cpu, while the network is on a GPU " \
	"whose memory is short"

/* ---- a run: common.c -------------------------------------------------------------------------------------------- */

bool drv_start(struct drv_options *options);
int drv_stop(const struct drv_options *options, int status);
bool drv_interrupted(void);
int drv_interrupted_status(void);
double drv_now(void);

void drv_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool drv_sync(void);
bool drv_settle(bool ok);
bool drv_failed(void);

FILE *drv_out(const struct drv_options *options);
void drv_print(const struct drv_options *options, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool drv_writable(const char *path);
sl_file *drv_file_begin(const char *path);
bool drv_file_end(sl_file *file, const char *path);

/* ---- steps ahead: pace.c ----------------------------------------------------------------------------------------- */

enum { DRV_MOST_AHEAD = 32 };
struct drv_pace {
	sl_tensor *values[DRV_MOST_AHEAD]; /* of steps that may still be in flight */
	int64_t issued, computed;
	double last, mean; /* when the last one was found complete; mean seconds between recent ones */
};
void drv_pace(struct drv_pace *p, sl_tensor *value);
void drv_pace_end(struct drv_pace *p);

/* ---- types of products: precision.c ------------------------------------------------------------------------------- */

#define DRV_DTYPE_HELP                                                                                                 \
	"Type of products: fp32, tf32 (on GPUs), bf16 or fp16 (with loss scaling); "                                   \
	"parameters, sums and losses are float32 (default: fp32"
void drv_precision_parse(struct argp_state *state, const char *text, struct drv_precision *p);
const char *drv_precision_name(const struct drv_precision *p); /* "bf16" */
double drv_precision_rounding(const struct drv_precision *p);
struct sl_loss_scaling drv_loss_scaling(const struct drv_precision *p);
void drv_precision_print(const struct drv_options *options, const struct drv_precision *p);

/* ---- progress on a terminal: progress.c ------------------------------------------------------------------------- */

struct drv_progress {
	char label[32];
	int64_t total; /* images, or other units */
	double start, drawn;
	bool on, colour;
};

void drv_progress_start(struct drv_progress *p, const struct drv_options *options, const char *label, int64_t total);
bool drv_progress_due(const struct drv_progress *p);
void drv_progress_draw(struct drv_progress *p, int64_t done, double loss);
void drv_progress_end(struct drv_progress *p);

/* ---- results: report.c ------------------------------------------------------------------------------------------ */

const char *drv_commit(void);
void drv_json_stamp(json_t *object);
json_t *drv_json_new(const char *program, const struct drv_options *options);
json_t *drv_json_real(double value);
bool drv_json_put(const char *path, const json_t *value);
bool drv_json_write(const struct drv_options *options, json_t *results);
int drv_finish(const struct drv_options *options, json_t *results, bool ok);

/* ---- pictures: plot.c ------------------------------------------------------------------------------------------- */

/* Points (x[i], y[i]); points that are not finite are left out. */
struct drv_curve {
	const char *name;
	const double *x, *y;
	int points;
	int colour, dash; /* from 0 */
};

struct drv_panel {
	const char *title, *xlabel;
	double first, last; /* of the x axis */
	bool counted;       /* x is a count: no marks between whole numbers */
	const struct drv_curve *curves;
	int count;
};

struct drv_figure {
	const char *path; /* FILE.svg, FILE.png, DRV_PLOT_TEXT or DRV_PLOT_WINDOW */
	const struct drv_panel *panels;
	int count, columns; /* of panels side by side; in text they stand one below the other */
};

#define DRV_PLOT_TEXT "-"
#define DRV_PLOT_WINDOW "window"
#define DRV_PLOT_PATHS "FILE.svg, FILE.png, - (text) or window"

bool drv_plot_path(const char *path);
bool drv_plot_ready(const char *path);
bool drv_plot_write(const struct drv_figure *figure, FILE *text);
bool drv_plot_is_live(const char *path, FILE *text);
void drv_plot_withdraw(void);

#endif
