/* Checks on tensors and on errors. */
#include <starling.h>

#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gate.h"
#include "op.h"
#include "runtime/task/segment.h"

int slp_start_engine(void)
{
	return sl_init(NULL) != SL_OK;
}

int slp_stop_engine(void)
{
	enum sl_status s = sl_wait_all();
	sl_shutdown();
	return s != SL_OK;
}

void slp_begin(struct sl_config config)
{
	CHECK_OK(sl_init(&config));
}

void slp_begin_plainly(void)
{
	CHECK_OK(sl_init(NULL));
}

void slp_end(void)
{
	slp_gate_open();
	atomic_store(&slp_fail_kernel, 0);
	atomic_store(&slp_fail_alloc, 0);
	atomic_store(&slp_slow_times, 1);
	while (sl_is_initialized()) sl_shutdown();
	sl_error_clear();
}

void slp_end_well(void)
{
	CHECK_OK(sl_wait_all());
	slp_end();
}

struct sl_stats slp_stats(void)
{
	struct sl_stats s;
	sl_stats_get(&s);
	return s;
}

sl_tensor *slp_leaf(int count, double first)
{
	double v[64];
	for (int i = 0; i < count; i++) v[i] = first + i;
	sl_tensor *t = sl_from(v, SL_SHAPE(count), .dtype = SL_FLOAT64);
	CHECK_OK(sl_attach_grad(t));
	return t;
}

static bool same_value(double got, double expected)
{
	if (isnan(got) || isnan(expected)) return isnan(got) && isnan(expected);
	return got == expected || fabs(got - expected) <= 1e-6 * fmax(1, fabs(expected));
}

/* The first element that is not expected[i * step]; -1: none. */
static int64_t first_wrong(const struct slp_view *v, const double *expected, int step)
{
	for (int64_t i = 0; i < slp_size(v); i++)
		if (!same_value(slp_get(v, i), expected[i * step])) return i;
	return -1;
}

static bool check_elements(const char *file, int line, sl_tensor *t, const double *expected, int step)
{
	size_t bytes = sl_tensor_bytes(t);
	struct slp_view v = {malloc(bytes ? bytes : 1), {sl_tensor_dtype(t), sl_tensor_shape(t)}};
	enum sl_status s = sl_read(t, v.ptr, bytes);
	int64_t i = s == SL_OK ? first_wrong(&v, expected, step) : -1;
	bool ok = slp_check(s == SL_OK, file, line, "sl_read: %s, %s", sl_status_name(s), sl_error_message());
	if (i >= 0)
		ok = slp_check(false, file, line, "element %lld is %.9g, expected %.9g", (long long)i, slp_get(&v, i),
		               expected[i * step]);
	free(v.ptr);
	return ok;
}

bool slp_check_values(const char *file, int line, sl_tensor *t, int count, const double *expected)
{
	if (!slp_check(t != NULL, file, line, "NULL instead of a tensor: %s", sl_error_message())) return false;
	if (!slp_check(sl_tensor_size(t) == count, file, line, "%lld elements instead of %d",
	               (long long)sl_tensor_size(t), count))
		return false;
	return check_elements(file, line, t, expected, 1);
}

bool slp_check_all(const char *file, int line, sl_tensor *t, double expected)
{
	if (!slp_check(t != NULL, file, line, "NULL instead of a tensor: %s", sl_error_message())) return false;
	return check_elements(file, line, t, &expected, 0);
}

/* Whether the message contains text; of a call over several lines clang's __LINE__ is that of each line. */
static bool is_said(const char *text)
{
	if (slp_message_count(text) > 0) return true;
#ifdef __clang__
	enum { MOST_LINES = 8 };
	const char *colon = strrchr(text, ':');
	int line = colon ? atoi(colon + 1) : 0;
	char place[256];
	for (int i = 1; line > i && i < MOST_LINES; i++) {
		snprintf(place, sizeof place, "%.*s:%d", (int)(colon - text), text, line - i);
		if (slp_message_count(place) > 0) return true;
	}
#endif
	return false;
}

static bool check_texts(const char *file, int line, const char *const *texts)
{
	bool ok = true;
	for (; texts && *texts; texts++)
		if (**texts)
			ok &= slp_check(is_said(*texts), file, line, "\"%s\" is not in the message: %s", *texts,
			                sl_error_message());
	return ok;
}

bool slp_check_status(const char *file, int line, enum sl_status got, enum sl_status expected, const char *const *texts)
{
	bool ok = slp_check(got == expected, file, line, "%s instead of %s: %s", sl_status_name(got),
	                    sl_status_name(expected), sl_error_message());
	return ok && check_texts(file, line, texts);
}

bool slp_check_null(const char *file, int line, const void *got, enum sl_status expected, const char *const *texts)
{
	bool ok = slp_check(!got, file, line, "not NULL");
	ok = slp_check_status(file, line, sl_error(), expected, texts) && ok;
	sl_error_clear();
	return ok;
}

int slp_message_count(const char *text)
{
	int n = 0;
	for (const char *p = sl_error_message(); (p = strstr(p, text)); p++) n++;
	return n;
}
