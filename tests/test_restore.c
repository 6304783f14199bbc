/* Calls that change a program's values and may find no memory in between: each allocation of each fails once.  Then it
 * is SL_ENOMEM, and the values are as they were, or the message says that they are not; the next try does what it
 * should.
 */
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <starling.h>

#include "alloc.h"
#include "check.h"
#include "folder.h"

enum { MOST = 400 };

/* What a trial works on. */
struct bench {
	sl_block *net;
	sl_trainer *trainer;
	sl_step *step;
};

struct numbers {
	int count;
	float v[MOST];
};

static sl_block *network(void)
{
	return sl_sequential(sl_dense(5, .in_units = 3, .activation = SL_TANH), sl_dense(2, .in_units = 5));
}

static enum sl_status train_once(struct bench *b)
{
	enum sl_status s = SL_OK;
	SL_SCOPE {
		float v[12];
		for (int i = 0; i < 12; i++) v[i] = (float)(i * 7 % 5) / 5;
		enum sl_dtype dtype = sl_tensor_dtype(sl_param_data(sl_block_find(b->net, "0.weight")));
		sl_tensor *loss = NULL, *x = sl_cast(sl_from(v, SL_SHAPE(4, 3)), dtype);
		SL_RECORD
			loss = sl_l2_loss(sl_forward(b->net, x), sl_ones(SL_SHAPE(4, 2), .dtype = dtype));
		if (loss) s = sl_backward(loss);
		if (loss && s == SL_OK) s = sl_trainer_step(b->trainer, 4);
		if (s == SL_OK) s = sl_error();
	}
	return s;
}

static void make(struct bench *b, uint64_t seed, enum sl_dtype dtype)
{
	sl_seed(seed);
	*b = (struct bench){.net = network()};
	CHECK_OK(sl_initialize(b->net, .init = sl_normal_init(1), .dtype = dtype));
	b->trainer = sl_trainer_new(b->net, sl_adam(.lr = 0.1, .average = 0.5));
	for (int i = 0; i < 3; i++) CHECK_OK(train_once(b));
	CHECK_OK(sl_wait_all());
}

static void drop(struct bench *b)
{
	sl_step_free(b->step);
	sl_trainer_free(b->trainer);
	sl_block_free(b->net);
}

static void read_numbers(struct bench *b, struct numbers *n)
{
	static const char *const paths[] = {"0.weight", "0.bias", "1.weight", "1.bias"};
	n->count = 0;
	for (int i = 0; i < 4; i++)
		SL_SCOPE {
			sl_tensor *t = sl_cast(sl_param_data(sl_block_find(b->net, paths[i])), SL_FLOAT32);
			CHECK_OK(sl_read(t, n->v + n->count, sl_tensor_bytes(t)));
			n->count += (int)sl_tensor_size(t);
		}
}

static bool same(const struct numbers *a, const struct numbers *b)
{
	return a->count == b->count && !memcmp(a->v, b->v, (size_t)a->count * sizeof *a->v);
}

/* ---- the trials -------------------------------------------------------------------------------------------------- */

/* A call that makes one state of another.  In part: it may leave something in between, and says so. */
struct trial {
	const char *name;
	enum sl_dtype dtype;
	enum sl_status (*prepare)(struct bench *b), (*call)(struct bench *b);
	bool in_part;
};

static const char *file(void)
{
	static char path[PATH_MAX];
	return slp_scratch_path("net.safetensors", path);
}

static const char *checkpoint(void)
{
	static char path[PATH_MAX];
	return slp_scratch_path("run.safetensors", path);
}

static enum sl_status nothing(struct bench *b)
{
	(void)b;
	return SL_OK;
}

static enum sl_status averages_in(struct bench *b)
{
	return sl_trainer_use_averages(b->trainer, true);
}

static enum sl_status averages_out(struct bench *b)
{
	return sl_trainer_use_averages(b->trainer, false);
}

static enum sl_status load(struct bench *b)
{
	return sl_load_params(b->net, file());
}

static enum sl_status resume(struct bench *b)
{
	return sl_checkpoint_load(checkpoint(), .trainer = b->trainer);
}

static enum sl_status set(struct bench *b)
{
	enum sl_status s = SL_OK;
	SL_SCOPE
		s = sl_param_set(sl_block_find(b->net, "0.weight"), sl_full(SL_SHAPE(5, 3), 0.5));
	return s;
}

static enum sl_status freeze(struct bench *b)
{
	return sl_freeze(b->net, "0.*");
}

static enum sl_status unfreeze(struct bench *b)
{
	return sl_unfreeze(b->net, "0.*");
}

static enum sl_status group(struct bench *b)
{
	return sl_trainer_group(b->trainer, "*bias", .lr_scale = 0.5);
}

