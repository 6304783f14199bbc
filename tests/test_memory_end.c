/* Main memory's end where the heap is in pieces, for slices, views and loaders: under ulimit -v and ulimit -d.
 * An error at once that says how much is there, no hang; what came before is whole. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "idx_files.h"

enum { MIB = 1 << 20, MOST = 1000, PIECE = 60000, PIECES = 12000, SAMPLES = 1300 };

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
static const bool may_limit = false; /* these take address space as they please */
#else
static const bool may_limit = true;
#endif

static const struct kind {
	const char *name;
	int resource, column; /* of /proc/self/statm */
} kinds[] = {{"ulimit -v", RLIMIT_AS, 0}, {"ulimit -d", RLIMIT_DATA, 5}};

static void set_limit(const struct kind *kind, rlim_t bytes)
{
	struct rlimit r;
	CHECK(!getrlimit(kind->resource, &r));
	r.rlim_cur = bytes < r.rlim_max ? bytes : r.rlim_max;
	CHECK(!setrlimit(kind->resource, &r));
}

/* So many bytes more than are used. */
static void limit(const struct kind *kind, rlim_t more)
{
	unsigned long long pages[6] = {0};
	FILE *f = fopen("/proc/self/statm", "r");
	for (int i = 0; f && i < 6; i++) CHECK(fscanf(f, "%llu", &pages[i]) == 1);
	if (f) fclose(f);
	set_limit(kind, (rlim_t)pages[kind->column] * (rlim_t)sysconf(_SC_PAGESIZE) + more);
	usleep(200000); /* how much there is, is not read more than ten times a second */
}

static void check_end(const char *what, double since)
{
	double seconds = sl_time() - since;
	enum sl_status s = sl_error() != SL_OK ? sl_error() : sl_wait_all();
	CHECK_SAYING(s == SL_ENOMEM, "%s: status %d, %s", what, s, sl_error_message());
	CHECK_SAYING(strstr(sl_error_message(), " available (limit: ") != NULL, "%s: %s", what, sl_error_message());
	CHECK_SAYING(seconds < SLP_PATIENCE, "%s: %g s", what, seconds); /* on an idle machine less than 2 */
	printf("  %s: %.3f s\n", what, seconds);
	while (sl_wait_all() != SL_OK) continue; /* each is reported once */
	sl_error_clear();
}

static void check_usable(sl_tensor *before)
{
	CHECK_ALL(before, 3);
	SL_SCOPE
		CHECK_ALL(sl_add(before, before), 6);
	CHECK_OK(sl_wait_all());
}

/* ---- a heap in pieces -------------------------------------------------------------------------------------------- */

static char *pieces[PIECES];

static void make_pieces(void)
{
	for (int i = 0; i < PIECES; i++) {
		pieces[i] = malloc(PIECE);
		if (pieces[i]) memset(pieces[i], i, PIECE);
	}
	for (int i = 0; i < PIECES; i += 2) {
		free(pieces[i]);
		pieces[i] = NULL;
	}
}

static void free_pieces(void)
{
	for (int i = 0; i < PIECES; i++) free(pieces[i]);
}

/* 360 MB are free in the heap, and none of its pieces has room for a tensor of 126, nor has all that the pools keep. */
static void end_in_pieces(const struct kind *kind, sl_tensor *before)
{
	make_pieces();
	limit(kind, 16 * MIB);
	double start = sl_time();
	sl_tensor *t = sl_ones(SL_SHAPE(30 * MIB));
	CHECK_SAYING(!t || sl_wait(t) != SL_OK, "%s: a tensor that has no room", kind->name);
	check_end("a heap in pieces", start);
	check_usable(before);
	set_limit(kind, RLIM_INFINITY);
	free_pieces();
	CHECK_ALL(sl_sum(sl_ones(SL_SHAPE(30 * MIB))), 30 * MIB);
}

/* ---- slices and views -------------------------------------------------------------------------------------------- */

/* Views take no memory, and copies that is no longer there. */
static void end_of_slices(const struct kind *kind, sl_tensor *before)
{
	sl_tensor *x = sl_ones(SL_SHAPE(1024, 4096));
	CHECK_OK(sl_wait(x));
	limit(kind, 64 * MIB);
	int n = 0;
	double start = sl_time();
	for (; n < MOST; n++) {
		sl_tensor *view = sl_reshape(sl_rows(x, n % 512, n % 512 + 512), SL_SHAPE(256, 8192));
		CHECK_SAYING(view != NULL, "%s: %s", kind->name, sl_error_message());
		start = sl_time();
		if (!sl_slice(view, 1, 0, 8192, 2)) break;
	}
	CHECK_SAYING(n > 2 && n < MOST, "%s: %d slices", kind->name, n);
	check_end("slices", start);
	check_usable(before);
	CHECK_ALL(sl_rows(x, 5, 6), 1);
	set_limit(kind, RLIM_INFINITY);
}

/* ---- loaders ----------------------------------------------------------------------------------------------------- */

/* Batches that are all kept; once there is memory again the loader goes on. */
static void end_of_batches(const struct kind *kind, sl_tensor *before)
{
	sl_dataset *d = idx_sample_set(SAMPLES);
	sl_loader *l = sl_loader_new(d, .batch_size = SAMPLES, .shuffle = true, .seed = 3);
	struct sl_batch b;
	int n = 0;
	double start = sl_time();
	limit(kind, 16 * MIB);
	SL_SCOPE {
		for (; n < 100 * MOST; n++) {
			start = sl_time();
			if (!sl_loader_next(l, &b) && sl_error() != SL_OK) break;
		}
		CHECK_SAYING(n > 2 && n < 100 * MOST, "%s: %d batches", kind->name, n);
		check_end("batches", start);
	}
	check_usable(before);
	set_limit(kind, RLIM_INFINITY);
	SL_SCOPE {
		bool there = sl_loader_next(l, &b) ||
		             (sl_error() == SL_OK && sl_loader_next(l, &b)); /* an epoch may be over */
		CHECK_SAYING(there && sl_wait(b.x) == SL_OK, "%s: %s", kind->name, sl_error_message());
	}
	sl_loader_free(l);
	sl_dataset_free(d);
}

static void test_ends(void)
{
	for (size_t i = 0; may_limit && i < sizeof kinds / sizeof *kinds; i++) {
		set_limit(&kinds[i], (rlim_t)1 << 40); /* as a rule one is there when a program starts */
		slp_begin((struct sl_config){.teams = 1});
		SL_SCOPE {
			sl_tensor *before = sl_full(SL_SHAPE(1000), 3);
			check_usable(before);
			end_of_slices(&kinds[i], before);
			end_of_batches(&kinds[i], before);
			end_in_pieces(&kinds[i], before);
		}
		slp_end_well();
	}
}

static const struct slp_test tests[] = {{"ends", test_ends}, {0}};

int main(int argc, char **argv)
{
	return slp_test_main(argc, argv,
	                     (const struct slp_suite[]){
	                             {.name = "memory's end", .tests = tests, .before = NULL, .after = slp_end}, {0}});
}
