/* sl-run: runs an exported network (by sl_export, by MXNet, or ONNX) on arrays in files. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <starling/io.h>
#include <starling/quantize.h>

#include "run/budget.h"
#include "run/measure.h"

enum { MAX_INPUTS = RUN_MAX_INPUTS, MAX_OUTPUTS = SL_MAX_RESULTS };

/* An input as the command line names it; name NULL: the only one. */
struct input {
	const char *name, *file;
	sl_shape shape; /* of a raw file */
	bool has_shape;
	enum sl_dtype dtype;
};

struct options {
	struct drv_options common;
	const char *symbol, *params, *node;
	char *made[2]; /* paths made from a prefix */
	struct input inputs[MAX_INPUTS];
	char *outputs[MAX_OUTPUTS];       /* files */
	const char *results[MAX_OUTPUTS]; /* the result for each file, if the option names one */
	int ninputs, noutputs, nresults;
	int64_t repeat;
	struct run_plan plan; /* of --benchmark */
	struct run_budget limits;
	size_t memory; /* of the GPU; 0: what there is */
	bool imperative, profile, benchmark;
	const char *quantize; /* the file to write */
	struct sl_quantize_opts calibration;
};

/* ---- the command line -------------------------------------------------------------------------------------------- */

enum {
	KEY_REPEAT = 0x200,
	KEY_NODE,
	KEY_IMPERATIVE,
	KEY_PROFILE,
	KEY_BENCHMARK,
	KEY_THREADS,
	KEY_SECONDS,
	KEY_TIME,
	KEY_MEMORY,
	KEY_LIMIT,
	KEY_QUANTIZE,
	KEY_CALIBRATION
};

static const struct argp_option argp_options[] = {
        {"input", 'i', "[NAME=]FILE", 0,
         "Read the input NAME (may be left out if there is only one) from FILE: .npy, or raw elements, which need "
         "--shape",
         1},
        {"shape", 's', "[NAME=]N,N...", 0,
         "The shape of an input in a raw file; with --benchmark or --profile, of an input of random numbers", 1},
        {"type", 't', "[NAME=]TYPE", 0,
         "Its data type: float32 (default), float64, float16, bfloat16, int64, int32, uint8, bool", 1},
        {"output", 'o', "[NAME=]FILE", 0,
         "Write the result to FILE, as .npy if that is its extension, else raw (default: print it); of an ONNX model, "
         "NAME may be any of its results, and several may be written",
         2},
        {"node", KEY_NODE, "NAME", 0, "Return the result of this node instead of the last one", 2},
        {"repeat", KEY_REPEAT, "N", 0, "Run the network N times and print how long a run takes", 2},
        {"imperative", KEY_IMPERATIVE, NULL, 0, "Run node by node instead of compiling the network", 2},
        {"memory", KEY_MEMORY, "SIZE", 0,
         "Memory of the GPU that the network may use, such as 8G or 512M; weights come from main memory in time for "
         "the "
         "operations that read them (default: what there is)",
         2},
        {"profile", KEY_PROFILE, NULL, 0, "Print the time of each operation of the network", 2},
        {"quantize", KEY_QUANTIZE, "FILE", 0,
         "Instead of running it, write an ONNX model as one of eight-bit numbers to FILE; each row of the inputs is a "
         "sample, from which the ranges of values follow",
         2},
        {"calibration", KEY_CALIBRATION, "METHOD", 0,
         "Ranges by the extremes (minmax, default), by a percentile (99.99, for example), or by entropy", 2},
        {"benchmark", KEY_BENCHMARK, "N,N...", OPTION_ARG_OPTIONAL,
         "Print percentiles of a run's time and rows per second, for batches of N rows (default: as many as the inputs "
         "have)",
         3},
        {"threads", KEY_THREADS, "N", 0, "Call the network from N threads at the same time (default: 1)", 3},
        {"seconds", KEY_SECONDS, "S", 0, "Measure each batch for so long (default: 2), or --repeat runs of each thread",
         3},
        {"time-limit", KEY_TIME, "S", 0,
         "Give up if loading and the first run take longer than S seconds (default: 2, and 1 for each MB of the files; "
         "0: "
         "no limit)",
         4},
        {"memory-limit", KEY_LIMIT, "MIB", 0,
         "Let the model take at most so much main memory (default: 256, and 32 times the size of the files; 0: no "
         "limit)",
         4},
        {0},
};

