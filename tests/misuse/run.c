/* Calls every public function with anything, in many places: each call ends in time with a status that there is, an error
 * says where, and the engine works afterwards.  A child process for each function and place, so that a crash tells whose
 * it is: run [ROUNDS [FUNCTION [PLACE [ROUND]]]]; the environment's MISUSE_SEED makes other calls. */
#include <signal.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pool.h"

enum { PATIENCE = 300 };
const char here[] = "misuse.c:7";
int failures;

/* What the parent sees of a child that has ended. */
static struct {
	const char *place, *function;
	int round, failures;
	long calls, errors;
	double slowest;
} * now;
static double begun;

void complain(const char *format, ...)
{
	va_list args;
	printf("FAIL: %s, %s, round %d: ", now->function, now->place, now->round);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	puts("");
	now->failures++;
}

static double cpu(void)
{
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return (double)u.ru_utime.tv_sec + 1e-6 * (double)u.ru_utime.tv_usec + (double)u.ru_stime.tv_sec +
	       1e-6 * (double)u.ru_stime.tv_usec;
}

/* ---- a call ------------------------------------------------------------------------------------------------------- */

static bool is_status(enum sl_status s)
{
#define X(symbol, text) || s == symbol
	return false SL_STATUS_LIST(X);
#undef X
}

static bool has_place(const char *text)
{
	return strstr(text, ".c:") || strstr(text, ".json, node ") || strstr(text, "line ");
}

static void check_error(enum sl_status s, const char *when, int placed)
{
	const char *text = sl_error_message();
	if (s == SL_OK) return;
	now->errors++;
	if (!is_status(s)) complain("%s: status %d", when, (int)s);
	if (s == SL_EINTERNAL) complain("%s: %s", when, text);
	if (!*text) complain("%s: no message with %s", when, sl_status_name(s));
	else if (placed && !has_place(text)) complain("%s: no place in \"%s\"", when, text);
}

void check_pending(const char *when)
{
	for (int i = 0; i < 1000; i++) {
		enum sl_status s = sl_wait_all();
		if (s == SL_OK || s == SL_ESTATE) break;
		check_error(s, when, 1);
	}
	sl_error_clear();
}

void begin(const char *name)
{
	(void)name;
	sl_error_clear();
	now->calls++;
	begun = cpu();
}

static void timed(void)
{
	double seconds = cpu() - begun;
	if (seconds > now->slowest) now->slowest = seconds;
	if (seconds > 20) complain("took %.1f s of processor time", seconds);
}

void end_status(enum sl_status status, int placed)
{
	timed();
	check_error(status, "its status", placed);
	sl_error_clear();
}

void end_pointer(const void *result, int placed)
{
	timed();
	if (!result && placed) {
		check_error(sl_error(), "its error", placed);
		if (sl_error() == SL_OK) complain("NULL without an error");
	}
	sl_error_clear();
}

void end_any(void)
{
	timed();
	check_error(sl_error(), "its error", 0);
	sl_error_clear();
}

/* ---- places -------------------------------------------------------------------------------------------------------- */

static const struct one_call *current;
static int first_round, rounds;
static uint64_t seed;

/* A loader has threads, of which one at a time comes through; a call that comes back here ends. */
static void one_round(void)
{
	static atomic_flag busy = ATOMIC_FLAG_INIT;
	if (atomic_flag_test_and_set(&busy)) return;
	SL_SCOPE
		current->call();
	pool_sweep();
	atomic_flag_clear(&busy);
}

static void prepare(int round)
{
	uint64_t h = 1469598103934665603u;
	for (const char *p = current->name; *p; p++) h = (h ^ (unsigned char)*p) * 1099511628211u;
	now->round = round;
	pool_seed(h + seed * 1000003u + (uint64_t)round);
}

static void check_works(void)
{
	float v[2] = {0};
	check_pending("afterwards");
	SL_SCOPE {
		sl_tensor *t = sl_add(sl_ones(SL_SHAPE(2)), sl_ones(SL_SHAPE(2)));
		if (sl_read(t, v, sizeof v) != SL_OK || v[0] != 2 || v[1] != 2)
			complain("1 + 1 is %g: %s", (double)v[0], sl_error_message());
	}
	sl_error_clear();
}

static void all_rounds(void (*around)(void))
{
	for (int i = first_round; i < first_round + rounds; i++) {
		prepare(i);
		around();
		check_pending("afterwards");
	}
}

static void start(void)
{
	struct sl_config config = {.teams = 2};
	if (sl_init(&config) != SL_OK) complain("%s", sl_error_message());
	pool_make();
	sl_block *net = sl_dense(2, .in_units = 3);
	sl_initialize(net);
	sl_checkpoint_save("saved.safetensors", .net = net);
	sl_block_free(net);
	check_pending("at the start");
}

static void stop(void)
{
	check_works();
	pool_free();
	sl_shutdown();
}

static void plain(void)
{
	start();
	all_rounds(one_round);
	stop();
}

static void recorded(void)
{
	SL_RECORD
		one_round();
}
static void recording(void)
{
	start();
	all_rounds(recorded);
	stop();
}

static sl_tensor *traced(sl_tensor *x)
{
	one_round();
	sl_error_clear();
	return x;
}
static void in_a_trace(void)
{
	sl_block *b = sl_lambda("traced", traced);
	SL_SCOPE {
		sl_hybridize(b);
		sl_forward(b, sl_ones(SL_SHAPE(2, 3)));
		sl_error_clear();
	}
	sl_block_free(b);
}
static void tracing(void)
{
	start();
	all_rounds(in_a_trace);
	stop();
}

