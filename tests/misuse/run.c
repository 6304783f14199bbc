/* Calls every public function with anything, in many places: each call ends in time with a status that there is, an
 * error says where, and the engine works afterwards.  A child process calls a few functions in one place, one after the
 * other, as to start an engine and to look for leaks takes longer than the calls; a crash is told of the function that
 * was called, and those after it go on in a new process: run [ROUNDS [FUNCTION [PLACE [ROUND]]]].  In the environment
 * MISUSE_SEED makes other calls, and MISUSE_TOGETHER says how many functions share a process; with 1, none do. */
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
	const struct one_call *next; /* what the child has not called */
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

/* ---- a call ------------------------------------------------------------------------------------------------------ */

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

/* ---- places ------------------------------------------------------------------------------------------------------ */

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

static void plain(void)
{
	one_round();
	check_pending("afterwards");
}

static void recording(void)
{
	SL_RECORD
		one_round();
	check_pending("afterwards");
}

static sl_tensor *traced(sl_tensor *x)
{
	one_round();
	sl_error_clear();
	return x;
}
static void tracing(void)
{
	sl_block *b = sl_lambda("traced", traced);
	SL_SCOPE {
		sl_hybridize(b);
		sl_forward(b, sl_ones(SL_SHAPE(2, 3)));
		sl_error_clear();
	}
	sl_block_free(b);
	check_pending("afterwards");
}

static void *thread(void *unused)
{
	one_round();
	return unused;
}
static void second_thread(void)
{
	pthread_t t;
	if (pthread_create(&t, NULL, thread, NULL)) return;
	pthread_join(t, NULL);
	check_pending("afterwards");
}

/* Each call before there is an engine, or when there is none any more; it may start one. */
static void without_engine(void)
{
	one_round();
	if (sl_is_initialized()) check_pending("afterwards");
	sl_error_clear();
	sl_shutdown();
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
	if (!callback) callback = sl_op_register(.name = "calls_back", .args = "x", .nin = 1, .cpu = kernel);
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(2, 3)), *y = sl_op_apply(callback, &x, 1);
		sl_wait(y);
	}
	check_pending("afterwards");
}

static bool get(void *self, struct sl_sample *s)
{
	(void)self;
	if (s->index == 1) one_round();
	sl_error_clear();
	*(float *)s->x = 1;
	return true;
}
static void in_a_worker(void)
{
	SL_SCOPE {
		struct sl_batch b;
		sl_dataset *d = sl_dataset_new(.size = 4, .x_shape = SL_SHAPE(1), .get = get);
		sl_loader *l = sl_loader_new(d, .batch_size = 2, .workers = 1);
		while (sl_loader_next(l, &b)) sl_wait(b.x);
		sl_loader_free(l);
		sl_dataset_free(d);
	}
	check_pending("afterwards");
}

static void in_a_child(void)
{
	fflush(NULL);
	pid_t p = fork();
	if (p == 0) {
		alarm(PATIENCE);
		one_round();
		sl_error_clear();
		fflush(NULL);
		_exit(0);
	}
	int status = 0;
	if (waitpid(p, &status, 0) != p || status) complain("the forked child ended with %x", (unsigned)status);
}

enum engine { RUNS, NOT_YET, NO_LONGER };
static const struct place {
	const char *name;
	void (*call)(void);
	int part; /* of the rounds */
	enum engine engine;
} places[] = {{"plain", plain, 1, RUNS},
              {"recording", recording, 2, RUNS},
              {"tracing", tracing, 2, RUNS},
              {"second thread", second_thread, 4, RUNS},
              {"before init", without_engine, 8, NOT_YET},
              {"after shutdown", without_engine, 8, NO_LONGER},
              {"in a kernel", in_a_kernel, 4, RUNS},
              {"in a worker of a loader", in_a_worker, 4, RUNS},
              {"in a forked child", in_a_child, 4, RUNS},
              {0}};

/* ---- processes --------------------------------------------------------------------------------------------------- */

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

static struct {
	const char *function, *place;
	int together;
} asked = {"", "", 24};

static bool is_asked(const struct one_call *c)
{
	return strstr(c->name, asked.function);
}

static void call_in(const struct place *p, const struct one_call *c)
{
	current = c;
	now->function = c->name;
	now->next = c + 1;
	alarm(PATIENCE);
	for (int i = first_round; i < first_round + rounds; i++) {
		prepare(i);
		p->call();
	}
	if (p->engine == RUNS) check_works();
}

static void child(const struct place *p, const struct one_call *c)
{
	limit();
	if (p->engine != NOT_YET) start();
	if (p->engine == NO_LONGER) sl_shutdown();
	for (int i = 0; c->name && i < asked.together; c++)
		if (is_asked(c)) call_in(p, c), i++;
	now->next = c;
	alarm(PATIENCE);
	pool_free();
	sl_shutdown();
	fflush(NULL);
	exit(0); /* sanitizers have a status of their own */
}

/* From this function on; returns the first that was not called. */
static const struct one_call *in_process(const struct place *p, const struct one_call *c)
{
	fflush(NULL);
	now->function = c->name;
	now->next = c + 1;
	pid_t pid = fork();
	if (pid == 0) child(p, c);
	int status = 0;
	if (pid < 0 || waitpid(pid, &status, 0) != pid) complain("no process");
	if (WIFSIGNALED(status)) complain("signal %d, in the process that began with %s", WTERMSIG(status), c->name);
	else if (WEXITSTATUS(status))
		complain("exit status %d, in the process that began with %s", WEXITSTATUS(status), c->name);
	return now->next;
}

static void call_all(const struct place *p, int most)
{
	rounds = (most + p->part - 1) / p->part;
	now->place = p->name;
	for (const struct one_call *c = all_calls; c->name;)
		if (is_asked(c)) c = in_process(p, c);
		else c++;
}

static int number(const char *name, int otherwise)
{
	const char *text = getenv(name);
	return text ? atoi(text) : otherwise;
}

int main(int argc, char **argv)
{
	int most = argc > 1 ? atoi(argv[1]) : 40, functions = 0;
	if (argc > 2) asked.function = argv[2];
	if (argc > 3) asked.place = argv[3];
	if (argc > 4) first_round = atoi(argv[4]), most = 1;
	asked.together = number("MISUSE_TOGETHER", asked.together);
	seed = (uint64_t)number("MISUSE_SEED", 0);
	now = mmap(NULL, sizeof *now, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (const struct one_call *c = all_calls; c->name; c++) functions += is_asked(c);
	for (const struct place *p = places; p->name; p++)
		if (strstr(p->name, asked.place)) call_all(p, most);
	printf("%d functions, %ld calls, %ld errors, the slowest took %.2f s; %d failures\n", functions, now->calls,
	       now->errors, now->slowest, now->failures);
	return now->failures > 0;
}