/* Splits [NAME=]VALUE; finds the input of that name, or makes one. */
static struct input *input_named(struct argp_state *state, struct options *o, char *text, char **value)
{
	char *eq = strchr(text, '='), *slash = strchr(text, '/');
	const char *name = NULL;
	*value = text;
	if (eq && (!slash || eq < slash)) {
		*eq = '\0';
		name = text;
		*value = eq + 1;
	}
	for (int i = 0; i < o->ninputs; i++) {
		const char *known = o->inputs[i].name;
		if (name == known || (name && known && !strcmp(name, known))) return &o->inputs[i];
	}
	if (o->ninputs == MAX_INPUTS) argp_error(state, "there can be at most %d inputs", MAX_INPUTS);
	o->inputs[o->ninputs] = (struct input){.name = name, .dtype = SL_FLOAT32};
	return &o->inputs[o->ninputs++];
}

static void parse_shape(struct argp_state *state, struct input *in, char *text)
{
	char *save;
	in->has_shape = true;
	for (char *t = strtok_r(text, ",x", &save); t; t = strtok_r(NULL, ",x", &save)) {
		if (in->shape.ndim == SL_MAX_NDIM) argp_error(state, "--shape: at most %d axes", SL_MAX_NDIM);
		in->shape.dim[in->shape.ndim++] = drv_int(state, "--shape", t, 0, INT32_MAX);
	}
}

static enum sl_dtype parse_type(struct argp_state *state, const char *text)
{
	enum sl_dtype dtype = sl_dtype_named(text);
	if (dtype == SL_DTYPE_DEFAULT)
		argp_error(state, "--type: \"%s\" is not a data type such as float32, int32 or bfloat16", text);
	return dtype;
}

static void parse_batches(struct argp_state *state, struct run_plan *plan, char *text)
{
	char *save;
	for (char *t = strtok_r(text, ",", &save); t; t = strtok_r(NULL, ",", &save)) {
		if (plan->nbatches == RUN_MAX_BATCHES)
			argp_error(state, "--benchmark: at most %d sizes", RUN_MAX_BATCHES);
		plan->batches[plan->nbatches++] = drv_int(state, "--benchmark", t, 1, INT32_MAX);
	}
}

/* minmax, entropy, or the percentile itself. */
static void parse_calibration(struct argp_state *state, struct options *o, const char *text)
{
	o->calibration.method = !strcmp(text, "minmax")    ? SL_CALIBRATE_MINMAX
	                        : !strcmp(text, "entropy") ? SL_CALIBRATE_ENTROPY
	                                                   : SL_CALIBRATE_PERCENTILE;
	if (o->calibration.method == SL_CALIBRATE_PERCENTILE)
		o->calibration.percentile = drv_real(state, "--calibration", text, 50, 100);
}

static bool ends(const char *text, const char *ending)
{
	size_t n = strlen(text), m = strlen(ending);
	return n > m && !strcmp(text + n - m, ending);
}

/* MODEL is the symbol's file, or the prefix of "-symbol.json" and "-0000.params". */
static void complete_names(struct argp_state *state, struct options *o)
{
	bool whole = ends(o->symbol, ".json");
	size_t n = strlen(o->symbol) - (ends(o->symbol, "-symbol.json") ? strlen("-symbol.json") : 0);
	if (!whole && asprintf(&o->made[0], "%s-symbol.json", o->symbol) < 0)
		argp_failure(state, DRV_ERROR, ENOMEM, "model");
	if (!o->params && (!whole || n < strlen(o->symbol)) &&
	    asprintf(&o->made[1], "%.*s-0000.params", (int)n, o->symbol) < 0)
		argp_failure(state, DRV_ERROR, ENOMEM, "model");
	if (!whole) o->symbol = o->made[0];
	if (!o->params) o->params = o->made[1];
}

/* ONNX has all in one file. */
static bool is_onnx(const struct options *o)
{
	return ends(o->symbol, ".onnx");
}

/* To be timed, a network needs no files: numbers of the shape that is given do. */
static bool made_up(const struct options *o, const struct input *in)
{
	return in->has_shape && (o->benchmark || o->profile);
}

