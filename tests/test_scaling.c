/* Loss scaling: small gradients survive, steps that overflow change nothing, the scale grows and backs off; in files.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "folder.h"
#include "starling.h"

#define REFUSED(...)                                                                                                   \
	do {                                                                                                           \
		CHECK_STATUS(__VA_ARGS__);                                                                             \
		sl_error_clear();                                                                                      \
	} while (0)

/* y = w·x with w at 1, loss y·t: the gradient by w is x·t, in float16 x·(scale·t). */
enum way { EAGER, HYBRID, STEP, SHARDS, WAYS };
struct run {
	sl_block *net;
	sl_trainer *trainer;
	sl_step *step;
	enum way way;
	enum sl_dtype dtype; /* of the network */
	bool autocast;
};

static sl_tensor *product(const char *at, sl_tensor *y, sl_tensor *target)
{
	return sl_mul_at(at, y, target);
}

static struct run run_new(enum way way, bool autocast, struct sl_optimizer optimizer, int accumulate)
{
	struct run r = {.net = sl_dense(1, .no_bias = true, .in_units = 1), .way = way, .autocast = autocast};
	r.dtype = autocast ? SL_FLOAT32 : SL_FLOAT16;
	CHECK_OK(sl_initialize(r.net, .init = sl_ones_init(), .dtype = r.dtype));
	if (way == HYBRID) CHECK_OK(sl_hybridize(r.net));
	r.trainer = sl_trainer_new(r.net, optimizer);
	if (way >= STEP) r.step = sl_step_compile(r.net, product, r.trainer, .accumulate = accumulate);
	return r;
}

static void run_free(struct run *r)
{
	sl_step_free(r->step);
	sl_trainer_free(r->trainer);
	sl_block_free(r->net);
}

static enum sl_status step_eagerly(struct run *r, sl_tensor *x, sl_tensor *t)
{
	sl_tensor *loss = NULL;
	SL_RECORD
		loss = sl_mul(sl_forward(r->net, x), t);
	enum sl_status s = sl_backward_heads(&loss, 1, .scale = sl_trainer_loss_scale(r->trainer));
	return s == SL_OK ? sl_trainer_step(r->trainer, 1) : s;
}

static enum sl_status step_shards(struct run *r, sl_tensor *x, sl_tensor *t)
{
	sl_tensor *xs[2] = {x, x}, *ts[2] = {t, t};
	return sl_step_run_shards(r->step, 2, xs, ts, NULL, NULL);
}

static enum sl_status step_once(struct run *r, sl_tensor *x, sl_tensor *t)
{
	if (r->way == SHARDS) return step_shards(r, x, t);
	if (r->way == STEP) return sl_step_run(r->step, x, t, NULL) ? SL_OK : sl_error();
	return step_eagerly(r, x, t);
}

static void go(struct run *r, double x, double t, int steps)
{
	for (int i = 0; i < steps; i++)
		SL_SCOPE {
			sl_tensor *in = sl_full(SL_SHAPE(1, 1), x, .dtype = r->dtype);
			sl_tensor *target = sl_full(SL_SHAPE(1, 1), t, .dtype = r->dtype);
			if (r->autocast) SL_AUTOCAST(SL_FLOAT16) CHECK_OK(step_once(r, in, target));
			else CHECK_OK(step_once(r, in, target));
		}
}

static double weight(const struct run *r)
{
	double w = NAN;
	SL_SCOPE
		w = sl_item(sl_cast(sl_param_data(sl_block_find(r->net, "weight")), SL_FLOAT32));
	return w;
}

/* x = 2^-10, t = 2^-16: their product is none in float16. */
static void test_small_gradients(void)
{
	for (enum way way = EAGER; way < WAYS; way++)
		for (int scaled = 0; scaled < 2; scaled++) {
			struct run r = run_new(way, false,
			                       sl_sgd(.lr = 0x1p20, .loss_scaling = {.start = scaled * 0x1p15}), 0);
			go(&r, 0x1p-10, 0x1p-16, 8);
			CHECK_SAYING(weight(&r) == (scaled ? 0.875 : 1), "way %d, %s: %.9g", way,
			             scaled ? "scaled" : "not scaled", weight(&r));
			CHECK(sl_trainer_loss_scale(r.trainer) == (scaled ? 0x1p15 : 1) &&
			      sl_trainer_overflows(r.trainer) == 0);
			run_free(&r);
		}
}

