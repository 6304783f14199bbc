/* Slave processes: StarPU's TCP/IP workers (slaves.c, slave_meeting.c). */
#ifndef SLP_SLAVES_H
#define SLP_SLAVES_H

#include <stdbool.h>

#include "runtime/compat.h"
#include "starling/base.h"

struct slp_segment;
struct starpu_task;

/* Before StarPU starts, and after: master and slaves wait for each other; SL_EIO if they do not come. */
enum sl_status slp_slaves_meet(const char *at, int slaves);
void slp_slaves_met(void);
/* The workers of slave processes, up to max of them; their number. */
int slp_slave_workers(int *ids, int max);
/* Adds the data that a slave process needs to run the segment to a task; false without memory. */
bool slp_slave_message(struct starpu_task *task, struct slp_segment *segment);

#endif
