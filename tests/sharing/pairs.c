/* Calls every public function beside every other, in two threads, on the same objects: pairs MILLISECONDS [SAMPLE [SEED]],
 * pairs MILLISECONDS FUNCTION FUNCTION [SEED], or, of all pairs in K equal parts, the I-th: pairs MILLISECONDS I/K [SEED].
 * pairs --list prints the functions.
 * Each pair goes on for so long; of all pairs, SAMPLE are tried, 0: all.  No call crashes, hangs, returns a status that
 * there is not, or leaves a damaged file.  A child process tries some pairs; if it ends, the pair that it was at is
 * named, and the next child goes on behind it.  tests/misuse/generate writes the calls. */
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pool.h"
#include "shared.h"

enum { GROUP = 100, PATIENCE = 120 };
const char here[] = "pairs.c:7";
int failures;

static struct {
	long pair, tried, failures;
	_Atomic long calls, errors;
	const char *names[2];
} * now;
static int milliseconds;
static _Thread_local int me;

void complain(const char *format, ...)
{
	va_list args;
	printf("FAIL: %s beside %s: ", now->names[me], now->names[!me]);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	puts("");
	fflush(stdout);
	now->failures++;
}

const char *own_path(const char *name)
{
	static _Thread_local char path[64];
	snprintf(path, sizeof path, "%d-%s", me, name);
	return path;
}

/* ---- a call -------------------------------------------------------------------------------------------------------- */

static void check_error(enum sl_status s)
{
	if (s == SL_OK) return;
	atomic_fetch_add(&now->errors, 1);
#define X(symbol, text)                                                                                                \
	if (s == symbol) return;
	SL_STATUS_LIST(X)
#undef X
	complain("status %d", (int)s);
}

void begin(const char *name)
{
	(void)name;
	sl_error_clear();
	atomic_fetch_add(&now->calls, 1);
}

void end_status(enum sl_status status, int placed)
{
	(void)placed;
	check_error(status);
	sl_error_clear();
}

void end_pointer(const void *result, int placed)
{
	if (!result && placed && sl_error() == SL_OK) complain("NULL without an error");
	end_status(sl_error(), placed);
}

void end_any(void)
{
	end_status(sl_error(), 0);
}

void check_pending(const char *when)
{
	(void)when;
	for (int i = 0; i < 100 && sl_wait_all() != SL_OK; i++) sl_error_clear();
	sl_error_clear();
}

/* ---- a pair -------------------------------------------------------------------------------------------------------- */

static int count(const struct one_call *calls)
{
	int n = 0;
	while (calls[n].name) n++;
	return n;
}

/* Those that are generated, then those that are written by hand. */
static const struct one_call *nth(int i)
{
	int generated = count(all_calls);
	return i < generated ? &all_calls[i] : &calls_by_hand[i - generated];
}

/* What frees an object that others use breaks the contract; results, which are a thread's own, are freed all the time. */
static bool frees(const struct one_call *c)
{
	size_t n = strlen(c->name);
	return !strcmp(c->name + n - 5, "_free") || !strcmp(c->name, "sl_checkpoint_close");
}

static int count_calls(void)
{
	return count(all_calls) + count(calls_by_hand);
}

struct half {
	const struct one_call *call;
	int number;
	uint64_t seed;
	double end;
};

static void *repeat(void *given)
{
	const struct half *h = given;
	me = h->number;
	pool_seed(h->seed);
	do {
		SL_SCOPE
			h->call->call();
		end_any();
		pool_sweep();
	} while (sl_time() < h->end);
	sl_error_clear();
	return NULL;
}

static void check_files(void)
{
	sl_error_clear();
	sl_checkpoint *c = access("0-begun.safetensors", R_OK) ? NULL : sl_checkpoint_open("0-begun.safetensors");
	if (!c && sl_error() == SL_EFORMAT) complain("%s", sl_error_message());
	sl_checkpoint_close(c);
	sl_error_clear();
}

