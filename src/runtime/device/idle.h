/* Waking the workers that a task may be for, and no others (idle.c). */
#ifndef SLP_IDLE_H
#define SLP_IDLE_H

#include "starling/base.h"

/* A task for this device was submitted; it may run at once.  From any thread. */
void slp_idle_submitted(sl_device device);
/* Such a task has ended: others may run now.  From its worker. */
void slp_idle_ended(sl_device device);

#endif
