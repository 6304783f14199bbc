/* Recording and going back: modes, and which gradients come out. */
#include <math.h>
#include <pthread.h>

#include <starling/own.h>

#include "check.h"

static void clear(void)
{
	sl_error_clear();
}

/* ---- modes ------------------------------------------------------------------------------------------------------- */

static bool modes_are(bool recording, bool training)
{
	return sl_is_recording() == recording && sl_is_training() == training;
}

static bool leave_by_return(void)
{
	SL_RECORD {
		SL_INFERENCE {
			if (modes_are(true, false)) return true;
		}
	}
	return false;
}

static void test_modes(void)
{
	CHECK(modes_are(false, false));
	SL_RECORD {
		CHECK(modes_are(true, true));
		SL_PAUSE {
			CHECK(modes_are(false, false));
			SL_TRAINING
				CHECK(modes_are(false, true));
			SL_RECORD
				SL_INFERENCE
					CHECK(modes_are(true, false));
			CHECK(modes_are(false, false));
		}
		SL_INFERENCE
			CHECK(modes_are(true, false));
		CHECK(modes_are(true, true));
	}
	CHECK(modes_are(false, false));
	SL_TRAINING
		CHECK(modes_are(false, true));
}

static void test_leaving_modes(void)
{
	CHECK(leave_by_return());
	CHECK(modes_are(false, false));
	SL_RECORD {
		SL_PAUSE
			break;
		CHECK(modes_are(true, true));
		goto out;
	}
out:
	CHECK(modes_are(false, false));
	for (int i = 0; i < 3; i++)
		SL_RECORD {
			if (i < 2) continue;
			CHECK(modes_are(true, true));
		}
	CHECK(modes_are(false, false));
}

static void *other_thread(void *arg)
{
	*(bool *)arg = modes_are(false, false);
	return NULL;
}

