/* bench: measures how long Starling takes for well-known work, next to the machine's limits and to PyTorch. */
#include <argp.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "../../models/driver/common.h"
#include "bench.h"

struct arguments {
	struct bench_options measuring;
	enum bench_format format;
	struct bench_series series;
	const char *json, *peer;
	bool list, check;
	bool *wanted;
	int nwanted;
};

enum {
	KEY_JSON = 256,
	KEY_PEER,
	KEY_RUNS,
	KEY_QUICK,
	KEY_MARKDOWN,
	KEY_CHECK,
	KEY_DEVICE,
	KEY_PEER_SCRIPT,
	KEY_TF32,
	KEY_SCALING,
	KEY_BESIDE
};

static const struct argp_option options[] = {
        {"list", 'l', NULL, 0, "List the cases and end", 0},
        {"json", KEY_JSON, "FILE", 0, "Write a JSON object for each case, one a line, to FILE", 0},
        {"peer", KEY_PEER, "PYTHON", 0, "Run the same work in PyTorch with this Python, in turn, and compare", 0},
        {"peer-script", KEY_PEER_SCRIPT, "FILE", 0, "Script for PyTorch's part (default: the installed one)", 0},
        {"device", KEY_DEVICE, "DEVICE", 0, "Run operations on cpu (the default) or a GPU: gpu:0", 0},
        {"tf32", KEY_TF32, NULL, 0, "Let float32 products on a GPU round to TF32, in PyTorch, too", 0},
        {"runs", KEY_RUNS, "N", 0, "Measure each case so many times (default: 9)", 0},
        {"quick", KEY_QUICK, NULL, 0, "Few and short runs: to see that it works", 0},
        {"markdown", KEY_MARKDOWN, NULL, 0, "Write the table as Markdown", 0},
        {"scaling", KEY_SCALING, "N,...", OPTION_ARG_OPTIONAL,
         "Measure each case with so many threads, the peer's too (default: 1, 2, 4, ... all)", 0},
        {"beside", KEY_BESIDE, "N", 0, "Measure each case alone, and beside N busy loops", 0},
        {"check", KEY_CHECK, NULL, 0, "Exit with status 1 if a goal is missed", 0},
        {0},
};

static const char doc[] =
        "Measures Starling: medians of several runs.\v"
        "CASE is a name or a pattern such as 'lenet-*'; without any, all cases run, those in bfloat16 only where the "
        "processor or the GPU has "
        "instructions for it.  The floor is the time that the "
        "machine, as measured beside each run, needs at least: flops at the rate of sgemm on all cores, bytes at the "
        "bandwidth of memory (with --device gpu:N, of that GPU), tasks at the price of a bare StarPU task.  \"of "
        "floor\" is floor / value, \"× peer\" the "
        "peer's time / ours: more is better for both.  With --scaling, efficiency is the speed-up a thread, and the "
        "floor that "
        "of as many cores.\n\n"
        "Exit status: 0; 1 if a case fails (or with --check misses its goal); 2 for a wrong command line.";

static void want(struct argp_state *state, struct arguments *a, const char *pattern)
{
	int found = 0;
	for (int i = 0; i < bench_case_count(); i++) {
		if (fnmatch(pattern, bench_case(i)->name, 0)) continue;
		a->wanted[i] = true;
		found++;
	}
	if (!found) argp_error(state, "there is no case %s; --list names them", pattern);
	a->nwanted += found;
}

static int runs_of(struct argp_state *state, const char *text)
{
	char *end;
	long n = strtol(text, &end, 10);
	if (*end || n < 1 || n > BENCH_MAX_RUNS)
		argp_error(state, "--runs takes a number from 1 to %d", BENCH_MAX_RUNS);
	return (int)n;
}

static int loops_of(struct argp_state *state, const char *text)
{
	char *end;
	long n = strtol(text, &end, 10);
	if (*end || n < 1 || n > BENCH_MAX_LOOPS)
		argp_error(state, "--beside takes a number from 1 to %d", BENCH_MAX_LOOPS);
	return (int)n;
}

static sl_device device_of(struct argp_state *state, const char *text)
{
	sl_device d;
	int n = sl_device_parse(text, &d, 1);
	bool good = n == 1 && (d.kind == SL_DEVICE_CPU || (d.kind == SL_DEVICE_GPU && d.index >= 0));
	if (!good) argp_error(state, "--device takes one device, cpu or gpu:N, not '%s'", text);
	return d;
}

