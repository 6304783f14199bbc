/* --health: a file with the state of a run, for supervisors and monitoring, replaced every ten seconds: JSON, or
 * Prometheus' text format if its name ends in .prom.  The functions do nothing unless drv_health_begin got a path. */
#ifndef MODELS_DRIVER_HEALTH_H
#define MODELS_DRIVER_HEALTH_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

/* Writes the file for the first time; false after reporting an error. */
bool drv_health_begin(const char *path);
/* Counts a step: steps so far, samples (images, bytes) of this one. */
void drv_health_step(int64_t steps, int64_t samples);
void drv_health_loss(double loss);
void drv_health_checkpoint(bool written);
void drv_health_error(const char *format, va_list args);
/* Writes the file for the last time, with the state that corresponds to the exit status; false after reporting an error. */
bool drv_health_end(int status);

#endif
