/* Imperative, symbolic and hybrid programming, side by side.
 *
 * The experiments of Zhang, Lipton, Li, Smola, "Dive into Deep Learning", section "Compilers and Interpreters", in
 * their order and with the lines that they print. */
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <starling.h>

#include "driver/experiments.h"
#include "driver/networks.h"

struct options {
	struct drv_options common;
	struct drv_experiments experiments;
	int64_t repeat;
	const char *output;
};

static void show(struct drv_bench *b, const char *before, sl_tensor *t)
{
	drv_print(b->common, "%s", before);
	if (b->common->quiet || sl_fprint(drv_out(b->common), t) == SL_OK) return;
	drv_error("%s", sl_error_message());
	b->failed = true;
}

/* The parts of the tutorial's network: one row of 512 numbers, to 2. */
enum { INPUTS = 512 };

static sl_tensor *one_row(void)
{
	return sl_normal(SL_SHAPE(1, INPUTS), 0, 1);
}

static sl_block *new_network(void)
{
	sl_block *net = net_row_mlp();
	sl_initialize(net);
	return net;
}

/* ---- imperatively: each call is computed as it comes ------------------------------------------------------------- */

static sl_tensor *fancy_func(sl_tensor *a, sl_tensor *b, sl_tensor *c, sl_tensor *d)
{
	sl_tensor *e = sl_add(a, b);
	sl_tensor *f = sl_add(c, d);
	return sl_add(e, f);
}

static void imperative(struct drv_bench *b)
{
	drv_title(b, "fancy_func(1, 2, 3, 4), imperatively");
	SL_SCOPE {
		sl_tensor *args[4];
		for (int i = 0; i < 4; i++) args[i] = sl_full(SL_SCALAR, i + 1);
		double result = sl_item(fancy_func(args[0], args[1], args[2], args[3]));
		drv_print(b->common, "%g\n", result);
		drv_note(b, "result", result);
	}
}

/* ---- symbolically: define, compile, run -------------------------------------------------------------------------- */

static void print_program(const struct drv_bench *b, const char *title, const sl_graph *graph)
{
	drv_print(b->common, "%s\n", title);
	if (!b->common->quiet && graph) sl_graph_print(drv_out(b->common), graph);
}

/* Runs a program without inputs; its result. */
static double run_program(sl_plan *plan)
{
	sl_tensor *out[1] = {NULL};
	sl_plan_run(plan, NULL, 0, out);
	return sl_item(out[0]);
}

static void symbolic(struct drv_bench *b)
{
	drv_title(b, "fancy_func(1, 2, 3, 4) as a program: its text is parsed, compiled, run");
	SL_SCOPE {
		sl_graph *graph = sl_graph_parse("e = add(1, 2)\n"
		                                 "f = add(3, 4)\n"
		                                 "g = add(e, f)\n"
		                                 "return g\n");
		sl_plan *plan = sl_compile(graph);
		print_program(b, "as written:", graph);
		if (plan) print_program(b, "as compiled:", sl_plan_graph(plan));
		double result = plan ? run_program(plan) : 0;
		drv_print(b->common, "as run:\n%g\n", result);
		drv_note(b, "result", result);
		sl_plan_free(plan);
		sl_graph_free(graph);
	}
}

/* ---- hybrid: written imperatively, run as a program -------------------------------------------------------------- */

static void forwards(sl_block *net, sl_tensor *x, int64_t times)
{
	for (int64_t i = 0; i < times && !drv_interrupted(); i++)
		SL_SCOPE {
			sl_forward(net, x);
		}
	sl_wait_all();
}

/* Prints the network's result, then the time of repeated calls. */
static double measure(struct drv_bench *b, sl_block *net, sl_tensor *x, const char *key, const char *text)
{
	const struct options *o = b->options;
	SL_SCOPE {
		show(b, "", sl_forward(net, x));
	}
	forwards(net, x, o->repeat / 10 + 1); /* fills pools and caches */
	drv_begin(b);
	forwards(net, x, o->repeat);
	drv_end(b, key, text);
	return drv_now() - b->start;
}

static void network(struct drv_bench *b)
{
	const struct options *o = b->options;
	drv_title(b, "%lld times a 256-128-2 network on 1 x 512", (long long)o->repeat);
	SL_SCOPE {
		sl_block *net = new_network();
		sl_tensor *x = one_row();
		double before = measure(b, net, x, "before", "before hybridizing");
		sl_hybridize(net);
		double after = measure(b, net, x, "after", "after hybridizing");
		drv_print(b->common, "%.1f times as fast\n", before / after);
		sl_block_free(net);
	}
}

/* ---- symbols ----------------------------------------------------------------------------------------------------- */