static error_t parse(int key, char *text, struct argp_state *state)
{
	struct arguments *a = state->input;
	switch (key) {
	case 'l': a->list = true; break;
	case KEY_JSON: a->json = text; break;
	case KEY_PEER: a->peer = text; break;
	case KEY_RUNS: a->measuring.runs = runs_of(state, text); break;
	case KEY_PEER_SCRIPT: a->measuring.peer_script = text; break;
	case KEY_DEVICE: a->measuring.device = device_of(state, text); break;
	case KEY_QUICK:
		a->measuring.run_seconds = 0.02;
		if (!a->measuring.runs) a->measuring.runs = 2;
		break;
	case KEY_MARKDOWN: a->format = BENCH_MARKDOWN; break;
	case KEY_CHECK: a->check = true; break;
	case KEY_TF32: a->measuring.tf32 = true; break;
	case KEY_SCALING:
		if (!bench_series_threads(&a->series, text, bench_cores()))
			argp_error(state,
			           "--scaling takes numbers of threads up to %d, which this machine has, not '%s'",
			           bench_cores(), text);
		break;
	case KEY_BESIDE: a->series = (struct bench_series){BENCH_LOOPS, 2, {0, loops_of(state, text)}}; break;
	case ARGP_KEY_ARG: want(state, a, text); break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp parser = {options, parse, "[CASE...]", doc, NULL, NULL, NULL};

/* Without instructions for bfloat16, PyTorch takes minutes for one product. */
static bool has_bf16(void)
{
#ifdef __x86_64__
	return __builtin_cpu_supports("avx512bf16");
#else
	return false;
#endif
}

/* Whether a case is measured: the named ones, or else all that suit the device and the processor. */
static bool is_measured(const struct arguments *a, int i)
{
	const struct bench_case *c = bench_case(i);
	bool gpu = a->measuring.device.kind == SL_DEVICE_GPU;
	if (gpu ? c->cpu_only : c->gpu_only) return false;
	return a->nwanted ? a->wanted[i] : gpu || !strstr(c->name, "bf16") || has_bf16();
}

/* The requested cases, each several times; returns the number of failed measurements. */
static int run_series(const struct arguments *a, const char *machine, FILE *json)
{
	int bad = 0;
	bench_print_series(stdout, a->format, &a->series);
	for (int i = 0; i < bench_case_count(); i++)
		if (is_measured(a, i))
			bad += bench_series_case(bench_case(i), &a->series, &a->measuring, a->format, json, machine);
	return bad;
}

/* Measures the requested cases; returns the number of cases that failed or, with --check, missed their goal. */
static int run_cases(const struct arguments *a, const char *machine, FILE *json)
{
	int bad = 0;
	bench_print_head(stdout, a->format);
	for (int i = 0; i < bench_case_count(); i++) {
		const struct bench_case *c = bench_case(i);
		struct bench_result result;
		if (!is_measured(a, i)) continue;
		bench_measure(c, &a->measuring, &result);
		bench_print_row(stdout, a->format, c, &result);
		if (json && !bench_write_json(json, machine, c, &result)) {
			fprintf(stderr, "bench: %s: %s\n", a->json, strerror(errno));
			bad++;
		}
		bad += *result.error || (a->check && !bench_summarize(c, &result).met);
	}
	return bad;
}

static int run(const struct arguments *a)
{
	char machine[1024];
	sl_file *json = a->json ? sl_file_begin(a->json) : NULL;
	if (a->json && !json) {
		fprintf(stderr, "bench: %s: %s\n", a->json, strerror(errno));
		sl_error_clear();
		return 1;
	}
	if (a->peer && !bench_peer_start(a->peer, &a->measuring)) {
		fprintf(stderr, "bench: %s does not run the peer: is PyTorch installed there?\n", a->peer);
		return 1;
	}
	bench_machine(machine, sizeof machine, &a->measuring);
	printf("%s\n\n", machine);
	FILE *lines = sl_file_stream(json);
	int bad = a->series.kind ? run_series(a, machine, lines) : run_cases(a, machine, lines);
	bench_peer_stop();
	if (json && sl_file_commit(json) != SL_OK) {
		fprintf(stderr, "bench: %s: %s\n", a->json, strerror(errno));
		sl_error_clear();
		bad++;
	}
	return bad ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct arguments a = {.measuring = {.run_seconds = 0.15, .threads = bench_cores()}};
	a.wanted = calloc((size_t)bench_case_count(), sizeof *a.wanted);
	if (!a.wanted) return 1;
	drv_parse(&parser, argc, argv, &a);
	if (!a.measuring.runs) a.measuring.runs = 9;
	int status = 0;
	if (a.list) bench_print_list(stdout);
	else status = run(&a);
	free(a.wanted);
	return status;
}
