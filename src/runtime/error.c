/* Errors: keeps the first mistake of each thread, and the faults of kernels, until a sync point reports them. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"
#include "runtime/process/processes.h"
#include "runtime/text.h"
#include "op.h"
#include "runtime/fault.h"
#include "runtime/observe/stats.h"

static _Thread_local struct slp_pending thread_error; /* SL_OK: none pending */

struct fault {
	enum sl_status status;
	bool reported;
	char *message; /* malloc'd, or last_text */
};
enum { MAX_FAULTS = 10000 };          /* further ones take the place of the last */
static struct fault first_faults[16]; /* there without memory, too */
static char last_text[512];           /* for one message without memory */
static struct {
	pthread_mutex_t lock;
	struct fault *list;
	uint32_t count, capacity;
	_Atomic uint32_t unreported;
} faults = {.lock = PTHREAD_MUTEX_INITIALIZER, .list = first_faults, .capacity = 16};

static const char *const status_names[] = {
#define X(symbol, text) #symbol,
        SL_STATUS_LIST(X)
#undef X
};
static const char *const status_texts[] = {
#define X(symbol, text) text,
        SL_STATUS_LIST(X)
#undef X
};

/* The name of a status, as text that is never freed: "SL_ESHAPE"; "?" for any other number. */
const char *sl_status_name(enum sl_status status)
{
	return (unsigned)status <= SL_EINTERNAL ? status_names[status] : "?";
}

/* The status of the calling thread's first error that no waiting function has reported yet, or SL_OK.  Does not wait,
 * and does not include operations that fail later: sl_wait_all reports those. */
enum sl_status sl_error(void)
{
	return thread_error.status;
}

/* The text of the calling thread's pending error (sl_error), or of the last reported one; "" if there was none.  Valid
 * until the calling thread's next call; it belongs to the library. */
const char *sl_error_message(void)
{
	return thread_error.message;
}

/* Forgets the calling thread's error and its text. */
void sl_error_clear(void)
{
	thread_error.status = SL_OK;
	thread_error.message[0] = '\0';
}

/* Records an error of the program, from the forward of a block for example: it becomes the calling thread's error,
 * unless one is already pending, and the next waiting function reports it.  Returns the pending status; SL_OK, and any
 * number that is not a status, becomes SL_EINVAL.
 *
 *     if (nin != 2) {
 *             sl_error_raise(SL_EINVAL, "the gate takes two inputs");
 *             return NULL;
 *     } */
enum sl_status sl_error_raise_at(const char *at, enum sl_status status, const char *message)
{
	if (status == SL_OK || (unsigned)status > SL_EINTERNAL) status = SL_EINVAL;
	return slp_error_set(status, "%s%s%s", at ? at : "", at ? ": " : "", message ? message : "");
}

static uint32_t fault_keep(enum sl_status status, const char *message);
static pthread_key_t ending; /* its destructor sees the threads that end with an error */

/* A thread ends, and its error was not read: the next sync point of another thread reports it. */
static void keep_for_others(void *unused)
{
	(void)unused;
	if (thread_error.status != SL_OK) fault_keep(thread_error.status, thread_error.message);
	thread_error.status = SL_OK;
}

static void make_key(void)
{
	pthread_key_create(&ending, keep_for_others);
}

enum sl_status slp_error_setv(enum sl_status status, const char *prefix, const char *format, va_list args)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	if (thread_error.status != SL_OK) return thread_error.status;
	thread_error.status = status;
	pthread_once(&once, make_key);
	pthread_setspecific(ending, &thread_error);
	int n = snprintf(thread_error.message, sizeof thread_error.message, "%s", prefix);
	if (n < 0 || (size_t)n >= sizeof thread_error.message) return status;
	int m = slp_vsnprintf(thread_error.message + n, sizeof thread_error.message - (size_t)n, format, args);
	if (m == 0)
		snprintf(thread_error.message + n, sizeof thread_error.message - (size_t)n, "%s", status_texts[status]);
	slp_text_escape(thread_error.message, sizeof thread_error.message, true);
	return status;
}

enum sl_status slp_error_set(enum sl_status status, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	enum sl_status s = slp_error_setv(status, "", format, args);
	va_end(args);
	return s;
}

void *slp_call_fail(const char *at, const char *function, enum sl_status status, const char *format, ...)
{
	char prefix[512];
	snprintf(prefix, sizeof prefix, "%s%s%s: ", function, at ? " at " : "", at ? at : "");
	va_list args;
	va_start(args, format);
	slp_error_setv(status, prefix, format, args);
	va_end(args);
	return NULL;
}

