/* Networks that train on an emulated GPU in whole steps, whose kernels are counted. */
#ifndef SLP_TESTS_EMU_COURSES_H
#define SLP_TESTS_EMU_COURSES_H

#include <starling.h>

/* rows: of a batch; size: of square images of one channel; words of a row, negative; width: channels of a ResNet-18's
 * first layer, of a GPT's vectors. */
struct course {
	const char *name;
	sl_block *(*network)(const struct course *c);
	enum sl_dtype type;
	enum sl_tf32 tf32;
	int rows, size, width;
};

sl_block *course_lenet(const struct course *c);
sl_block *course_resnet18(const struct course *c);
sl_block *course_gpt(const struct course *c); /* four layers */

/* Trains on a device; the loss of the last step.  at_end(c, arg): after it, when kernels and calls of this step alone have
 * been counted. */
double course_train(const struct course *c, sl_device device, void (*at_end)(const struct course *c, void *arg),
                    void *arg);

/* In a build with EMU_RACES: no launch of at most 256 threads has more to do than one multiprocessor can in 4 µs. */
struct emu_kernel;
void course_check_alone(const struct course *c, const struct emu_kernel *k);

/* Settings of the engine before it starts. */
struct sl_config course_config(const struct course *c);

#endif