/* NAME=FILE; names are those of results that an ONNX model gives. */
static void split_outputs(struct argp_state *state, struct options *o)
{
	for (int i = 0; i < o->noutputs && is_onnx(o); i++) {
		char *eq = strchr(o->outputs[i], '=');
		if (!eq) continue;
		*eq = '\0';
		o->results[o->nresults++] = o->outputs[i];
		o->outputs[i] = eq + 1;
	}
	if (o->noutputs > 1 && o->nresults < o->noutputs)
		argp_error(state, "several outputs need an ONNX model and their names: --output NAME=FILE");
	if (o->nresults && o->node) argp_error(state, "--node and names of outputs exclude each other");
}

static void complete(struct argp_state *state, struct options *o)
{
	if (!o->symbol) argp_error(state, "no model is given");
	if (!is_onnx(o)) complete_names(state, o);
	else if (o->params) argp_error(state, "an ONNX model contains its parameters: leave out PARAMS");
	split_outputs(state, o);
	if (!o->ninputs && access(o->symbol, R_OK)) argp_failure(state, DRV_ERROR, errno, "%s", o->symbol);
	if (!o->ninputs) argp_error(state, "no input is given");
	for (int i = 0; i < o->ninputs; i++) {
		if (!o->inputs[i].file && !made_up(o, &o->inputs[i]))
			argp_error(state, "--input is missing for %s",
			           o->inputs[i].name ? o->inputs[i].name : "the shape");
		if (o->ninputs > 1 && !o->inputs[i].name)
			argp_error(state, "with several inputs each needs its name: --input NAME=FILE");
	}
	if (o->common.ndevices > 1) argp_error(state, "--device: name one device only");
	if (!o->benchmark && (o->plan.threads || !isnan(o->plan.seconds)))
		argp_error(state, "--threads and --seconds belong to --benchmark");
	if (o->quantize && (!is_onnx(o) || o->benchmark || o->profile || o->noutputs || o->node))
		argp_error(state, "--quantize takes an ONNX model, and neither runs nor measures it");
	if (o->memory && o->imperative) argp_error(state, "--memory is for compiled networks, not for --imperative");
	if (o->benchmark && o->profile) argp_error(state, "--benchmark and --profile exclude each other");
	if (!o->plan.threads) o->plan.threads = 1;
	if (isnan(o->plan.seconds)) o->plan.seconds = 2;
	o->plan.calls = o->repeat;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;
	char *value;
	struct input *in;
	switch (key) {
	case ARGP_KEY_INIT: state->child_inputs[0] = &o->common; return 0;
	case 'i':
		in = input_named(state, o, arg, &value);
		in->file = value;
		return 0;
	case 's':
		in = input_named(state, o, arg, &value);
		parse_shape(state, in, value);
		return 0;
	case 't':
		in = input_named(state, o, arg, &value);
		in->dtype = parse_type(state, value);
		return 0;
	case 'o':
		if (o->noutputs == MAX_OUTPUTS) argp_error(state, "there can be at most %d outputs", MAX_OUTPUTS);
		o->outputs[o->noutputs++] = arg;
		return 0;
	case KEY_NODE: o->node = arg; return 0;
	case KEY_REPEAT: o->repeat = drv_int(state, "--repeat", arg, 1, INT32_MAX); return 0;
	case KEY_IMPERATIVE: o->imperative = true; return 0;
	case KEY_PROFILE: o->profile = true; return 0;
	case KEY_BENCHMARK:
		o->benchmark = true;
		if (arg) parse_batches(state, &o->plan, arg);
		return 0;
	case KEY_THREADS: o->plan.threads = (int)drv_int(state, "--threads", arg, 1, RUN_MAX_THREADS); return 0;
	case KEY_SECONDS: o->plan.seconds = drv_real(state, "--seconds", arg, 0, 1e6); return 0;
	case KEY_QUANTIZE: o->quantize = arg; return 0;
	case KEY_CALIBRATION: parse_calibration(state, o, arg); return 0;
	case KEY_TIME: o->limits.seconds = drv_real(state, "--time-limit", arg, 0, 1e9); return 0;
	case KEY_MEMORY: o->memory = drv_size(state, "--memory", arg); return 0;
	case KEY_LIMIT: o->limits.bytes = drv_int(state, "--memory-limit", arg, 0, INT64_MAX >> 20) << 20; return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num > 1) return ARGP_ERR_UNKNOWN;
		*(state->arg_num ? &o->params : &o->symbol) = arg;
		return 0;
	case ARGP_KEY_END: complete(state, o); return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static sl_tensor *read_raw(const struct input *in)
{
	size_t bytes = (size_t)sl_shape_size(in->shape) * sl_dtype_size(in->dtype);
	char text[128], *data = NULL;
	sl_tensor *t = NULL;
	FILE *f = fopen(in->file, "rb");
	long size = f && !fseek(f, 0, SEEK_END) ? ftell(f) : -1;
	if (size < 0) drv_error("%s: %s", in->file, strerror(errno));
	else if ((size_t)size != bytes)
		drv_error("%s: has %ld bytes, %s %s needs %zu", in->file, size, sl_dtype_name(in->dtype),
		          sl_shape_string(in->shape, text), bytes);
	else if (!(data = malloc(bytes + 1))) drv_error("%s: no memory", in->file);
	else {
		rewind(f);
		if (fread(data, 1, bytes, f) == bytes) t = sl_from(data, in->shape, .dtype = in->dtype);
		else drv_error("%s: %s", in->file, strerror(errno));
	}
	free(data);
	if (f) fclose(f);
	return t;
}

/* Uniform in 0..1; whole numbers are 0: an index that is valid everywhere */
static sl_tensor *make_input(const struct input *in)
{
	return sl_cast(sl_uniform(in->shape, 0, 1), in->dtype);
}

static sl_tensor *read_input(const struct input *in)
{
	if (!in->file) return make_input(in);
	if (in->has_shape) return read_raw(in);
	if (ends(in->file, ".npy")) return sl_load_npy(in->file);
	drv_error("%s: is not a .npy file; a raw file needs --shape", in->file);
	return NULL;
}

static bool write_raw(const char *path, sl_tensor *y)
{
	size_t bytes = sl_tensor_bytes(y);
	void *data = malloc(bytes + 1);
	bool ok = data && sl_read(y, data, bytes) == SL_OK;
	sl_file *f = ok ? drv_file_begin(path) : NULL;
	if (!data) drv_error("%s: no memory", path);
	if (f) (void)!fwrite(data, 1, bytes, sl_file_stream(f)); /* drv_file_end reports */
	ok = f && drv_file_end(f, path);
	free(data);
	return ok;
}

static bool write_outputs(const struct options *o, sl_tensor *const *y)
{
	bool ok = true;
	for (int i = 0; i < o->noutputs && ok; i++)
		ok = ends(o->outputs[i], ".npy") ? sl_save_npy(y[i], o->outputs[i]) == SL_OK
		                                 : write_raw(o->outputs[i], y[i]);
	return ok && (o->noutputs || o->common.quiet || sl_fprint(drv_out(&o->common), y[0]) == SL_OK);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* The tests requested after the first run */
static bool measure(const struct options *o, const struct run_network *n, json_t *results)
{
	if (o->profile) return run_profile(&o->common, n, o->repeat ? o->repeat : 1);
	if (o->benchmark) return run_benchmark(&o->common, n, &o->plan, results);
	return !o->repeat || run_repeat(&o->common, n, o->repeat, results);
}

/* The results that are written, or the first.  A sequence is several: a name for it would take the files of others. */
static bool forward(const struct options *o, const struct run_network *n, sl_tensor **y)
{
	int wanted = o->noutputs ? o->noutputs : 1;
	int got = sl_forward_most(n->net, n->in, n->nin, y, wanted);
	if (got >= wanted && (!o->nresults || got == wanted)) return true;
	if (got)
		drv_error("%d results are named, the network gives %d tensors: a sequence is one for each element",
		          wanted, got);
	return false;
}

static bool run_network(const struct options *o, sl_block *net, json_t *results)
{
	struct run_network n = {.net = net, .nin = o->ninputs};
	for (int i = 0; i < o->ninputs; i++)
		if (!(n.in[i] = read_input(&o->inputs[i]))) return false;
	if (!o->imperative && sl_hybridize(net, .fallback = is_onnx(o), .memory = o->memory) != SL_OK) return false;
	sl_tensor *y[MAX_OUTPUTS];
	bool ok = forward(o, &n, y);
	run_budget_end();
	bool timed = o->benchmark || (o->profile && !o->inputs[0].file);
	return ok && (timed || write_outputs(o, y)) && measure(o, &n, results);
}

static sl_block *load(const struct options *o)
{
	const char *names[MAX_INPUTS];
	int n = 0;
	for (int i = 0; i < o->ninputs; i++)
		if (o->inputs[i].name) names[n++] = o->inputs[i].name;
	if (is_onnx(o))
		return sl_import_onnx_at(SL_HERE, o->symbol,
		                         (struct sl_import_onnx_opts){.inputs = names,
		                                                      .ninputs = n,
		                                                      .output = o->node,
		                                                      .outputs = o->results,
		                                                      .noutputs = o->nresults});
	return sl_import_at(SL_HERE, o->symbol, names, n, o->params, (struct sl_import_opts){.output = o->node});
}

/* What the engine refuses at once; drv_start passes it on.  No machine computes so many operations in the time. */
static void limit(struct options *o)
{
	const double operations_a_second = 1e13;
	int64_t bytes = run_model_bytes(o->symbol) + (is_onnx(o) ? 0 : run_file_bytes(o->params));
	for (int i = 0; i < o->ninputs; i++) {
		const struct input *in = &o->inputs[i];
		bytes += in->file ? run_file_bytes(in->file)
		                  : sl_shape_size(in->shape) * (int64_t)sl_dtype_size(in->dtype);
	}
	o->limits = run_budget_for(o->limits, bytes);
	o->common.untrusted = (struct sl_untrusted){.bytes = (size_t)o->limits.bytes,
	                                            .operations = operations_a_second * o->limits.seconds};
}

/* Each row of the inputs is a sample. */
static bool quantize(struct options *o)
{
	sl_tensor *in[MAX_INPUTS], **samples = NULL;
	const char *names[MAX_INPUTS];
	int64_t rows = 1;
	int n = o->ninputs;
	for (int i = 0; i < n; i++) {
		if (!(in[i] = read_input(&o->inputs[i]))) return false;
		sl_shape s = sl_tensor_shape(in[i]);
		if (i == 0 && s.ndim) rows = s.dim[0];
		if (s.ndim && s.dim[0] == rows) continue;
		drv_error("%s: its rows are not as many as the others'", o->inputs[i].file);
		return false;
	}
	if (!(samples = calloc((size_t)(rows * n) + 1, sizeof *samples))) return false;
	for (int64_t k = 0; k < rows * n; k++) samples[k] = sl_slice(in[k % n], 0, k / n, k / n + 1, 1);
	for (int i = 0; i < n && o->inputs[i].name; i++) names[o->calibration.ninputs++] = o->inputs[i].name;
	o->calibration.inputs = names;
	enum sl_status s =
	        sl_quantize_onnx_at(SL_HERE, o->symbol, o->quantize, samples, (int)(rows * n), o->calibration);
	free(samples);
	return s == SL_OK;
}

static int run(struct options *o)
{
	json_t *results = drv_json_new("sl-run", &o->common);
	json_object_set_new(results, "mode", json_string(o->imperative ? "imperative" : "compiled"));
	bool ok = false;
	run_budget_begin(o->limits, o->symbol);
	SL_SCOPE {
		sl_block *net = o->quantize ? NULL : load(o);
		ok = o->quantize ? quantize(o) : net && run_network(o, net, results);
		run_budget_explain(o->limits);
		ok = drv_settle(ok);
		sl_block_free(net);
	}
	return drv_finish(&o->common, results, ok);
}

static const struct argp_child children[] = {{&drv_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
        .options = argp_options,
        .parser = parse,
        .args_doc = "MODEL [PARAMS]",
        .children = children,
        .doc = "Runs a network that sl_export or MXNet has exported, or an ONNX model.\v"
               "MODEL is a file such as my_mlp-symbol.json, or my_mlp alone; PARAMS is a file with the "
               "values of its parameters (default: my_mlp-0000.params beside it).  Or MODEL is a file such as "
               "my_mlp.onnx, which contains everything.\n\n"
               "Examples:\n"
               "  sl-run my_mlp --input x.npy --output y.npy\n"
               "  sl-run my_mlp --input data=x.raw --shape data=1,512 --repeat 1000\n"
               "  sl-run my_mlp --shape 1,512 --benchmark=1,8,32 --threads 4\n\n"
               "Exit status: 0 if all went well, 1 after an error, 2 if the command line is "
               "wrong, " DRV_INTERRUPTED_STATUS ".",
};

int main(int argc, char **argv)
{
	struct options o = {.plan.seconds = NAN, .limits = {.seconds = NAN, .bytes = -1}};
	drv_parse(&argp, argc, argv, &o);
	limit(&o);
	int status = drv_stop(&o.common, drv_start(&o.common) ? run(&o) : DRV_ERROR);
	free(o.made[0]);
	free(o.made[1]);
	return status;
}