static void test_modes_of_threads(void)
{
	bool ok = false;
	SL_RECORD {
		pthread_t thread;
		pthread_create(&thread, NULL, other_thread, &ok);
		pthread_join(thread, NULL);
	}
	CHECK(ok);
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

static void test_simple(void)
{
	SL_SCOPE {
		sl_tensor *x = slp_leaf(3, 1), *y = NULL;
		CHECK_ALL(sl_grad(x), 0);
		SL_RECORD
			y = sl_mul(sl_add_scalar(x, 1), x); /* x² + x */
		CHECK_OK(sl_backward(y));
		CHECK_VALUES(sl_grad(x), 3, 5, 7);
		CHECK(sl_tensor_dtype(sl_grad(x)) == SL_FLOAT64 &&
		      sl_shape_equal(sl_tensor_shape(sl_grad(x)), SL_SHAPE(3)));
		CHECK_VALUES(y, 2, 6, 12);
	}
}

static void test_nothing_recorded(void)
{
	SL_SCOPE {
		sl_tensor *x = slp_leaf(2, 1), *y = sl_mul(x, x);
		CHECK_STATUS(sl_backward(y), SL_ESTATE, "head 0", "SL_RECORD", SL_HERE);
		sl_error_clear();
		CHECK_STATUS(sl_backward_heads(NULL, 2), SL_EINVAL, "heads is NULL", SL_HERE);
		sl_error_clear();
		SL_RECORD
			SL_PAUSE
				y = sl_mul(x, x);
		CHECK(sl_backward(y) == SL_ESTATE);
		sl_error_clear();
		sl_tensor *c = sl_ones(SL_SHAPE(2));
		SL_RECORD
			y = sl_mul(c, c); /* from nothing that asked for a gradient */
		CHECK(sl_backward(y) == SL_ESTATE);
		sl_error_clear();
		CHECK(sl_backward(NULL) == SL_EINVAL);
		sl_error_clear();
		CHECK_NULL(sl_grad(c), SL_ESTATE, "sl_grad", "sl_attach_grad");
	}
}

static void test_requests(void)
{
	SL_SCOPE {
		sl_tensor *w = slp_leaf(1, 3), *a = slp_leaf(1, 4), *n = slp_leaf(1, 5), *y;
		CHECK_OK(sl_attach_grad(a, .req = SL_GRAD_ADD));
		CHECK_OK(sl_attach_grad(n, .req = SL_GRAD_NONE));
		CHECK_NULL(sl_grad(n), SL_ESTATE);
		for (int i = 1; i <= 3; i++) {
			SL_RECORD
				y = sl_mul(sl_mul(w, a), n);
			CHECK_OK(sl_backward(y));
			CHECK_ALL(sl_grad(w), 20);
			CHECK_ALL(sl_grad(a), 15 * i);
		}
		SL_RECORD
			y = sl_mul(n, n);
		CHECK(sl_backward(y) == SL_ESTATE);
		sl_error_clear();
	}
}

/* A retained gradient shows what comes next, without a copy; where its memory is shared, it is written in place. */
static void test_gradient_tensor(void)
{
	SL_SCOPE {
		sl_tensor *x = slp_leaf(2, 1), *g = sl_retain(sl_grad(x)), *part = sl_rows(g, 1, 2), *y;
		SL_RECORD
			y = sl_mul(x, x);
		CHECK_OK(sl_backward(y));
		CHECK_VALUES(g, 2, 4);
		CHECK(sl_grad(x) == g);
		(void)part;
		SL_RECORD
			y = sl_mul_scalar(x, 7);
		CHECK_OK(sl_backward(y));
		CHECK_ALL(g, 7);
		sl_release(g);
	}
}

static void test_leaf_as_head(void)
{
	SL_SCOPE {
		sl_tensor *x = slp_leaf(2, 1);
		CHECK_OK(sl_backward(x));
		CHECK_ALL(sl_grad(x), 1);
		CHECK_OK(sl_backward(x, x));
		CHECK_ALL(sl_grad(x), 2);
	}
}

static void test_head_grads(void)
{
	SL_SCOPE {
		sl_tensor *x = slp_leaf(2, 1), *y = NULL, *z = NULL;
		double d[] = {10, 100};
		sl_tensor *g = sl_from(d, SL_SHAPE(2), .dtype = SL_FLOAT64);
		SL_RECORD {
			y = sl_mul(x, x);
			z = sl_mul_scalar(x, 3);
		}
		CHECK_OK(sl_backward_heads(((sl_tensor *[]){y, z}), 2, .head_grads = (sl_tensor *[]){g, NULL},
		                           .retain_graph = true));
		CHECK_VALUES(sl_grad(x), 23, 403);
		CHECK_OK(sl_backward_heads(((sl_tensor *[]){z}), 1, .head_grads = &g, .retain_graph = true));
		CHECK_VALUES(sl_grad(x), 30, 300);
		sl_tensor *wrong = sl_ones(SL_SHAPE(3), .dtype = SL_FLOAT64), *single = sl_ones(SL_SHAPE(2));
		CHECK_STATUS(sl_backward_heads(&y, 1, .head_grads = &wrong, .retain_graph = true), SL_ESHAPE, "(3,)",
		             "(2,)", SL_HERE);
		sl_error_clear();
		CHECK(sl_backward_heads(&y, 1, .head_grads = &single, .retain_graph = true) == SL_EDTYPE);
		sl_error_clear();
		CHECK_OK(sl_backward(y)); /* none of these has spent it */
		CHECK_VALUES(sl_grad(x), 2, 4);
	}
}

static void test_several_heads(void)
{
	SL_SCOPE {
		sl_tensor *x = slp_leaf(2, 1), *u = slp_leaf(2, 5), *a, *b, *c;
		SL_RECORD {
			a = sl_mul(x, x);
			b = sl_mul(a, u);
			c = sl_add(a, x);
		}
		CHECK_OK(sl_backward(b, c, a)); /* x²u + x² + x + x² */
		CHECK_VALUES(sl_grad(x), 2 * 5 + 4 + 1, 4 * 6 + 8 + 1);
		CHECK_VALUES(sl_grad(u), 1, 4);
	}
}

/* Used often: by several calls, twice by one, in a diamond. */
static void test_shared(void)
{
	SL_SCOPE {
		sl_tensor *x = slp_leaf(1, 2), *y;
		SL_RECORD {
			sl_tensor *s = sl_mul(x, x), *t = sl_add(s, s);
			y = sl_add(sl_mul(t, s), sl_mul(s, x)); /* 2x⁴ + x³ */
		}
		CHECK_OK(sl_backward(y));
		CHECK_ALL(sl_grad(x), 8 * 8 + 3 * 4);
		SL_RECORD
			y = sl_add(x, x);
		CHECK_OK(sl_backward(y));
		CHECK_ALL(sl_grad(x), 2);
		SL_RECORD {
			y = x;
			for (int i = 0; i < 20; i++) y = sl_add(y, y);
		}
		CHECK_OK(sl_backward(y));
		CHECK_ALL(sl_grad(x), 1 << 20);
	}
}

/* What no head reaches keeps its gradient. */
static void test_unreached(void)
{
	SL_SCOPE {
		sl_tensor *x = slp_leaf(1, 2), *u = slp_leaf(1, 3), *y, *z;
		SL_RECORD
			y = sl_mul(x, u);
		CHECK_OK(sl_backward(y));
		SL_RECORD {
			y = sl_mul(x, x);
			z = sl_mul(u, u);
		}
		CHECK_OK(sl_backward(y));
		CHECK_ALL(sl_grad(x), 4);
		CHECK_ALL(sl_grad(u), 2);
		CHECK_OK(sl_backward(z));
		CHECK_ALL(sl_grad(x), 4);
		CHECK_ALL(sl_grad(u), 6);
	}
}

static void test_detach(void)
{
	SL_SCOPE {
		sl_tensor *x = slp_leaf(1, 3), *y;
		SL_RECORD
			y = sl_mul(sl_detach(sl_mul(x, x)), x); /* 9x */
		CHECK_OK(sl_backward(y));
		CHECK_ALL(sl_grad(x), 9);
		SL_RECORD
			y = sl_detach(sl_mul(x, x));
		CHECK(sl_backward(y) == SL_ESTATE);
		sl_error_clear();
		SL_RECORD {
			sl_tensor *s = sl_mul(x, x);
			SL_PAUSE
				y = sl_mul(s, s);
			y = sl_add(sl_add(y, s), x);
		}
		CHECK_OK(sl_backward(y)); /* what was paused is a constant */
		CHECK_ALL(sl_grad(x), 7);
	}
}

static void test_views(void)
{
	SL_SCOPE {
		double v[] = {1, 2, 3, 4, 5, 6};
		sl_tensor *x = sl_from(v, SL_SHAPE(3, 2), .dtype = SL_FLOAT64), *y;
		CHECK_OK(sl_attach_grad(x));
		SL_RECORD {
			sl_tensor *f = sl_reshape(x, SL_SHAPE(2, -1)), *r = sl_rows(f, 1, 2);
			y = sl_mul(sl_flatten(r), sl_flatten(r));
		}
		CHECK_OK(sl_backward(y));
		CHECK_VALUES(sl_grad(x), 0, 0, 0, 8, 10, 12);
		CHECK(sl_shape_equal(sl_tensor_shape(sl_grad(x)), SL_SHAPE(3, 2)));
		SL_RECORD
			y = sl_copy_to(sl_clone(x), sl_cpu(0));
		CHECK_OK(sl_backward(y));
		CHECK_ALL(sl_grad(x), 1);
	}
}

/* A view made outside shares the values and not the gradient. */
static void test_view_outside(void)
{
	SL_SCOPE {
		sl_tensor *x = slp_leaf(2, 1), *view = sl_rows(x, 0, 1), *y;
		SL_RECORD
			y = sl_mul(view, view);
		CHECK(sl_backward(y) == SL_ESTATE);
		sl_error_clear();
	}
}

static void test_again(void)
{
	SL_SCOPE {
		sl_tensor *x = slp_leaf(2, 1), *s, *y;
		SL_RECORD {
			s = sl_mul(x, x);
			y = sl_mul(s, x);
		}
		CHECK_OK(sl_backward_heads(&y, 1, .retain_graph = true));
		CHECK_OK(sl_backward_heads(&y, 1, .retain_graph = true));
		CHECK_VALUES(sl_grad(x), 3, 12);
		CHECK_OK(sl_backward(y));
		CHECK_VALUES(sl_grad(x), 3, 12);
		CHECK_STATUS(sl_backward(y), SL_ESTATE, "mul", "retain_graph", SL_HERE);
		sl_error_clear();
		CHECK_STATUS(sl_backward(s), SL_ESTATE, "retain_graph"); /* a part of it */
		sl_error_clear();
		CHECK_VALUES(sl_grad(x), 3, 12);
		SL_RECORD
			y = sl_mul(s, x); /* leads through what is spent */
		CHECK_STATUS(sl_backward(y), SL_ESTATE, "retain_graph");
		sl_error_clear();
	}
}

/* Between their steps they do not change: the gradient is 0, whatever flows back. */
static void test_steps(void)
{
	static sl_tensor *(*const steps[])(const char *at, sl_tensor *x) = {sl_sign_at, sl_floor_at, sl_ceil_at,
	                                                                    sl_round_at};
	for (int i = 0; i < 4; i++)
		SL_SCOPE {
			sl_tensor *x = sl_from(((float[]){-1.5f, 0, NAN, 2}), SL_SHAPE(4)), *y = NULL;
			CHECK_OK(sl_attach_grad(x));
			SL_RECORD
				y = sl_div(steps[i](SL_HERE, x), sl_zeros(SL_SHAPE(4)));
			CHECK_OK(sl_backward(y));
			CHECK_ALL(sl_grad(x), 0);
			SL_RECORD
				y = sl_add(x, steps[i](SL_HERE, x));
			CHECK_OK(sl_backward(y));
			CHECK_ALL(sl_grad(x), 1);
		}
}

/* Comparisons and integers are constants, as heads too. */
static void test_constants(void)
{
	SL_SCOPE {
		sl_tensor *x = slp_leaf(2, 3), *y[9];
		SL_RECORD {
			y[0] = sl_gt_scalar(x, 0), y[1] = sl_le(x, x), y[2] = sl_isfinite(x), y[3] = sl_logical_not(x);
			y[4] = sl_any(x), y[5] = sl_all(x, SL_AXES(0)), y[6] = sl_argmax(x, 0);
			y[7] = sl_argsort(x, 0, false), y[8] = sl_cast(x, SL_INT32);
			for (int i = 0; i < 9; i++) CHECK(sl_backward(sl_add(x, sl_cast(y[i], SL_FLOAT64))) == SL_OK);
		}
		CHECK_ALL(sl_grad(x), 1);
		for (int i = 0; i < 9; i++) {
			CHECK_STATUS(sl_backward(y[i]), SL_ESTATE, "comparisons and integers", SL_HERE);
			sl_error_clear();
		}
		SL_RECORD
			y[0] = sl_mul(sl_gt_scalar(x, 0), x);
		CHECK_OK(sl_backward(y[0]));
		CHECK_ALL(sl_grad(x), 1);
	}
}

static enum sl_status halve(const struct sl_op_call *c)
{
	for (int64_t i = 0; i < sl_shape_size(c->in[0].shape); i++)
		((double *)c->out[0].data)[i] = ((const double *)c->in[0].data)[i] / 2;
	return SL_OK;
}

static void test_no_gradient(void)
{
	const sl_op *op = sl_op_register(.name = "halve_only", .nin = 1, .types = SL_OP_TYPE(SL_FLOAT64), .cpu = halve);
	SL_SCOPE {
		sl_tensor *x = slp_leaf(1, 1), *y, *z;
		const char *here;
		SL_RECORD {
			y = sl_op_apply(op, &x, 1), here = SL_HERE;
			z = sl_mul(y, x);
		}
		CHECK_STATUS(sl_backward(z), SL_EUNSUPPORTED, "halve_only", "no gradient", here, SL_HERE);
		sl_error_clear();
		CHECK_ALL(sl_grad(x), 0); /* though its part of it was known */
		SL_RECORD
			z = sl_mul(sl_detach(y), x);
		CHECK_OK(sl_backward(z));
		CHECK_ALL(sl_grad(x), 0.5);
	}
}

static void test_attach(void)
{
	SL_SCOPE {
		int32_t v[2] = {1, 2};
		sl_tensor *i = sl_from(v, SL_SHAPE(2), .dtype = SL_INT32), *x = slp_leaf(2, 1), *y;
		CHECK_STATUS(sl_attach_grad(i), SL_EDTYPE, "int32", SL_HERE);
		sl_error_clear();
		SL_RECORD
			y = sl_mul(x, x);
		CHECK_OK(sl_attach_grad(y)); /* a leaf from now on */
		sl_tensor *z;
		SL_RECORD
			z = sl_mul_scalar(y, 5);
		CHECK_OK(sl_backward(z));
		CHECK_ALL(sl_grad(y), 5);
		CHECK_ALL(sl_grad(x), 0);
		CHECK_OK(sl_attach_grad(y)); /* anew: zeros */
		CHECK_ALL(sl_grad(y), 0);
	}
}

/* A gradient that nobody has computed or looked at takes no memory; then it is zeros. */
static void test_unused(void)
{
	enum { SIDE = 1024, BYTES = SIDE * SIDE * 4 };
	SL_SCOPE {
		struct sl_stats before, after;
		sl_tensor *x = sl_ones(SL_SHAPE(SIDE, SIDE)), *y;
		CHECK_OK(sl_wait_all());
		sl_stats_get(&before);
		CHECK_OK(sl_attach_grad(x, .req = SL_GRAD_ADD));
		CHECK_OK(sl_wait_all());
		sl_stats_get(&after);
		CHECK_SAYING(after.bytes < before.bytes + BYTES, "%g bytes more", (double)(after.bytes - before.bytes));
		SL_RECORD
			y = sl_mul_scalar(x, 3);
		CHECK_OK(sl_backward(y)); /* added to zeros */
		CHECK_ALL(sl_grad(x), 3);
		CHECK_OK(sl_attach_grad(x));
		CHECK_ALL(sl_grad(x), 0);
		sl_tensor *kept = sl_retain(sl_grad(x));
		SL_RECORD
			y = sl_mul_scalar(x, 4);
		CHECK_OK(sl_backward(y));
		CHECK_ALL(kept, 4); /* the same tensor */
		sl_release(kept);
	}
}

/* ------------------------------------------------------------------------------------------------------------------ */

static const struct slp_test mode_tests[] = {
        {"nesting", test_modes},
        {"leaving", test_leaving_modes},
        {"threads", test_modes_of_threads},
        {0},
};
static const struct slp_test gradient_tests[] = {
        {"simple", test_simple},
        {"nothing recorded", test_nothing_recorded},
        {"write, add, none", test_requests},
        {"the gradient tensor", test_gradient_tensor},
        {"a leaf as head", test_leaf_as_head},
        {"gradients of heads", test_head_grads},
        {"several heads", test_several_heads},
        {"shared expressions", test_shared},
        {"unreached leaves", test_unreached},
        {"detach and pause", test_detach},
        {"views", test_views},
        {"a view made outside", test_view_outside},
        {"going back again", test_again},
        {"steps", test_steps},
        {"constants", test_constants},
        {"operations without gradient", test_no_gradient},
        {"attaching", test_attach},
        {"gradients that nobody uses", test_unused},
        {0},
};
int main(int argc, char **argv)
{
	return slp_test_main(argc, argv,
	                     (const struct slp_suite[]){
	                             {.name = "modes",
	                              .tests = mode_tests,
	                              .start = slp_start_engine,
	                              .stop = slp_stop_engine,
	                              .after = clear},
	                             {.name = "gradients",
	                              .tests = gradient_tests,
	                              .start = slp_start_engine,
	                              .stop = slp_stop_engine,
	                              .after = clear},
	                             {0},
	                     });
}