bool slp_given(const char *at, const char *function, const char *name, const void *argument)
{
	/* NULL is mostly the result of an earlier mistake, which has been recorded. */
	if (!argument && sl_error() == SL_OK) slp_call_fail(at, function, SL_EINVAL, "the %s is NULL", name);
	return argument;
}

void slp_error_set_aside(struct slp_pending *first)
{
	first->status = thread_error.status;
	if (first->status == SL_OK) return;
	*first = thread_error;
	sl_error_clear();
}

void slp_error_rejoin(const struct slp_pending *first)
{
	if (first->status != SL_OK) thread_error = *first;
}

static bool faults_grow(void)
{
	bool first = faults.list == first_faults;
	struct fault *list = slp_try_realloc(first ? NULL : faults.list, 2 * faults.capacity * sizeof *list);
	if (!list) return false;
	if (first) memcpy(list, first_faults, sizeof first_faults);
	faults.list = list;
	faults.capacity *= 2;
	return true;
}

/* A new one, or the last one again. */
static struct fault *fault_slot(void)
{
	if (faults.count < MAX_FAULTS && (faults.count < faults.capacity || faults_grow()))
		faults.list[faults.count++] = (struct fault){.reported = true};
	return &faults.list[faults.count - 1];
}

static void text_free(char *text)
{
	if (text != last_text) free(text);
}

static char *text_keep(const char *text)
{
	char *copy = slp_try_strdup(text);
	if (copy) return copy;
	snprintf(last_text, sizeof last_text, "%s", text);
	return last_text;
}

static uint32_t fault_keep(enum sl_status status, const char *message)
{
	pthread_mutex_lock(&faults.lock);
	struct fault *f = fault_slot();
	if (f->reported) atomic_fetch_add(&faults.unreported, 1);
	text_free(f->message);
	*f = (struct fault){status, false, text_keep(message)};
	uint32_t number = faults.count;
	pthread_mutex_unlock(&faults.lock);
	return number;
}

uint32_t slp_fault_add(enum sl_status status, const char *message)
{
	SLP_COUNT(faults);
	return fault_keep(status, message);
}

static void fault_mark(struct fault *f)
{
	if (!f->reported) atomic_fetch_sub(&faults.unreported, 1);
	f->reported = true;
}

/* Appends one line a fault to the thread's message. */
static void append(const char *text)
{
	size_t n = strlen(thread_error.message);
	snprintf(thread_error.message + n, sizeof thread_error.message - n, "%s%s", n ? "\n" : "", text);
	slp_text_escape(thread_error.message + n, sizeof thread_error.message - n, true);
}

enum sl_status slp_fault_report(uint32_t fault)
{
	pthread_mutex_lock(&faults.lock);
	struct fault *f = &faults.list[fault - 1];
	enum sl_status status = f->status;
	fault_mark(f);
	slp_error_set(status, "%s", f->message);
	pthread_mutex_unlock(&faults.lock);
	return status;
}

void slp_fault_text(uint32_t fault, char *text, size_t size)
{
	pthread_mutex_lock(&faults.lock);
	snprintf(text, size, "%s", faults.list[fault - 1].message);
	pthread_mutex_unlock(&faults.lock);
}

/* Makes all faults not reported yet the thread's message, after its own error if it has one. */
static void report_faults(void)
{
	pthread_mutex_lock(&faults.lock);
	if (thread_error.status == SL_OK) thread_error.message[0] = '\0';
	for (uint32_t i = 0; i < faults.count; i++) {
		struct fault *f = &faults.list[i];
		if (f->reported) continue;
		fault_mark(f);
		if (thread_error.status == SL_OK) thread_error.status = f->status;
		append(f->message);
	}
	pthread_mutex_unlock(&faults.lock);
}

enum sl_status slp_error_take(void)
{
	if (atomic_load(&faults.unreported)) report_faults();
	enum sl_status status = thread_error.status;
	thread_error.status = SL_OK;
	return status;
}

void slp_fault_reset(void)
{
	pthread_mutex_lock(&faults.lock);
	for (uint32_t i = 0; i < faults.count; i++) text_free(faults.list[i].message);
	if (faults.list != first_faults) free(faults.list);
	faults.list = first_faults;
	faults.capacity = sizeof first_faults / sizeof *first_faults;
	faults.count = 0;
	atomic_store(&faults.unreported, 0);
	pthread_mutex_unlock(&faults.lock);
}

void slp_fault_forked(void)
{
	pthread_mutex_init(&faults.lock, NULL);
}
