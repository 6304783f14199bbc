/* Moments: the lock between changes of many tensors and saves of them, and copies for saves. */
#include "runtime/engine.h"
#include "starling/tensor.h"
#include "tensor/moment.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER; /* changes share it, a save has it alone */
static _Thread_local int changes, moments;                 /* how deep this thread is in them */

void slp_change_begin(void)
{
	if (!changes++ && !moments) pthread_rwlock_rdlock(&lock);
}

void slp_change_end(void)
{
	if (!--changes && !moments) pthread_rwlock_unlock(&lock);
}

void slp_moment_begin(void)
{
	if (!moments++ && !changes) pthread_rwlock_wrlock(&lock);
}

void slp_moment_end(void)
{
	if (!--moments && !changes) pthread_rwlock_unlock(&lock);
}

bool slp_moment_copy(const char *at, sl_tensor **list, int count)
{
	const sl_device memory = {SL_DEVICE_CPU, -1};
	SLP_MODE_SCOPE();
	bool ok = true;
	slp_mode.recorder = NULL; /* no gradients flow through a save */
	SL_SCOPE
		for (int i = 0; ok && i < count; i++) {
			/* In main memory, if a CPU worker can write it there. */
			sl_device there = slp_engine.nteams ? memory : sl_tensor_device(list[i]);
			sl_tensor *copy = sl_retain(sl_copy_to_at(at, list[i], there));
			ok = copy != NULL;
			if (!ok) break;
			sl_release(list[i]);
			list[i] = copy;
		}
	return ok;
}