static void try_pair(int i, int k, uint64_t seed)
{
	struct half a = {nth(i), 0, seed, sl_time() + 1e-3 * milliseconds}, b = {nth(k), 1, ~seed, a.end};
	pthread_t other;
	now->names[0] = a.call->name;
	now->names[1] = b.call->name;
	alarm(PATIENCE);
	if (pthread_create(&other, NULL, repeat, &b)) return;
	repeat(&a);
	pthread_join(other, NULL);
	check_pending("afterwards");
	check_files();
}

/* ---- children ------------------------------------------------------------------------------------------------------ */

static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static void child(long first, long last, long sample, uint64_t seed)
{
	int n = count_calls();
	long all = (long)n * n;
	struct sl_config config = {.teams = 2};
	setlinebuf(stdout);
	bool made = false;
	for (now->pair = first; now->pair < last; now->pair++) {
		long p = sample ? (long)(mix(seed + (uint64_t)now->pair) % (uint64_t)all) : now->pair;
		int i = (int)(p / n), k = (int)(p % n);
		if (!sample && i > k) continue; /* the other way round */
		if (frees(nth(i)) || frees(nth(k))) continue;
		if (!sl_is_initialized()) { /* at the beginning, or it was stopped */
			if (made) pool_free();
			sl_init(&config);
			pool_make();
			made = true;
			check_pending("at the start");
		}
		try_pair(i, k, mix(seed ^ (uint64_t)p));
		now->tried++;
	}
	pool_free();
	while (sl_is_initialized()) sl_shutdown();
	fflush(stdout);
	_exit(0);
}

static int find(const char *name)
{
	int i = 0;
	while (i < count_calls() - 1 && strcmp(nth(i)->name, name)) i++;
	return i;
}

/* Two functions by their names, in this process: for a debugger. */
static int only(const char *a, const char *b, uint64_t seed)
{
	struct sl_config config = {.teams = 2};
	sl_init(&config);
	pool_make();
	check_pending("at the start");
	try_pair(find(a), find(b), seed);
	return now->failures != 0;
}

/* I/K: the I-th of K parts of all pairs, of which each pair of two different functions is in one.  Those of the first
 * functions are more: parts have equal numbers of pairs, not of rows. */
static void part(const char *text, long *first, long *last)
{
	long k = 1, i = strtol(text, NULL, 10), n = count_calls(), seen = 0, all = n * (n + 1) / 2;
	sscanf(text, "%ld/%ld", &i, &k);
	*first = *last = 0;
	for (long row = 0; row < n; row++) {
		seen += n - row;
		if (seen <= all * (i - 1) / k) *first = (row + 1) * n;
		if (seen <= all * i / k) *last = (row + 1) * n;
	}
}

int main(int argc, char **argv)
{
	for (int i = 0; argc > 1 && !strcmp(argv[1], "--list") && i < count_calls(); i++) puts(nth(i)->name);
	if (argc > 1 && !strcmp(argv[1], "--list")) return 0;
	milliseconds = argc > 1 ? atoi(argv[1]) : 10;
	const char *slash = argc > 2 ? strchr(argv[2], '/') : NULL;
	long sample = argc > 2 && !slash ? atol(argv[2]) : 0, start = 0, all = sample;
	uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
	if (!sample) all = (long)count_calls() * count_calls();
	if (slash) part(argv[2], &start, &all);
	now = mmap(NULL, sizeof *now, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (now == MAP_FAILED) return 1;
	if (argc > 3 && !strncmp(argv[2], "sl_", 3))
		return only(argv[2], argv[3], argc > 4 ? strtoull(argv[4], NULL, 10) : 1);
	for (long first = start; first < all;) {
		int status;
		long last = first + (sample ? GROUP : GROUP * 10L);
		fflush(NULL);
		pid_t pid = fork();
		if (!pid) child(first, last < all ? last : all, sample, seed);
		if (pid < 0 || waitpid(pid, &status, 0) != pid) return 1;
		first = now->pair;
		if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
		printf("FAIL: %s beside %s: ended with %s %d\n", now->names[0], now->names[1],
		       WIFSIGNALED(status) ? "signal" : "status",
		       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		now->failures++;
		first++;
	}
	printf("%d functions, %ld pairs, %ld calls, %ld errors, %ld failures\n", count_calls(), now->tried, now->calls,
	       now->errors, now->failures);
	return now->failures != 0;
}