/* By w, the gradient is made by a product in float16, which overflows; what is in float32 does not. */
static void test_autocast(void)
{
	for (enum way way = EAGER; way < WAYS; way++) {
		struct run r = run_new(way, true, sl_sgd(.lr = 0x1p-3, .loss_scaling = {.start = 0x1p17}), 0);
		go(&r, 1, 1, 6);
		CHECK_SAYING(sl_trainer_overflows(r.trainer) == 2 && sl_trainer_steps(r.trainer) == 4 &&
		                     weight(&r) == 0.5,
		             "way %d: %d left out, %d steps, %.9g", way, (int)sl_trainer_overflows(r.trainer),
		             (int)sl_trainer_steps(r.trainer), weight(&r));
		CHECK(sl_trainer_loss_scale(r.trainer) == 0x1p15);
		run_free(&r);
	}
}

/* What a trainer should make of gradients of 1 in float16, where 65536 is infinite. */
struct model {
	double scale, parts; /* so many gradients are added in float16 */
	int good, every, overflows, steps;
};
static void model_step(struct model *m)
{
	if (m->scale * m->parts > 65504) {
		m->scale /= 2;
		m->good = 0;
		m->overflows++;
		return;
	}
	m->steps++;
	if (++m->good < m->every) return;
	m->scale *= 2;
	m->good = 0;
}

static void check_model(const struct run *r, const struct model *m, const char *what)
{
	CHECK_SAYING(sl_trainer_loss_scale(r->trainer) == m->scale &&
	                     sl_trainer_overflows(r->trainer) == m->overflows &&
	                     sl_trainer_steps(r->trainer) == m->steps,
	             "%s, way %d: scale %g, %d left out, %d steps, where %g, %d, %d are right", what, r->way,
	             sl_trainer_loss_scale(r->trainer), (int)sl_trainer_overflows(r->trainer),
	             (int)sl_trainer_steps(r->trainer), m->scale, m->overflows, m->steps);
}

static const struct sl_optimizer optimizers[] = {
        {.kind = SL_SGD, .lr = 1e-3, .momentum = 0.9, .weight_decay = 0.01},
        {.kind = SL_ADAM, .lr = 1e-3, .average = 0.9},
        {.kind = SL_SGD, .lr = 1e-3, .clip_norm = 0.5, .schedule = {SL_STEPS, .every = 3, .factor = 0.5}},
        {.kind = SL_RMSPROP, .lr = 1e-3, .clip_value = 0.25},
};
enum { OPTIMIZERS = sizeof optimizers / sizeof *optimizers };

/* A step that is left out changes nothing: the others make what they make without loss scaling, bit by bit. */
static void test_left_out(void)
{
	for (int o = 0; o < OPTIMIZERS; o++)
		for (enum way way = EAGER; way < WAYS; way++) {
			struct sl_optimizer scaled = optimizers[o];
			scaled.loss_scaling = (struct sl_loss_scaling){.start = 0x1p17, .every = 3};
			struct model m = {.scale = 0x1p17, .parts = way == SHARDS ? 2 : 1, .every = 3};
			struct run r = run_new(way, false, scaled, 0), plain = run_new(way, false, optimizers[o], 0);
			for (int i = 0; i < 20; i++) {
				go(&r, 1, 1, 1);
				model_step(&m);
				check_model(&r, &m, "step");
			}
			go(&plain, 1, 1, m.steps);
			CHECK_SAYING(weight(&r) == weight(&plain) && m.overflows >= 6,
			             "optimiser %d, way %d: %.9g, %.9g", o, way, weight(&r), weight(&plain));
			run_free(&r);
			run_free(&plain);
		}
}

