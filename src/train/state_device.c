/* Trainers whose states live on another device than the parameters, in main memory beside GPUs: there gradients arrive,
 * and parameters are updated.  J. Ren et al., "ZeRO-Offload: Democratizing Billion-Scale Model Training", USENIX ATC
 * 2021, do the same with Adam. */
#include "runtime/device/device.h"
#include "runtime/engine.h"
#include "starling/tensor.h"
#include "train/train.h"
#include "train/trainer.h"

bool slp_state_device_fits(const char *at, sl_device *device)
{
	if (device->kind == SL_DEVICE_DEFAULT) return true;
	if (device->kind == SL_DEVICE_CPU || device->kind == SL_DEVICE_GPU)
		return slp_engine_need(at) == SL_OK && slp_device_resolve(at, device) == SL_OK;
	slp_call_fail(at, "sl_trainer_new", SL_EINVAL, ".state_on must be a CPU or a GPU: sl_cpu(-1), sl_gpu(0)");
	return false;
}

/* Whether values for one device need no copy for the other. */
static bool is_near(sl_device a, sl_device b)
{
	bool main_memory = a.kind == SL_DEVICE_CPU || (a.kind == SL_DEVICE_AUTO && !slp_engine.ngpus);
	return b.kind == SL_DEVICE_CPU ? main_memory : sl_device_equal(a, b);
}

/* Of parameters without values it is not known yet where they will be. */
static bool is_apart(const sl_param *p, sl_device home)
{
	if (home.kind == SL_DEVICE_DEFAULT || (home.kind == SL_DEVICE_CPU && !slp_engine.ngpus)) return false;
	if (!p->data) return true;
	for (int i = 0; i < p->ndevices; i++)
		if (!is_near(p->devices[i], home)) return true;
	return !is_near(p->data->device, home);
}

bool slp_trainer_is_apart(const sl_trainer *t)
{
	for (int i = 0; i < t->count; i++)
		if (is_apart(t->params[i], t->optimizer.state_on)) return true;
	return false;
}

sl_device slp_trainer_home(const sl_trainer *t, int i)
{
	if (is_apart(t->params[i], t->optimizer.state_on)) return t->optimizer.state_on;
	return (sl_device){SL_DEVICE_DEFAULT, -1};
}

sl_tensor *slp_trainer_at_home(const char *at, const sl_trainer *t, int i, sl_tensor *x)
{
	sl_device home = slp_trainer_home(t, i);
	return x && home.kind && !sl_is_symbol(x) ? sl_place_at(at, x, home) : x;
}
