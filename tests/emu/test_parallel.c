/* The engine on two emulated GPUs: where kernels run, what travels, what happens when something fails. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <starling/own.h>
#include <starling.h>

#include "check.h"
#include "emulated.h"
#include "lenet.h"
#include "runtime/task/buffer.h"

static int start(void)
{
	return sl_init(&(struct sl_config){.teams = 1, .sched = "dmda"}) != SL_OK ||
	       sl_device_count(SL_DEVICE_GPU) != 2;
}

static struct emu_counts counts(void)
{
	struct emu_counts c;
	CHECK_OK(sl_wait_all());
	emu_counts_get(&c);
	return c;
}

/* ---- placing ---------------------------------------------------------------------------------------------------- */

static void test_where_told(void)
{
	for (int i = 0; i < 2; i++) {
		SL_SCOPE {
			sl_tensor *x = sl_full(SL_SHAPE(300, 300), 2, .device = sl_gpu(i));
			counts();
			emu_counts_reset();
			sl_tensor *y = sl_matmul(x, x);
			CHECK_OK(sl_wait(y));
			struct emu_counts c = counts();
			CHECK(c.launches[i] == 1 && c.launches[1 - i] == 0);
			CHECK(c.link[EMU_HOST][i].copies == 0 && c.link[1 - i][i].copies == 0);
			CHECK_ALL(y, 1200);
		}
	}
}

static void test_between_devices(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_full(SL_SHAPE(1000), 3, .device = sl_gpu(0));
		counts();
		emu_counts_reset();
		sl_tensor *y = sl_add_scalar(sl_copy_to(x, sl_gpu(1)), 1);
		struct emu_counts c = counts();
		CHECK(c.link[0][1].copies == 1 && c.link[0][EMU_HOST].copies == 0 && c.link[EMU_HOST][1].copies == 0);
		CHECK(sl_device_equal(sl_tensor_device(y), sl_gpu(1)));
		CHECK_ALL(y, 4);
	}
}

/* ---- operations that programs register -------------------------------------------------------------------------- */

static enum sl_status twin_cuda(const struct sl_op_call *c)
{
	size_t bytes = (size_t)sl_shape_size(c->in[0].shape) * sizeof(float);
	if (bytes == 4) return sl_op_fail(c, SL_EKERNEL, "one element is too few");
	cudaError_t e = cudaMemcpyAsync(c->out[0].data, c->in[0].data, bytes, cudaMemcpyDeviceToDevice,
	                                (cudaStream_t)c->stream);
	return e == cudaSuccess ? SL_OK : SL_EKERNEL;
}

static enum sl_status twin_cpu(const struct sl_op_call *c)
{
	memcpy(c->out[0].data, c->in[0].data, (size_t)sl_shape_size(c->in[0].shape) * sizeof(float));
	return SL_OK;
}

/* The CUDA kernel runs where the tensors are; on `auto`, either. */
static void test_own(void)
{
	const sl_op *twin = sl_op_register(.name = "own_twin", .nin = 1, .cpu = twin_cpu, .cuda = twin_cuda),
	            *plain = sl_op_register(.name = "own_plain", .nin = 1, .cpu = twin_cpu);
	for (int i = 0; i < 3; i++) {
		sl_device device = i < 2 ? sl_gpu(i) : sl_auto();
		SL_SCOPE {
			sl_tensor *x = sl_arange(0, 100, 1, .device = device),
			          *one = sl_ones(SL_SHAPE(1), .device = device);
			sl_tensor *y = sl_op_apply(twin, &x, 1), *z = sl_add_scalar(y, 1);
			CHECK_ALL(sl_sub(z, x), 1);
			CHECK_ALL(sl_sub(sl_op_apply(i < 2 ? twin : plain, &y, 1), x), 0);
			if (i == 2) continue;
			CHECK_STATUS(sl_wait(sl_op_apply(twin, &one, 1)), SL_EKERNEL, "own_twin at ", "GPU",
			             "one element is too few");
			sl_error_clear();
			sl_wait_all();
			sl_error_clear();
			CHECK_NULL(sl_op_apply(plain, &x, 1), SL_EUNSUPPORTED, "own_plain", "no CUDA kernel");
		}
	}
}

/* ---- data-parallel training ------------------------------------------------------------------------------------- */

enum { ROWS = 8, STEPS = 3 };

struct replica {
	sl_device device;
	sl_tensor *params[NPARAMS], *grads[NPARAMS], *loss;
};

static void make_replica(struct replica *r, sl_tensor *const *params, sl_device device)
{
	r->device = device;
	get_params(params, device, r->params);
	for (int p = 0; p < NPARAMS; p++) r->grads[p] = sl_grad(r->params[p]);
}

static void forward(struct replica *r, int label)
{
	sl_tensor *x = sl_uniform(SL_SHAPE(ROWS, 1, 28, 28), 0, 1, .device = r->device);
	sl_tensor *y = sl_cast(sl_full(SL_SHAPE(ROWS), label, .device = r->device), SL_INT32);
	r->loss = sl_softmax_cross_entropy(lenet(x, r->params), y);
}

