/* Gradients of the program's own, and gradients as constants. */
#include "check.h"

static void clear(void)
{
	sl_error_clear();
}

/* What a backward function was asked, and what it shall do. */
struct record {
	int called, destroyed, nout, nin;
	double factor;
	enum sl_status fail;
	bool nested, misshapen, none, mute;
};

static enum sl_status scaled(void *context, sl_tensor *const *dout, int nout, sl_tensor **din, int nin)
{
	struct record *r = context;
	r->called++;
	r->nout = nout;
	r->nin = nin;
	if (r->nested) return sl_backward(dout[0]);
	if (r->fail != SL_OK) {
		if (!r->mute) sl_error_raise(r->fail, "as it was told");
		return r->fail;
	}
	sl_tensor *sum = dout[0];
	for (int i = 1; i < nout; i++) sum = sl_add(sum, dout[i]);
	for (int i = 0; i < nin && !r->none; i++) din[i] = sl_mul_scalar(sum, r->factor * (i + 1));
	if (r->misshapen) din[0] = sl_sum(dout[0]);
	return sl_error();
}

static void gone(void *context)
{
	((struct record *)context)->destroyed++;
}

/* y = x² (whatever the backward function says about it), of one input and one result. */
static sl_tensor *squared(sl_tensor *x, struct record *r)
{
	sl_tensor *y;
	SL_PAUSE
		y = sl_mul(x, x);
	CHECK_OK(sl_custom_gradient(&x, 1, &y, 1, .backward = scaled, .context = r, .destroy = gone));
	return y;
}

static void test_simple(void)
{
	struct record r = {.factor = 10};
	SL_SCOPE {
		sl_tensor *x = slp_leaf(3, 1), *y;
		SL_RECORD
			y = sl_mul_scalar(squared(sl_mul_scalar(x, 2), &r), 3);
		CHECK_VALUES(y, 12, 48, 108);
		CHECK(r.called == 0 && r.destroyed == 0);
		CHECK_OK(sl_backward(y));
		CHECK_ALL(sl_grad(x), 60); /* 3 · 10 · 2 */
		CHECK(r.called == 1 && r.nout == 1 && r.nin == 1);
	}
	CHECK(r.destroyed == 1);
}

static void test_several(void)
{
	struct record r = {.factor = 1};
	SL_SCOPE {
		sl_tensor *in[] = {slp_leaf(2, 1), slp_leaf(2, 1), sl_ones(SL_SHAPE(2), .dtype = SL_FLOAT64)}, *out[2];
		SL_RECORD {
			SL_PAUSE {
				out[0] = sl_add(in[0], in[1]);
				out[1] = sl_mul_scalar(in[2], 3);
			}
			CHECK_OK(sl_custom_gradient(in, 3, out, 2, .backward = scaled, .context = &r, .destroy = gone));
		}
		CHECK_OK(sl_backward_heads(&out[1], 1, .retain_graph = true)); /* nothing comes by the first: zeros */
		CHECK_ALL(sl_grad(in[0]), 1);
		CHECK_ALL(sl_grad(in[1]), 2);
		CHECK_OK(sl_backward(out[0], out[1]));
		CHECK_ALL(sl_grad(in[0]), 2);
		CHECK_ALL(sl_grad(in[1]), 4);
		CHECK(r.called == 2 && r.nin == 3 && r.nout == 2);
	}
	CHECK(r.destroyed == 1);
}

static void test_nothing_to_record(void)
{
	struct record r = {.factor = 1};
	SL_SCOPE {
		sl_tensor *x = slp_leaf(2, 1), *y = squared(x, &r);
		CHECK(r.destroyed == 1); /* not recorded */
		CHECK(sl_backward(y) == SL_ESTATE);
		sl_error_clear();
		SL_RECORD
			y = squared(sl_ones(SL_SHAPE(2)), &r);
		CHECK(r.destroyed == 2); /* nobody wants a gradient */
		r.none = true;
		SL_RECORD
			y = squared(x, &r);
		CHECK_OK(sl_backward(y));
		CHECK_ALL(sl_grad(x), 0);
	}
	CHECK(r.destroyed == 3);
}

static void check_failure(struct record r, enum sl_status status, const char *text)
{
	SL_SCOPE {
		sl_tensor *x = slp_leaf(2, 1), *y;
		const char *here = NULL;
		SL_RECORD
			y = squared(x, &r);
		CHECK_STATUS((here = SL_HERE, sl_backward(y)), status, text);
		(void)here;
		sl_error_clear();
		CHECK_ALL(sl_grad(x), 0);
	}
	CHECK(r.destroyed == 1);
}