static enum sl_status hybridize(struct bench *b)
{
	return sl_hybridize(b->net);
}

static const struct trial trials[] = {
        {"averages stand in", SL_FLOAT32, nothing, averages_in, false},
        {"averages of half types stand in", SL_BFLOAT16, nothing, averages_in, false},
        {"averages go again", SL_FLOAT32, averages_in, averages_out, false},
        {"averages of half types go again", SL_BFLOAT16, averages_in, averages_out, false},
        {"parameters from a file", SL_FLOAT32, nothing, load, false},
        {"parameters of a half type from a file", SL_BFLOAT16, nothing, load, false},
        {"a checkpoint", SL_FLOAT32, nothing, resume, true},
        {"a parameter is set", SL_FLOAT32, nothing, set, false},
        {"freezing", SL_FLOAT32, nothing, freeze, false},
        {"unfreezing", SL_FLOAT32, freeze, unfreeze, false},
        {"a group", SL_FLOAT32, nothing, group, false},
        {"hybrid", SL_FLOAT32, nothing, hybridize, false},
        {0},
};

/* What the call should lead to: the values at once, and after one more step, where steps are possible. */
static void go_on(struct bench *b, struct numbers *n)
{
	if (sl_trainer_use_averages(b->trainer, false) != SL_OK) CHECK_SAYING(false, "%s", sl_error_message());
	CHECK_OK(train_once(b));
	read_numbers(b, n);
}

static long expect(const struct trial *t, struct numbers *after, struct numbers *later)
{
	struct bench b;
	make(&b, 3, t->dtype);
	CHECK_OK(t->prepare(&b));
	CHECK_OK(sl_wait_all());
	atomic_store(&slp_fail_alloc, LONG_MAX);
	CHECK_OK(t->call(&b));
	CHECK_OK(sl_wait_all());
	long count = LONG_MAX - atomic_exchange(&slp_fail_alloc, 0);
	read_numbers(&b, after);
	go_on(&b, later);
	drop(&b);
	return count;
}

static void fail_one(const struct trial *t, long k, const struct numbers *after, const struct numbers *later)
{
	struct bench b;
	struct numbers before, n;
	make(&b, 3, t->dtype);
	CHECK_OK(t->prepare(&b));
	CHECK_OK(sl_wait_all());
	read_numbers(&b, &before);
	atomic_store(&slp_fail_alloc, k);
	enum sl_status s = t->call(&b), then = s == SL_OK ? sl_wait_all() : s;
	atomic_store(&slp_fail_alloc, 0);
	CHECK_SAYING(then == SL_OK || then == SL_ENOMEM, "%s, allocation %ld: %s", t->name, k, sl_error_message());
	bool says = strstr(sl_error_message(), "only partly restored") != NULL;
	sl_error_clear();
	while (sl_wait_all() != SL_OK) continue; /* each is reported once */
	if (s != SL_OK && !(t->in_part && says)) {
		read_numbers(&b, &n);
		CHECK_SAYING(same(&n, &before), "%s, allocation %ld: values have changed", t->name, k);
	}
	if (then != SL_OK)
		CHECK_SAYING(t->call(&b) == SL_OK, "%s, after allocation %ld: %s", t->name, k, sl_error_message());
	read_numbers(&b, &n);
	CHECK_SAYING(same(&n, after), "%s, after allocation %ld: other values", t->name, k);
	go_on(&b, &n);
	CHECK_SAYING(same(&n, later), "%s, after allocation %ld: another step", t->name, k);
	drop(&b);
	CHECK_OK(sl_wait_all());
}

static void fail_each(const struct trial *t)
{
	struct numbers after, later;
	long count = expect(t, &after, &later);
	for (long k = 1; k <= count; k++) fail_one(t, k, &after, &later);
	printf("  %s: %ld allocations have failed\n", t->name, count);
}

static void test_trials(void)
{
	struct bench other;
	make(&other, 5, SL_FLOAT32);
	CHECK_OK(sl_save_params(other.net, file()));
	CHECK_OK(sl_checkpoint_save(checkpoint(), .trainer = other.trainer));
	drop(&other);
	for (const struct trial *t = trials; t->name; t++) fail_each(t);
}

static int start(void)
{
	return slp_scratch_make() || slp_start_engine();
}

static int stop(void)
{
	int status = slp_stop_engine();
	return slp_scratch_remove() || status;
}

int main(int argc, char **argv)
{
	static const struct slp_test tests[] = {{"each call", test_trials}, {0}};
	static const struct slp_suite suites[] = {{.name = "restore", .start = start, .stop = stop, .tests = tests},
	                                          {0}};
	return slp_test_main(argc, argv, suites);
}
