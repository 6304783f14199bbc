/* A network trained from C++: the same calls, arrays in place with SL_ARRAY, and an exception that leaves a scope. */
#include <cmath>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

#include "book.h"

/* ---- owners --------------------------------------------------------------------------------------------------- */

struct free_block {
	void operator()(sl_block *block) const
	{
		sl_block_free(block);
	}
};
struct free_trainer {
	void operator()(sl_trainer *trainer) const
	{
		sl_trainer_free(trainer);
	}
};
using block_owner = std::unique_ptr<sl_block, free_block>;
using trainer_owner = std::unique_ptr<sl_trainer, free_trainer>;

/* ---- data ----------------------------------------------------------------------------------------------------- */

/* Points on a circle of radius 1 have label 0, those on one of radius 2 have label 1. */
static void circles(int n, sl_tensor **x, sl_tensor **y)
{
	std::vector<float> points;
	std::vector<int32_t> labels;
	for (int i = 0; i < n; i++) {
		float radius = 1.0f + i % 2, angle = 0.1f * i;
		points.insert(points.end(), {radius * std::cos(angle), radius * std::sin(angle)});
		labels.push_back(i % 2);
	}
	*x = sl_from(points.data(), SL_SHAPE(n, 2));
	*y = sl_from(labels.data(), SL_SHAPE(n), .dtype = SL_INT32);
}

/* ---- training ------------------------------------------------------------------------------------------------- */

static double train(sl_block *net, sl_tensor *x, sl_tensor *y, int steps)
{
	trainer_owner trainer(sl_trainer_new(net, sl_adam(.lr = 0.05)));
	double last = NAN;
	for (int i = 0; i < steps; i++)
		SL_SCOPE {
			sl_tensor *loss;
			SL_RECORD
				loss = sl_softmax_cross_entropy(sl_forward(net, x), y);
			sl_backward(loss);
			sl_trainer_step(trainer.get(), sl_tensor_shape(x).dim[0]);
			if (i == steps - 1) last = sl_item(sl_mean(loss));
		}
	if (sl_error() != SL_OK) throw std::runtime_error(sl_error_message());
	return last;
}

/* ---- main ----------------------------------------------------------------------------------------------------- */

int main()
{
	try {
		block_owner net(sl_sequential(sl_dense(16, .activation = SL_TANH), sl_dense(2)));
		sl_initialize(net.get(), .init = sl_xavier_init());
		sl_hybridize(net.get());
		SL_SCOPE {
			sl_tensor *x, *y;
			circles(200, &x, &y);
			std::printf("loss: %s\n", train(net.get(), x, y, 100) < 0.1 ? "below 0.1" : "0.1 or more");
			sl_tensor *inside = sl_from(SL_ARRAY(float, 0.6f, 0.8f, 1.2f, 1.6f), SL_SHAPE(2, 2));
			sl_print(sl_argmax(sl_forward(net.get(), inside), -1));
			train(net.get(), sl_ones(SL_SHAPE(200, 3)), y, 1); /* three coordinates: wrong */
		}
	} catch (const std::runtime_error &error) {
		std::printf("caught: %s\n", std::strlen(error.what()) > 0 ? "the message names the place" : "nothing");
		sl_error_clear();
	}
	return finish();
}
