/* Measurements on this machine's GPUs: the fastest of several ways to compute a call.  Kept for later runs, in StarPU's
 * folder of performance models (src/runtime/device/tune.c). */
#ifndef SLP_TUNE_H
#define SLP_TUNE_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SLP_TUNE_TEXT = 64, SLP_TUNE_KEY = 384, SLP_TUNE_PATH = 4096 };

/* Whether calls are measured: the value of SL_GPU_AUTOTUNE at sl_init. */
bool slp_tune_wanted(void);
/* 0: no; 2: and each time is printed. */
void slp_tune_start(int wish);
/* Prints it, if that is wished; negative: the way is refused. */
void slp_tune_say(const char *key, const char *way, double us);

/* A key names a library with its version, and a call with all that its time depends on, but the GPU: that is the
 * calling thread's.  Neither keys nor ways have tabs or ends of lines in them. */

/* The way that was the fastest; false: that has not been measured. */
bool slp_tune_find(const char *key, char way[SLP_TUNE_TEXT]);
/* Keeps it, with its time.  If another process has measured the same first, its way is used: all processes of a machine
 * give the same bits. */
void slp_tune_keep(const char *key, char way[SLP_TUNE_TEXT], double us);

/* The file for the calling thread's GPU; empty: none, and measurements are kept in memory. */
void slp_tune_path(char to[SLP_TUNE_PATH]);
/* Forgets the contents of the file, at the end. */
void slp_tune_forget(void);

#ifdef __cplusplus
}
#endif

#endif
