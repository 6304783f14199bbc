/* --health: a file that says how a run is doing, for supervisors and monitoring; written anew every ten seconds, in JSON,
 * or as Prometheus reads it if its name ends in .prom.  All do nothing unless drv_health_begin was given a path. */
#ifndef MODELS_DRIVER_HEALTH_H
#define MODELS_DRIVER_HEALTH_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

/* Writes the file for the first time; false after saying why not. */
bool drv_health_begin(const char *path);
/* The run has done so many steps; the last one was of so many samples (images, bytes). */
void drv_health_step(int64_t steps, int64_t samples);
void drv_health_loss(double loss);
void drv_health_checkpoint(bool written);
void drv_health_error(const char *format, va_list args);
/* Writes the file for the last time, with the state that the exit status means; false after saying why not. */
bool drv_health_end(int status);

#endif
