/* Checks on tensors and on errors. */
#ifndef SLP_TESTS_CHECK_H
#define SLP_TESTS_CHECK_H

#include <starling.h>

#include "harness.h"

/* Start and stop of a suite: the engine with its defaults.  What is left unreported at the end is a failure. */
int slp_start_engine(void);
int slp_stop_engine(void);

/* Start and stop within tests.  However a test has ended, the next one finds the engine stopped and nothing held up,
 * slowed down, made to fail or pending. */
void slp_begin(struct sl_config config);
void slp_end(void);
/* The same, where nothing may be left to report. */
void slp_end_well(void);
/* With the defaults: before and after each test of a suite. */
void slp_begin_plainly(void);

/* Seconds to wait for what must happen at some time, on a machine that may be slow or busy. */
enum { SLP_PATIENCE = 240 };

struct sl_stats slp_stats(void);

/* float64 elements first, first + 1, …, with a gradient attached. */
sl_tensor *slp_leaf(int count, double first);

/* The values of t are these, within rounding; NAN matches NAN. */
bool slp_check_values(const char *file, int line, sl_tensor *t, int count, const double *expected);
#define CHECK_VALUES(t, ...)                                                                                           \
	slp_check_values(__FILE__, __LINE__, t, SL_COUNT_(double, __VA_ARGS__), (const double[]){__VA_ARGS__})

/* All elements of t are this. */
bool slp_check_all(const char *file, int line, sl_tensor *t, double expected);
#define CHECK_ALL(t, value) slp_check_all(__FILE__, __LINE__, t, value)

/* A call returns this status, and then the message contains all of the texts. */
bool slp_check_status(const char *file, int line, enum sl_status got, enum sl_status expected,
                      const char *const *texts);
#define CHECK_OK(call) slp_check_status(__FILE__, __LINE__, call, SL_OK, NULL)
#define CHECK_STATUS(call, status, ...)                                                                                \
	slp_check_status(__FILE__, __LINE__, call, status, (const char *const[]){"", ##__VA_ARGS__, NULL})

/* A call returns NULL with this status pending, and a message with the place of the call and all of the texts.
 * Clears the error. */
bool slp_check_null(const char *file, int line, const void *got, enum sl_status expected, const char *const *texts);
#define CHECK_NULL(call, status, ...)                                                                                  \
	slp_check_null(__FILE__, __LINE__, call, status, (const char *const[]){SL_HERE, ##__VA_ARGS__, NULL})

/* How often text occurs in the calling thread's message. */
int slp_message_count(const char *text);

#endif
