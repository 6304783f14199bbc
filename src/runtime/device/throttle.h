/* Beside other programs, a team's idle threads sleep at once instead of polling (throttle.c). */
#ifndef SLP_THROTTLE_H
#define SLP_THROTTLE_H

#include <stdbool.h>
#include <stdint.h>

/* From a CPU worker, with the time in ms: */
void slp_throttle_look(int64_t now);       /* within a task: do others want its core? */
void slp_throttle_given_away(int64_t now); /* it is about to yield: no wonder if it loses its core */
void slp_throttle(bool on);                /* without looking, until the next look */

void slp_throttle_stop(void); /* after the workers have ended */

#endif