static void *thread(void *unused)
{
	one_round();
	return unused;
}
static void in_thread(void)
{
	pthread_t t;
	if (pthread_create(&t, NULL, thread, NULL)) return;
	pthread_join(t, NULL);
}
static void second_thread(void)
{
	start();
	all_rounds(in_thread);
	stop();
}

/* Each call before there is an engine; it may start one. */
static void before_init(void)
{
	for (int i = first_round; i < first_round + rounds; i++) {
		prepare(i);
		one_round();
		if (sl_is_initialized()) check_pending("afterwards");
		sl_shutdown();
	}
}

static void after_shutdown(void)
{
	for (int i = first_round; i < first_round + rounds; i++) {
		start();
		prepare(i);
		sl_shutdown();
		one_round();
		if (sl_is_initialized()) check_pending("afterwards");
		sl_error_clear();
		pool_free();
		sl_shutdown();
	}
}

static enum sl_status kernel(const struct sl_op_call *c)
{
	one_round();
	sl_error_clear();
	memcpy(c->out[0].data, c->in[0].data, (size_t)sl_shape_size(c->in[0].shape) * sizeof(float));
	return SL_OK;
}
static const sl_op *callback;
static void in_a_kernel(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(2, 3)), *y = sl_op_apply(callback, &x, 1);
		sl_wait(y);
	}
}
static void in_kernels(void)
{
	start();
	callback = sl_op_register(.name = "calls_back", .args = "x", .nin = 1, .cpu = kernel);
	all_rounds(in_a_kernel);
	stop();
}

static bool get(void *self, struct sl_sample *s)
{
	(void)self;
	if (s->index == 1) one_round();
	sl_error_clear();
	*(float *)s->x = 1;
	return true;
}
static void in_a_get(void)
{
	SL_SCOPE {
		struct sl_batch b;
		sl_dataset *d = sl_dataset_new(.size = 4, .x_shape = SL_SHAPE(1), .get = get);
		sl_loader *l = sl_loader_new(d, .batch_size = 2, .workers = 1);
		while (sl_loader_next(l, &b)) sl_wait(b.x);
		sl_loader_free(l);
		sl_dataset_free(d);
	}
}
static void in_workers(void)
{
	start();
	all_rounds(in_a_get);
	stop();
}

static void in_a_child(void)
{
	start();
	fflush(NULL);
	pid_t p = fork();
	if (p == 0) {
		alarm(PATIENCE);
		for (int i = first_round; i < first_round + rounds; i++) {
			prepare(i);
			one_round();
			sl_error_clear();
		}
		fflush(NULL);
		_exit(0);
	}
	int status = 0;
	if (waitpid(p, &status, 0) != p || status) complain("the forked child ended with %x", (unsigned)status);
	stop();
}

static const struct place {
	const char *name;
	void (*run)(void);
	int part; /* of the rounds */
} places[] = {{"plain", plain, 1},
              {"recording", recording, 2},
              {"tracing", tracing, 2},
              {"second thread", second_thread, 4},
              {"before init", before_init, 8},
              {"after shutdown", after_shutdown, 8},
              {"in a kernel", in_kernels, 4},
              {"in a worker of a loader", in_workers, 4},
              {"in a forked child", in_a_child, 4},
              {0}};

/* ---- processes ----------------------------------------------------------------------------------------------------- */

#ifndef __has_feature
#define __has_feature(x) 0
#endif

static void limit(void)
{
#if !defined __SANITIZE_ADDRESS__ && !__has_feature(address_sanitizer) /* its shadow is larger */
	struct rlimit r = {8LL << 30, 8LL << 30};
	setrlimit(RLIMIT_AS, &r);
#endif
	alarm(PATIENCE);
}

static void in_process(const struct place *p)
{
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		limit();
		p->run();
		fflush(NULL);
		exit(0); /* sanitizers have a status of their own */
	}
	int status = 0;
	waitpid(child, &status, 0);
	if (WIFSIGNALED(status)) complain("signal %d", WTERMSIG(status));
	else if (WEXITSTATUS(status)) complain("exit status %d", WEXITSTATUS(status));
}

int main(int argc, char **argv)
{
	int most = argc > 1 ? atoi(argv[1]) : 40, total = 0, functions = 0;
	const char *only = argc > 2 ? argv[2] : "", *where = argc > 3 ? argv[3] : "", *text = getenv("MISUSE_SEED");
	seed = text ? strtoull(text, NULL, 10) : 0;
	first_round = argc > 4 ? atoi(argv[4]) : 0;
	now = mmap(NULL, sizeof *now, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (const struct one_call *c = all_calls; c->name; c++) {
		if (!strstr(c->name, only)) continue;
		functions++;
		for (const struct place *p = places; p->name; p++) {
			if (!strstr(p->name, where)) continue;
			rounds = argc > 4 ? 1 : (most + p->part - 1) / p->part;
			current = c;
			now->function = c->name;
			now->place = p->name;
			now->failures = 0;
			in_process(p);
			total += now->failures;
		}
	}
	printf("%d functions, %ld calls, %ld errors, the slowest took %.2f s; %d failures\n", functions, now->calls,
	       now->errors, now->slowest, total);
	return total > 0;
}
