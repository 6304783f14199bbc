/* Failures of kernels: the last message of each thread, and the first failure on the threads of a team. */
#include "runtime/task/kernel_fail.h"

#include <stdio.h>

#include "number.h"
#include "op.h"

static _Thread_local char message[512];

const char *slp_kernel_said(void)
{
	return message;
}

void slp_kernel_forget(void)
{
	message[0] = '\0';
}

void slp_kernel_says(const char *text)
{
	snprintf(message, sizeof message, "%s", text);
}

enum sl_status slp_kernel_fail(const struct slp_kernel *k, enum sl_status status, const char *format, ...)
{
	(void)k;
	SLP_FORMAT(message, sizeof message, format);
	return status;
}

void slp_note_failure(struct slp_first_failure *f, enum sl_status status, const struct sl_op *op)
{
	if (status == SL_OK || __atomic_exchange_n(&f->noted, 1, __ATOMIC_RELAXED)) return;
	const char *why = *message ? message : sl_status_name(status);
	snprintf(f->text, sizeof f->text, "%s%s%.160s", op ? op->name : "", op ? ": " : "", why);
	f->status = status;
	message[0] = '\0'; /* on this thread nothing else forgets it */
}

enum sl_status slp_noted_failure(const struct slp_kernel *k, const struct slp_first_failure *f)
{
	return f->status == SL_OK ? SL_OK : slp_kernel_fail(k, f->status, "%s", f->text);
}