/* An infinite micro-batch leaves out the step of both. */
static void test_accumulated(void)
{
	struct run r = run_new(STEP, false, sl_sgd(.lr = 0x1p-3, .loss_scaling = {.start = 0x1p10}), 2);
	go(&r, 1, 1, 2);
	go(&r, 1, 1, 1);
	go(&r, 1, 1024, 1); /* 2^20 */
	CHECK_SAYING(weight(&r) == 0.875 && sl_trainer_overflows(r.trainer) == 1, "%.9g", weight(&r));
	go(&r, 1, 1, 2);
	CHECK_SAYING(weight(&r) == 0.75 && sl_trainer_loss_scale(r.trainer) == 512, "%.9g", weight(&r));
	run_free(&r);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static void save_and_load(const struct run *from, const struct run *to, bool checkpoint)
{
	char params[PATH_MAX], states[PATH_MAX];
	slp_scratch_path("net.safetensors", params);
	slp_scratch_path("states.safetensors", states);
	if (checkpoint) {
		CHECK_OK(sl_checkpoint_save(states, .net = from->net, .trainer = from->trainer));
		CHECK_OK(sl_checkpoint_load(states, .net = to->net, .trainer = to->trainer));
		return;
	}
	CHECK_OK(sl_save_params(from->net, params));
	CHECK_OK(sl_trainer_save(from->trainer, states));
	CHECK_OK(sl_load_params(to->net, params));
	CHECK_OK(sl_trainer_load(to->trainer, states));
}

/* A run goes on as one that was never stopped: between two growths, in a micro-batch. */
static void test_resume(void)
{
	for (int checkpoint = 0; checkpoint < 2; checkpoint++)
		for (enum way way = EAGER; way < WAYS; way++)
			for (int accumulate = 1; accumulate <= (way == STEP ? 3 : 1); accumulate += 2) {
				struct sl_optimizer o = optimizers[0];
				o.loss_scaling = (struct sl_loss_scaling){.start = 0x1p17, .every = 3};
				struct run a = run_new(way, false, o, accumulate);
				o.loss_scaling.start = 8;
				struct run b = run_new(way, false, o, accumulate);
				go(&b, 1, 1, 5); /* its program and its states are there already */
				go(&a, 1, 1, 7);
				save_and_load(&a, &b, checkpoint);
				go(&a, 1, 1, 14);
				go(&b, 1, 1, 14);
				CHECK_SAYING(weight(&a) == weight(&b), "way %d: %.9g, %.9g", way, weight(&a),
				             weight(&b));
				CHECK(sl_trainer_loss_scale(a.trainer) == sl_trainer_loss_scale(b.trainer));
				CHECK(sl_trainer_overflows(a.trainer) == sl_trainer_overflows(b.trainer) &&
				      sl_trainer_overflows(a.trainer) > 1);
				CHECK(sl_trainer_steps(a.trainer) == sl_trainer_steps(b.trainer));
				run_free(&a);
				run_free(&b);
			}
}

static void test_other_files(void)
{
	char states[PATH_MAX];
	slp_scratch_path("states.safetensors", states);
	struct run on = run_new(EAGER, false, sl_sgd(.loss_scaling = {.start = 8}), 0),
	           off = run_new(EAGER, false, sl_sgd(), 0);
	struct run other = run_new(EAGER, false, sl_sgd(.loss_scaling = {.start = 8, .every = 7}), 0);
	CHECK_OK(sl_trainer_save(on.trainer, states));
	REFUSED(sl_trainer_load(off.trainer, states), SL_EINVAL, "loss scaling in the file, none here");
	CHECK_OK(sl_trainer_save(off.trainer, states));
	REFUSED(sl_trainer_load(on.trainer, states), SL_EINVAL, "no loss scaling in the file");
	CHECK_OK(sl_checkpoint_save(states, .trainer = on.trainer));
	REFUSED(sl_checkpoint_load(states, .trainer = off.trainer), SL_EINVAL,
	        "loss scaling: on in the file, off here");
	REFUSED(sl_checkpoint_load(states, .trainer = other.trainer), SL_EINVAL, "every is 2000 in the file, 7 here");
	CHECK_OK(sl_checkpoint_save(states, .trainer = off.trainer));
	REFUSED(sl_checkpoint_load(states, .trainer = on.trainer), SL_EINVAL, "loss scaling: off in the file, on here");
	run_free(&on);
	run_free(&off);
	run_free(&other);
}

/* ---- scales of gradients, statistics, mistakes ------------------------------------------------------------------- */

/* A gradient knows its scale: a trainer without loss scaling divides by it, too; two scales in one step are none. */
static void test_gradients_know(void)
{
	sl_block *net =
	        sl_sequential(sl_dense(1, .no_bias = true, .in_units = 1), sl_dense(1, .no_bias = true, .in_units = 1));
	CHECK_OK(sl_initialize(net, .init = sl_ones_init(), .gather = 2));
	sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.25));
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(1, 1)), *y = NULL;
		for (int i = 0; i < 2; i++) {
			SL_RECORD
				y = sl_forward(net, x);
			CHECK_OK(sl_backward_heads(&y, 1, .scale = 8));
		}
		CHECK(sl_item(sl_param_grad(sl_block_find(net, "1.weight"))) == 16);
		CHECK_OK(sl_trainer_step(trainer, 2));
		CHECK(sl_item(sl_param_data(sl_block_find(net, "1.weight"))) == 0.75);
		for (int i = 0; i < 2; i++) {
			SL_RECORD
				y = sl_forward(net, x);
			CHECK_OK(sl_backward_heads(&y, 1, .scale = 1 + i));
		}
		REFUSED(sl_trainer_step(trainer, 1), SL_ESTATE, "scaled by different numbers", "weight");
		SL_RECORD
			y = sl_forward(net, x);
		REFUSED(sl_backward_heads(&y, 1, .scale = INFINITY), SL_EINVAL, ".scale is inf");
	}
	sl_trainer_free(trainer);
	sl_block_free(net);
}