static void step(struct replica *r, int label)
{
	SL_RECORD {
		for (int i = 0; i < 2; i++) forward(&r[i], label);
	}
	for (int i = 0; i < 2; i++) CHECK_OK(sl_backward(r[i].loss));
	for (int p = 0; p < NPARAMS; p++) allreduce((sl_tensor *[]){r[0].grads[p], r[1].grads[p]}, 2);
	for (int i = 0; i < 2; i++)
		sl_sgd_update(r[i].params, r[i].grads, NULL, NPARAMS, .lr = 0.1, .rescale = 1.0 / ROWS);
}

static void steps(struct replica *r, int n)
{
	for (int i = 0; i < n; i++) {
		SL_SCOPE {
			step(r, i);
		}
	}
	CHECK_OK(sl_wait_all());
}

/* Copies of what is as large as parameter p from one place to another. */
static uint64_t copies(const sl_tensor *w, int from, int to)
{
	size_t bytes = (size_t)sl_shape_size(sl_tensor_shape(w)) * sizeof(float);
	return emu_copies(from, to, slp_buffer_class_bytes(bytes));
}

static void check_transfers(const sl_tensor *w, int parameter)
{
	int to = (int)copies(w, 1, 0), from = (int)copies(w, 0, 1);
	CHECK_SAYING(to == STEPS, "parameter %d: %d times to gpu:0 in %d steps", parameter, to, STEPS);
	CHECK_SAYING(from == STEPS, "parameter %d: %d times to gpu:1 in %d steps", parameter, from, STEPS);
	for (int d = 0; d < 2; d++) {
		CHECK(copies(w, d, EMU_HOST) == 0);
		CHECK(copies(w, EMU_HOST, d) == 0);
	}
}

/* Each parameter's gradient moves once to the device that sums, the sum once back; none passes through the host. */
static void test_transfers(void)
{
	static const int large[] = {W2, W3, W4}; /* no other tensor is of their sizes */
	struct replica replicas[2];
	SL_SCOPE {
		sl_tensor *params[NPARAMS];
		init_params(params, sl_gpu(0));
		for (int i = 0; i < 2; i++) make_replica(&replicas[i], params, sl_gpu(i));
		steps(replicas, 2);
		emu_counts_reset();
		steps(replicas, STEPS);
		for (int i = 0; i < 3; i++) check_transfers(replicas[0].params[large[i]], large[i]);
		CHECK_VALUES(sl_sum(sl_sub(replicas[0].params[W3], sl_copy_to(replicas[1].params[W3], sl_gpu(0)))), 0);
	}
}

/* ---- failures --------------------------------------------------------------------------------------------------- */

/* A launch that fails is the operation's failure, and reported; then all is well again. */
static void check_failed_launch(sl_tensor *(*call)(void), const char *op)
{
	SL_SCOPE {
		counts();
		emu_fail(EMU_LAUNCH, -1); /* all: a convolution that fails one way is computed in the other */
		sl_tensor *y = call();
		CHECK(y != NULL);
		CHECK_STATUS(sl_wait_all(), SL_EKERNEL, op, "failed on");
		sl_error_clear();
		emu_fail(EMU_LAUNCH, 0);
		y = call();
		CHECK_OK(sl_wait_all());
	}
}

static sl_tensor *call_fill(void)
{
	return sl_full(SL_SHAPE(100, 100), 1, .device = sl_gpu(0));
}

static sl_tensor *x, *w;

static sl_tensor *call_matmul(void)
{
	return sl_matmul(x, x);
}

static sl_tensor *call_conv2d(void)
{
	return sl_conv2d(sl_reshape(x, SL_SHAPE(1, 1, 100, 100)), w, NULL);
}

static void test_failed_launches(void)
{
	check_failed_launch(call_fill, "fill");
	SL_SCOPE {
		x = call_fill();
		w = sl_ones(SL_SHAPE(2, 1, 3, 3), .device = sl_gpu(0));
		check_failed_launch(call_matmul, "matmul");
		check_failed_launch(call_conv2d, "conv2d");
	}
}

/* An allocation that fails makes StarPU look for memory again: results come all the same. */
static void test_failed_allocations(void)
{
	for (int k = 1; k <= 4; k++) {
		SL_SCOPE {
			emu_fail(EMU_MALLOC, k);
			sl_tensor *a = sl_full(SL_SHAPE(200, 1000 + k), 2, .device = sl_gpu(0));
			sl_tensor *b = sl_add_scalar(sl_copy_to(a, sl_gpu(1)), k);
			CHECK_ALL(sl_add(sl_copy_to(b, sl_gpu(0)), a), 4 + k);
			emu_fail(EMU_MALLOC, 0);
		}
	}
}

