/* sl_explain: how a tensor was computed. */
#include "op.h"
#include "runtime/engine.h"
#include "runtime/fault.h"
#include "runtime/observe/explain.h"
#include "tensor/tensor.h"

/* Prints, to the file (sl_explain: to standard output), how the values of t were computed: the operation and the place
 * of its call; its task, with other small calls or as part of a compiled program; for each device, StarPU's predictions
 * of the time and of the transfers of the inputs; the measured time; the waits for inputs, the queue and transfers; the
 * transfers made, and the reason for the choice of the device.  Waits for the values.
 *
 * Records are kept only if the engine was started with sl_config.explain or SL_EXPLAIN=1: SL_ESTATE otherwise.  StarPU
 * predicts the time of a task on a device once it has measured it there about ten times; "?" before.  Times are those
 * of the whole task.  For values from the program (sl_from, sl_write) it says so.  Returns the error that spoilt the
 * values, if any, and SL_EINVAL for NULL.
 *
 *     sl_init(&(struct sl_config){.explain = true});
 *     sl_tensor *y = sl_dot(x, w);
 *     sl_explain(y);                       // or sl_fexplain(stderr, y) */
enum sl_status sl_explain_at(const char *at, FILE *file, sl_tensor *t)
{
	SLP_CALL("sl_explain", at);
	char type[160];
	int call;
	if (!slp_tensor_usable(at, "sl_explain", t)) return slp_error_take();
	if (!slp_engine.config.explain) {
		slp_call_fail(at, "sl_explain", SL_ESTATE,
		              "no records of tasks were kept: start the engine with sl_config.explain or SL_EXPLAIN=1");
		return slp_error_take();
	}
	enum sl_status s = sl_wait_at(at, t);
	if (s != SL_OK) return s;
	struct slp_explanation *e = slp_explain_get(t->storage, &call);
	if (e) slp_explain_print(file, e, call, slp_type_string(&t->type, type));
	else
		fprintf(file, "%s: no operation computed it, the program gave its values\n",
		        slp_type_string(&t->type, type));
	slp_explain_release(e);
	return SL_OK;
}