static void symbols(struct drv_bench *b)
{
	drv_title(b, "the network given a symbol instead of values");
	SL_SCOPE {
		sl_block *net = new_network();
		sl_tensor *x = sl_var("data", SL_VAR_SHAPE(1, INPUTS));
		show(b, "", x);
		sl_tensor *y = sl_forward(net, x);
		show(b, "", y);
		sl_graph *graph = sl_graph_define(y);
		print_program(b, "the program behind it:", graph);
		sl_graph_free(graph);
		sl_block_free(net);
	}
}

/* ---- a network of one's own -------------------------------------------------------------------------------------- */

struct hybrid_net {
	sl_block base;
	sl_block *hidden, *output;
	struct drv_bench *bench;
};

static sl_tensor *hybrid_forward(sl_block *self, sl_tensor *const *in, int nin)
{
	struct hybrid_net *net = (struct hybrid_net *)self;
	(void)nin;
	drv_print(net->bench->common, "forward is given %s\n", sl_is_symbol(in[0]) ? "a symbol" : "values");
	show(net->bench, "x: ", in[0]);
	sl_tensor *x = sl_relu(sl_forward(net->hidden, in[0]));
	show(net->bench, "hidden: ", x);
	return sl_forward(net->output, x);
}

static sl_block *hybrid_net(struct drv_bench *b)
{
	struct hybrid_net *net = calloc(1, sizeof *net);
	if (!net || sl_block_init(&net->base, "HybridNet", hybrid_forward, NULL) != SL_OK) {
		free(net);
		return NULL;
	}
	net->bench = b;
	net->hidden = sl_block_add(&net->base, "hidden", sl_dense(10));
	net->output = sl_block_add(&net->base, "output", sl_dense(2));
	sl_initialize(&net->base);
	return &net->base;
}

/* Calls it twice: hybridised, forward runs, and prints, only the first time. */
static void call_twice(struct drv_bench *b, sl_block *net, sl_tensor *x)
{
	static const char *const calls[] = {"first call", "second call"};
	for (int i = 0; i < 2; i++)
		SL_SCOPE {
			drv_print(b->common, "%s\n", calls[i]);
			show(b, "result: ", sl_forward(net, x));
		}
}

static void own_network(struct drv_bench *b)
{
	drv_title(b, "HybridNet, whose forward prints: before and after hybridizing");
	SL_SCOPE {
		sl_block *net = hybrid_net(b);
		sl_tensor *x = sl_normal(SL_SHAPE(1, 4), 0, 1);
		call_twice(b, net, x);
		sl_hybridize(net);
		drv_print(b->common, "hybridized\n");
		call_twice(b, net, x);
		sl_block_free(net);
	}
}

/* ---- calls that symbols refuse ----------------------------------------------------------------------------------- */

static void ask_value(void)
{
	sl_item(sl_var("data", SL_VAR_SHAPE(1)));
}

static void change_in_place(void)
{
	sl_add_(sl_relu(sl_var("data", SL_VAR_SHAPE(1, 4))), sl_ones(SL_SHAPE(1, 4)));
}

/* A forward that branches on a value has no program. */
static sl_tensor *positive_only(sl_tensor *x)
{
	return sl_item(sl_sum(x)) > 0 ? x : sl_neg(x);
}

static void branch_with(struct sl_hybridize_opts opts)
{
	sl_block *net = sl_lambda("positive_only", positive_only);
	sl_hybridize_at(SL_HERE, net, opts);
	sl_forward(net, sl_ones(SL_SHAPE(2)));
	sl_block_free(net);
}

static void branch(void)
{
	branch_with((struct sl_hybridize_opts){0});
}

static void branch_imperatively(void)
{
	branch_with((struct sl_hybridize_opts){.fallback = true});
}

static void errors(struct drv_bench *b)
{
	static const struct {
		const char *key, *text;
		void (*run)(void);
	} cases[] = {{"value", "sl_item of a symbol", ask_value},
	             {"inplace", "an operation in place on a symbol", change_in_place},
	             {"branch", "a forward that branches on a value, hybridized", branch},
	             {"fallback", "the same with .fallback = true", branch_imperatively}};
	drv_title(b, "calls that symbols refuse");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		SL_SCOPE {
			cases[i].run();
		}
		drv_print(b->common, "%s: %s\n", cases[i].text, sl_error() == SL_OK ? "runs" : sl_error_message());
		json_object_set_new(b->results, cases[i].key, json_string(sl_status_name(sl_error())));
		sl_error_clear();
	}
}

/* ---- export and import ------------------------------------------------------------------------------------------- */

/* The files of an exported network, in a folder. */
struct exported {
	char prefix[PATH_MAX], symbol[PATH_MAX + 32], params[PATH_MAX + 32];
};

static void name_files(struct exported *e, const char *folder)
{
	snprintf(e->prefix, sizeof e->prefix, "%.*s/my_mlp", PATH_MAX - 8, folder);
	snprintf(e->symbol, sizeof e->symbol, "%s-symbol.json", e->prefix);
	snprintf(e->params, sizeof e->params, "%s-0000.params", e->prefix);
}