static void test_failures(void)
{
	check_failure((struct record){.fail = SL_EIO}, SL_EIO, "as it was told");
	check_failure((struct record){.fail = SL_EIO, .mute = true}, SL_EIO, "its backward function failed");
	check_failure((struct record){.nested = true}, SL_ESTATE, "within another sl_backward");
	check_failure((struct record){.factor = 1, .misshapen = true}, SL_ESHAPE, "for input 0");
}

static void test_mistakes(void)
{
	struct record r = {.factor = 1};
	SL_SCOPE {
		sl_tensor *x = slp_leaf(2, 1), *y = sl_ones(SL_SHAPE(2)), *twice[] = {y, y},
		          *s = sl_var("s", .dtype = SL_FLOAT32);
		SL_RECORD {
			CHECK_STATUS(sl_custom_gradient(&x, 1, &y, 1), SL_EINVAL, "backward function");
			sl_error_clear();
			CHECK_STATUS(
			        sl_custom_gradient(&x, 0, &y, 1, .backward = scaled, .context = &r, .destroy = gone),
			        SL_EINVAL, "inputs");
			sl_error_clear();
			CHECK_STATUS(sl_custom_gradient(&y, 1, &x, 1, .backward = scaled), SL_ESTATE, "result 0",
			             "SL_PAUSE");
			sl_error_clear();
			CHECK_STATUS(sl_custom_gradient(&y, 1, &y, 1, .backward = scaled), SL_ESTATE, "is an input");
			sl_error_clear();
			CHECK_STATUS(sl_custom_gradient(&x, 1, twice, 2, .backward = scaled), SL_ESTATE, "result 1",
			             "twice");
			sl_error_clear();
			CHECK_STATUS(sl_custom_gradient(&s, 1, &y, 1, .backward = scaled), SL_EUNSUPPORTED, "traced");
			sl_error_clear();
		}
		CHECK(r.destroyed == 1);
	}
}

static void test_constant(void)
{
	SL_SCOPE {
		sl_tensor *x = slp_leaf(3, 1), *y, *g;
		SL_RECORD
			y = sl_mul(x, x);
		CHECK_OK(sl_backward(y));
		g = sl_retain(sl_grad(x));
		SL_RECORD
			CHECK_STATUS((sl_mul(x, g), sl_error()), SL_EUNSUPPORTED, "is a gradient");
		sl_error_clear();
		sl_grad_as_constant(g);
		sl_grad_as_constant(NULL);
		SL_RECORD
			y = sl_mul(x, g);
		CHECK_OK(sl_backward(y));
		CHECK_VALUES(sl_grad(x), 2, 4, 6);
		CHECK(sl_grad(x) == g); /* the same tensor: what others hold of it follows */
		CHECK_VALUES(g, 2, 4, 6);
		sl_release(g);
	}
}

/* As Gluon records: a result of a call that was gone back through by another one is a constant. */
static void test_spent(void)
{
	SL_SCOPE {
		sl_tensor *x = slp_leaf(3, 1), *y, *first, *z;
		sl_mode mode;
		sl_mode_enter(&mode, 2, -1);
		y = sl_mul(x, x);
		first = sl_slice(y, 0, 0, 1, 1);
		sl_mode_leave(&mode);
		CHECK(!sl_grad_is_fresh(x) && !sl_grad_is_fresh(NULL) && !sl_grad_is_fresh(y));
		CHECK_OK(sl_backward(y));
		CHECK(sl_grad_is_fresh(x));
		sl_grad_used(x);
		sl_grad_used(NULL);
		CHECK(!sl_grad_is_fresh(x));
		sl_mode_enter(&mode, 2, -1);
		z = sl_mul(x, first);
		sl_mode_leave(&mode);
		CHECK_OK(sl_backward(z));
		CHECK(sl_grad_is_fresh(x));
		CHECK_VALUES(sl_grad(x), 1, 1, 1); /* y[0], none by way of it */
		CHECK_STATUS(sl_backward(z), SL_ESTATE, "released already");
		sl_error_clear();
		SL_RECORD {
			y = sl_mul(x, x);
			first = sl_slice(y, 0, 0, 1, 1);
		}
		CHECK_OK(sl_backward(y));
		CHECK_STATUS(sl_backward(first), SL_ESTATE, "released already");
		sl_error_clear();
	}
}

static const struct slp_test tests[] = {
        {"one input, one result", test_simple},
        {"several", test_several},
        {"nothing to record", test_nothing_to_record},
        {"failures", test_failures},
        {"mistakes", test_mistakes},
        {"a gradient as a constant", test_constant},
        {"what was gone back through", test_spent},
        {0},
};

int main(int argc, char **argv)
{
	return slp_test_main(argc, argv,
	                     (const struct slp_suite[]){
	                             {.name = "custom gradients",
	                              .tests = tests,
	                              .start = slp_start_engine,
	                              .stop = slp_stop_engine,
	                              .after = clear},
	                             {0},
	                     });
}