/* A copy that fails is made again.  If it fails again, whoever reads the values gets the error. */
static void test_failed_copies(void)
{
	SL_SCOPE {
		float values[4];
		sl_tensor *a = sl_full(SL_SHAPE(4), 1, .device = sl_gpu(0)),
		          *b = sl_full(SL_SHAPE(4), 1, .device = sl_gpu(0));
		counts();
		emu_fail(EMU_COPY, 1);
		CHECK_ALL(sl_add_scalar(sl_place(a, sl_gpu(1)), 1), 2);
		emu_fail(EMU_COPY, -1);
		sl_tensor *c = sl_square(sl_place(b, sl_gpu(1)));
		CHECK_STATUS(sl_wait_all(), SL_EDEVICE, "a copy of 64 bytes from gpu:0 to gpu:1 failed");
		sl_error_clear();
		CHECK_STATUS(sl_read(c, values, sizeof values), SL_EDEVICE, "from gpu:0 to gpu:1");
		sl_error_clear();
		sl_tensor *d = sl_full(SL_SHAPE(4), 1, .device = sl_gpu(1));
		CHECK_STATUS(sl_read(d, values, sizeof values), SL_EDEVICE, "from gpu:1 to main memory");
		sl_error_clear();
		emu_fail(EMU_COPY, 0);
		CHECK_ALL(sl_add_scalar(sl_full(SL_SHAPE(4), 1, .device = sl_gpu(0)), 1), 2);
	}
	CHECK_OK(sl_wait_all());
}

/* What does not fit in a GPU's memory by itself is refused: StarPU would wait for ever. */
static void test_too_large(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_zeros(SL_SHAPE(600, 1 << 18), .device = sl_gpu(1));
		CHECK_STATUS(sl_wait_all(), SL_ENOMEM, "fill", "MiB at once", "gpu:1 has");
		sl_error_clear();
		CHECK(isnan(sl_item(sl_sum(sl_rows(x, 0, 1)))) && sl_error() == SL_ENOMEM);
		sl_error_clear();
		CHECK_ALL(sl_ones(SL_SHAPE(3), .device = sl_gpu(1)), 1);
	}
}

/* ---- TF32 -------------------------------------------------------------------------------------------------------- */

/* Kernels that may round to TF32, of those of a product, of a convolution and its gradients. */
static void check_tf32(enum sl_tf32 setting, uint64_t products, uint64_t convolutions)
{
	CHECK_OK(sl_init(&(struct sl_config){.teams = 1, .tf32 = setting}));
	SL_SCOPE {
		sl_tensor *a = sl_full(SL_SHAPE(64, 64), 2, .device = sl_gpu(0));
		sl_tensor *x = sl_full(SL_SHAPE(2, 3, 8, 8), 1, .device = sl_gpu(0));
		sl_tensor *w = sl_full(SL_SHAPE(4, 3, 3, 3), 1, .device = sl_gpu(0)), *y = NULL;
		counts();
		emu_counts_reset();
		sl_matmul(a, a);
		CHECK(counts().tf32[0] == products);
		emu_counts_reset();
		CHECK_OK(sl_attach_grad(x));
		CHECK_OK(sl_attach_grad(w));
		SL_RECORD
			y = sl_sum(sl_conv2d(x, w, NULL));
		CHECK_OK(sl_backward(y));
		uint64_t found = counts().tf32[0];
		CHECK_SAYING(found == convolutions, "%d convolutions in TF32, not %d", (int)found, (int)convolutions);
		emu_counts_reset();
		sl_matmul(sl_cast(a, SL_FLOAT64), sl_cast(a, SL_FLOAT64));
		CHECK(counts().tf32[0] == 0);
	}
	slp_stop_engine();
}

static void test_tf32(void)
{
	check_tf32(SL_TF32_NONE, 0, 0);
	check_tf32(SL_TF32_CONV, 0, 3);
	check_tf32(SL_TF32_ALL, 1, 3);
	check_tf32(SL_TF32_DEFAULT, 0, 3); /* PyTorch's */
	setenv("SL_TF32", "all", 1);
	check_tf32(SL_TF32_DEFAULT, 1, 3);
	check_tf32(SL_TF32_NONE, 0, 0);
	unsetenv("SL_TF32");
}

static const struct slp_test tests[] = {
        {"kernels where they are told to run", test_where_told},
        {"from device to device", test_between_devices},
        {"operations of programs", test_own},
        {"transfers of data-parallel training", test_transfers},
        {"failed launches", test_failed_launches},
        {"failed allocations", test_failed_allocations},
        {"failed copies", test_failed_copies},
        {"too large for a GPU", test_too_large},
        {0},
};

static const struct slp_test tf32_tests[] = {{"where products may round to TF32", test_tf32}, {0}};

int main(int argc, char **argv)
{
	setenv("SL_EMU_DEVICES", "2", 1);
	setenv("STARPU_SUBALLOCATOR", "0", 1);
	return slp_test_main(argc, argv,
	                     (const struct slp_suite[]){
	                             {.name = "two GPUs", .tests = tests, .start = start, .stop = slp_stop_engine},
	                             {.name = "TF32", .tests = tf32_tests},
	                             {0}});
}