static void list_file(const struct drv_bench *b, const char *path)
{
	struct stat file;
	if (stat(path, &file) == 0) drv_print(b->common, "%s, %lld bytes\n", path, (long long)file.st_size);
}

static void print_head(const struct drv_bench *b, const char *path, int lines)
{
	char line[256];
	FILE *f = fopen(path, "r");
	while (f && lines-- > 0 && fgets(line, sizeof line, f)) drv_print(b->common, "%s", line);
	if (f) fclose(f);
}

/* Reads the written files, without the code that made them; the same input must give the same result. */
static void import(struct drv_bench *b, const struct exported *e, sl_tensor *x, sl_tensor *y)
{
	sl_block *net = sl_import(e->symbol, SL_NAMES("data"), e->params);
	sl_tensor *again = net ? sl_forward(net, x) : NULL;
	if (again) {
		show(b, "imported: ", again);
		drv_note(b, "difference", sl_item(sl_max(sl_abs(sl_sub(y, again)))));
	}
	sl_block_free(net);
}

static void export_and_import(struct drv_bench *b, const struct exported *e)
{
	SL_SCOPE {
		sl_block *net = new_network();
		sl_tensor *x = one_row(), *y = sl_forward(net, x);
		enum sl_status s = SL_OK;
		show(b, "before: ", y);
		SL_AUTOCAST(SL_FLOAT32) /* without casts */
		{
			s = sl_export(net, e->prefix, SL_SHAPES(SL_SHAPE(1, INPUTS)));
		}
		if (s == SL_OK) {
			list_file(b, e->symbol);
			list_file(b, e->params);
			print_head(b, e->symbol, 9);
			import(b, e, x, y);
		}
		sl_block_free(net);
	}
}

/* The folder for the files: the requested one, or a temporary one, which is removed afterwards. */
static const char *make_folder(const struct drv_bench *b, char path[PATH_MAX])
{
	const struct options *o = b->options;
	const char *tmp = getenv("TMPDIR");
	if (o->output) return o->output;
	snprintf(path, PATH_MAX, "%s/starling-hybrid-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	return mkdtemp(path);
}

static void export_import(struct drv_bench *b)
{
	char path[PATH_MAX];
	struct exported e;
	const char *folder = make_folder(b, path);
	drv_title(b, "the network exported and imported");
	if (!folder) {
		drv_error("cannot make a folder for the files; name one with --output");
		b->failed = true;
		return;
	}
	name_files(&e, folder);
	export_and_import(b, &e);
	if (folder != path) return;
	unlink(e.symbol);
	unlink(e.params);
	rmdir(path);
}

/* ---- the command line -------------------------------------------------------------------------------------------- */

static const struct drv_experiment experiments[] = {
        {"imperative", "fancy_func(1, 2, 3, 4), call by call", imperative},
        {"symbolic", "the same as text: parsed, folded, compiled, run", symbolic},
        {"network", "a 256-128-2 network on one row, before and after hybridizing", network},
        {"symbols", "the network given a symbol, and the program behind the result", symbols},
        {"hybridnet", "a network whose forward prints: once hybridized it prints once", own_network},
        {"errors", "calls that symbols refuse", errors},
        {"export", "the network written to files (my_mlp-symbol.json) and read again", export_import},
};

enum { KEY_REPEAT = 0x200, KEY_OUTPUT };

static const struct argp_option options[] = {
        {"repeat", KEY_REPEAT, "N", 0, "Number of runs in network (default: 1000)", 1},
        {"output", KEY_OUTPUT, "DIR", 0, "Folder for the files of export, which stay there", 1},
        {0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;
	switch (key) {
	case ARGP_KEY_INIT: drv_experiments_init(state, &o->experiments); return 0;
	case KEY_REPEAT: o->repeat = drv_int(state, "--repeat", arg, 1, 1000000000); return 0;
	case KEY_OUTPUT: o->output = arg; return 0;
	case ARGP_KEY_END:
		if (o->common.ndevices > 1) argp_error(state, "--device: name one device only");
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
        .options = options,
        .parser = parse_option,
        .children = drv_experiments_children,
        .doc = "Shows imperative, symbolic and hybrid programming: all experiments, or those named.\v"
               "Exit status: 0 if all went well, 1 after an error, 2 if the command line is "
               "wrong, " DRV_INTERRUPTED_STATUS ".",
};

int main(int argc, char **argv)
{
	struct options o = {
	        .experiments = {"hybrid", experiments, sizeof experiments / sizeof *experiments, &o.common, 0, {0}},
	        .repeat = 1000};
	drv_parse(&argp, argc, argv, &o);
	return drv_stop(&o.common, drv_start(&o.common) ? drv_run_experiments(&o.experiments, &o) : DRV_ERROR);
}