static void test_statistics(void)
{
	char *text = NULL;
	size_t size;
	struct sl_stats stats;
	sl_stats_reset();
	struct run r = run_new(EAGER, false, sl_sgd(.loss_scaling = {.start = 0x1p18}), 0);
	go(&r, 1, 1, 5);
	sl_stats_get(&stats);
	CHECK_SAYING(stats.overflows == 3 && stats.loss_scale == 0x1p15, "%d, %g", (int)stats.overflows,
	             stats.loss_scale);
	FILE *f = open_memstream(&text, &size);
	sl_stats_print(f);
	fclose(f);
	CHECK_SAYING(strstr(text, "losses scaled by 32768; 3 steps left out") != NULL, "%s", text);
	free(text);
	run_free(&r);
	CHECK(sl_trainer_loss_scale(NULL) == 1 && sl_trainer_overflows(NULL) == 0);
}

static void test_options(void)
{
	const struct sl_loss_scaling wrong[] = {{.start = -1},      {.start = NAN},     {.start = INFINITY},
	                                        {1, .growth = 0.5}, {1, .growth = NAN}, {1, .backoff = 1},
	                                        {1, .backoff = -1}, {1, .every = -1}};
	sl_block *net = sl_dense(1, .in_units = 1);
	CHECK_OK(sl_initialize(net));
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		CHECK(!sl_trainer_new(net, sl_sgd(.loss_scaling = wrong[i])));
		REFUSED(sl_error(), SL_EINVAL, ".loss_scaling.");
	}
	sl_block_free(net);
}

static const struct slp_test tests[] = {{"small gradients", test_small_gradients},
                                        {"autocast", test_autocast},
                                        {"left out", test_left_out},
                                        {"accumulated", test_accumulated},
                                        {"resume", test_resume},
                                        {"other files", test_other_files},
                                        {"gradients know", test_gradients_know},
                                        {"statistics", test_statistics},
                                        {"options", test_options},
                                        {0}};

int main(int argc, char **argv)
{
	return slp_test_main(argc, argv,
	                     (const struct slp_suite[]){{.name = "scaling",
	                                                 .tests = tests,
	                                                 .start = slp_start_with_scratch,
	                                                 .stop = slp_stop_with_scratch},
	                                                {0}});
}
