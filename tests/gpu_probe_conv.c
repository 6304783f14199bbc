/* gpu_probe: convolutions with a bias and relu in one operation of cuDNN beside the same in steps, and their plans with
 * channels last beside those for the engine's layout.  Values are compared, too. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <starling.h>

#include "op_list/conv.h"
#include "conv/conv2d_graph.h"
#include "gpu_probe.h"

struct layer {
	const char *name;
	int64_t n, ic, size, oc, kernel, pad, stride;
};

static const struct layer layers[] = {
#ifdef SLP_EMULATE
        {"small", 2, 3, 8, 4, 3, 1, 1},
        {"small, strides", 2, 4, 9, 6, 3, 1, 2},
#else
        {"LeNet's first", 256, 1, 28, 6, 5, 2, 1},
        {"LeNet's second", 256, 6, 14, 16, 5, 0, 1},
        {"ResNet-18's first", 32, 3, 224, 64, 7, 3, 2},
        {"ResNet-18, 64 channels", 64, 64, 56, 64, 3, 1, 1},
        {"ResNet-18, 128 channels", 64, 128, 28, 128, 3, 1, 1},
        {"ResNet-18, 256 channels", 64, 256, 14, 256, 3, 1, 1},
        {"ResNet-18, 512 channels", 64, 512, 7, 512, 3, 1, 1},
        {"ResNet-18, 1 x 1, strides", 64, 64, 56, 128, 1, 0, 2},
#endif
};
enum { LAYERS = sizeof layers / sizeof *layers, TIMES = 20 };

static struct slp_conv sizes_of(const struct layer *l)
{
	int64_t y = (l->size + 2 * l->pad - l->kernel) / l->stride + 1;
	return (struct slp_conv){.n = l->n,
	                         .ic = l->ic,
	                         .ih = l->size,
	                         .iw = l->size,
	                         .oc = l->oc,
	                         .oh = y,
	                         .ow = y,
	                         .kh = l->kernel,
	                         .kw = l->kernel,
	                         .groups = 1,
	                         .sh = l->stride,
	                         .sw = l->stride,
	                         .ph = l->pad,
	                         .pw = l->pad,
	                         .dh = 1,
	                         .dw = 1};
}

static int64_t size_of_y(const struct layer *l)
{
	struct slp_conv c = sizes_of(l);
	return c.n * c.oc * c.oh * c.ow;
}

static float *random_values(int64_t n, unsigned seed)
{
	float *v = malloc((size_t)n * sizeof *v);
	must(v, "memory");
	for (int64_t i = 0; i < n; i++) {
		seed = seed * 1664525 + 1013904223;
		v[i] = (float)(seed >> 8) / (1 << 23) - 1;
	}
	return v;
}

/* The largest difference, as a part of the largest value. */
static double difference(const float *a, const float *b, int64_t n)
{
	double most = 0, largest = 0;
	for (int64_t i = 0; i < n; i++) {
		double d = fabs((double)a[i] - b[i]);
		if (!(d <= most)) most = d;
		largest = fmax(largest, fabs(a[i]));
	}
	return most / largest;
}

static int wrong; /* layers whose results differ by more than rounding */

static void compare(const float *a, const float *b, int64_t n, bool tf32)
{
	double d = difference(a, b, n);
	bool ok = d <= (tf32 ? 1e-2 : 1e-4);
	printf("; the results differ by %.1e%s\n", d, ok ? "" : ": TOO MUCH");
	wrong += !ok;
}

static void all_alike(void)
{
	if (wrong) printf("%d results differ too much\n", wrong);
	must(!wrong, "both ways give the same values");
}

/* ---- one operation or several, through the engine ---------------------------------------------------------------- */

/* s a call; the result goes to y. */
static double time_calls(const struct slp_conv2d_attrs *a, sl_tensor *const in[3], float *y, size_t bytes)
{
	double begin = 0;
	well(sl_read(slp_apply1(SL_HERE, &slp_op_conv2d, a, 3, in), y, bytes), "a convolution");
	for (int i = 0; i < 2 * TIMES; i++) {
		if (i == TIMES) {
			well(sl_wait_all(), "convolutions");
			begin = now();
		}
		SL_SCOPE
			slp_apply1(SL_HERE, &slp_op_conv2d, a, 3, in);
	}
	well(sl_wait_all(), "convolutions");
	return (now() - begin) / TIMES;
}

static double through_engine(const struct layer *l, float *y)
{
	struct slp_conv c = sizes_of(l);
	struct slp_conv2d_attrs a = {.conv = {.stride = {(int)c.sh}, .pad = {(int)c.ph, (int)c.pw}},
	                             .activation = SL_RELU};
	float *x = random_values(c.n * c.ic * c.ih * c.iw, 1), *w = random_values(c.oc * c.ic * c.kh * c.kw, 2);
	float *b = random_values(c.oc, 3);
	double time = 0;
	SL_SCOPE {
		sl_tensor *in[] = {sl_from(x, SL_SHAPE(c.n, c.ic, c.ih, c.iw)),
		                   sl_from(w, SL_SHAPE(c.oc, c.ic, c.kh, c.kw)), sl_from(b, SL_SHAPE(c.oc))};
		time = time_calls(&a, in, y, (size_t)size_of_y(l) * sizeof *y);
	}
	free(x);
	free(w);
	free(b);
	return time;
}

struct measured {
	float *y;
	double time;
};

static void run_layers(bool fuse, bool tf32, struct measured to[LAYERS])
{
	setenv("SL_CUDNN_GRAPH", fuse ? "1" : "0", 1);
	setenv("SL_GPU_AUTOTUNE", "0", 1); /* what is compared is not to be chosen */
	well(sl_init(&(struct sl_config){.seed = 1, .tf32 = tf32 ? SL_TF32_CONV : SL_TF32_NONE}), "sl_init");
	well(sl_device_default(sl_gpu(0)), "gpu:0 is the default");
	for (int i = 0; i < LAYERS; i++) {
		to[i].y = malloc((size_t)size_of_y(&layers[i]) * sizeof(float));
		must(to[i].y, "memory");
		to[i].time = through_engine(&layers[i], to[i].y);
	}
	sl_shutdown();
}

void probe_convolutions(void)
{
	struct measured steps[LAYERS], fused[LAYERS];
	for (int tf32 = 0; tf32 < 2; tf32++) {
		run_layers(false, tf32, steps);
		run_layers(true, tf32, fused);
		for (int i = 0; i < LAYERS; i++) {
			printf("%s, %s: in steps %.1f us, in one %.1f us: %.2f", layers[i].name,
			       tf32 ? "TF32" : "float32", 1e6 * steps[i].time, 1e6 * fused[i].time,
			       steps[i].time / fused[i].time);
			compare(steps[i].y, fused[i].y, size_of_y(&layers[i]), tf32);
			free(steps[i].y);
			free(fused[i].y);
		}
	}
	all_alike();
}

/* ---- layouts ----------------------------------------------------------------------------------------------------- */

/* (n, c, h * w) to (n, h * w, c), or back. */
static void reorder(const float *from, float *to, int64_t n, int64_t channels, int64_t plane, bool back)
{
	for (int64_t i = 0; i < n * channels * plane; i++) {
		int64_t image = i / (channels * plane), c = i / plane % channels;
		int64_t last = (image * plane + i % plane) * channels + c;
		if (back) to[i] = from[last];
		else to[last] = from[i];
	}
}

static size_t element(const struct slp_conv_graph *f)
{
	return f->type == CUDNN_DATA_BFLOAT16 ? sizeof(sl_bfloat16) : sizeof(float);
}

/* In the type and the layout of the convolution. */
static void *on_device(const float *values, int64_t n, int64_t channels, int64_t plane, const struct slp_conv_graph *f)
{
	int64_t count = n * channels * plane;
	size_t bytes = (size_t)count * element(f);
	float *host = malloc((size_t)count * sizeof *host);
	void *p = device_memory(bytes);
	must(host, "memory");
	if (f->nhwc) reorder(values, host, n, channels, plane, false);
	else memcpy(host, values, (size_t)count * sizeof *host);
	if (f->type == CUDNN_DATA_BFLOAT16) /* in place: what is written has been read */
		for (int64_t i = 0; i < count; i++) {
			sl_bfloat16 v = slp_bfloat16_of_float(host[i]);
			memcpy((char *)host + (size_t)i * sizeof v, &v, sizeof v);
		}
	CUDA(cudaMemcpy(p, host, bytes, cudaMemcpyHostToDevice));
	free(host);
	return p;
}

/* Back, as float32 in the engine's layout. */
static void from_device(const void *p, float *y, const struct slp_conv_graph *f)
{
	const struct slp_conv *c = &f->c;
	int64_t count = c->n * c->oc * c->oh * c->ow;
	float *host = malloc((size_t)count * sizeof *host);
	must(host, "memory");
	CUDA(cudaMemcpy(host, p, (size_t)count * element(f), cudaMemcpyDeviceToHost));
	if (f->type == CUDNN_DATA_BFLOAT16)
		for (int64_t i = count - 1; i >= 0; i--) {
			sl_bfloat16 v;
			memcpy(&v, (char *)host + (size_t)i * sizeof v, sizeof v);
			host[i] = slp_float_of_bfloat16(v);
		}
	if (f->nhwc) reorder(host, y, c->n, c->oc, c->oh * c->ow, true);
	else memcpy(y, host, (size_t)count * sizeof *y);
	free(host);
}

/* s a run; negative: there is no plan. */
static double time_of(const struct slp_conv_graph *f, const struct slp_conv_graph_at *at)
{
	double begin = 0;
	for (int i = 0; i < 2 * TIMES; i++) {
		if (i == TIMES) {
			CUDA(cudaStreamSynchronize(at->stream));
			begin = now();
		}
		if (!slp_conv_graph_run(f, at)) return -1;
	}
	CUDA(cudaStreamSynchronize(at->stream));
	return (now() - begin) / TIMES;
}

/* With its own operands; the result goes to y, in the engine's layout. */
static double run_layout(struct slp_conv_graph *f, cudaStream_t s, float *y)
{
	const struct slp_conv *c = &f->c;
	float *x = random_values(c->n * c->ic * c->ih * c->iw, 1), *w = random_values(c->oc * c->ic * c->kh * c->kw, 2);
	float *b = random_values(c->oc, 3);
	size_t bytes = (size_t)(c->n * c->oc * c->oh * c->ow) * element(f);
	struct slp_conv_graph_at at = {.x = on_device(x, c->n, c->ic, c->ih * c->iw, f),
	                               .w = on_device(w, c->oc, c->ic, c->kh * c->kw, f),
	                               .b = on_device(b, 1, c->oc, 1, f),
	                               .y = device_memory(bytes),
	                               .work = device_memory(f->limit),
	                               .stream = s};
	double time = time_of(f, &at);
	from_device(at.y, y, f);
	const void *const device[] = {at.x, at.w, at.b, at.y, at.work};
	for (int i = 0; i < 5; i++) CUDA(cudaFree((void *)device[i]));
	free(x);
	free(w);
	free(b);
	return time;
}

/* s: the least that it takes to reorder x and y. */
static double copying(const struct slp_conv_graph *f, cudaStream_t s)
{
	const struct slp_conv *c = &f->c;
	size_t bytes = (size_t)(c->n * (c->ic * c->ih * c->iw + c->oc * c->oh * c->ow)) * element(f);
	void *a = device_memory(bytes), *b = device_memory(bytes);
	double begin = 0;
	for (int i = 0; i < 2 * TIMES; i++) {
		if (i == TIMES) {
			CUDA(cudaStreamSynchronize(s));
			begin = now();
		}
		CUDA(cudaMemcpyAsync(b, a, bytes, cudaMemcpyDeviceToDevice, s));
	}
	CUDA(cudaStreamSynchronize(s));
	begin = now() - begin;
	CUDA(cudaFree(a));
	CUDA(cudaFree(b));
	return begin / TIMES;
}

/* As much as the engine gives (src/runtime/memory/admission.c). */
static size_t workspace(void)
{
	size_t left = 0, all = 0, least = (size_t)64 << 20;
	CUDA(cudaMemGetInfo(&left, &all));
	return all / 32 > least ? all / 32 : least;
}

enum way { FLOAT32, TF32, BFLOAT16, WAYS };

static void compare_layouts(const struct layer *l, enum way way, cudnnHandle_t h, cudaStream_t s)
{
	static const char *const names[] = {"float32", "TF32", "bfloat16"};
	struct slp_conv_graph f;
	memset(&f, 0, sizeof f); /* padding too */
	f.handle = h;
	f.c = sizes_of(l);
	f.limit = workspace();
	f.bias = f.relu = 1;
	f.tensor_cores = way != FLOAT32;
	f.type = way == BFLOAT16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
	int64_t n = size_of_y(l);
	float *y[2] = {malloc((size_t)n * sizeof **y), malloc((size_t)n * sizeof **y)};
	must(y[0] && y[1], "memory");
	double time[2];
	for (int i = 0; i < 2; i++) {
		f.nhwc = i;
		time[i] = run_layout(&f, s, y[i]);
	}
	printf("%s, %s: NCHW %.1f us, NHWC %.1f us (negative: no plan), a copy of x and y %.1f us", l->name, names[way],
	       1e6 * time[0], 1e6 * time[1], 1e6 * copying(&f, s));
	if (time[0] > 0 && time[1] > 0) compare(y[0], y[1], n, way != FLOAT32);
	else putchar('\n');
	free(y[0]);
	free(y[1]);
}

void probe_layouts(void)
{
	cudaStream_t s = stream_new();
	cudnnHandle_t h = dnn_handle(s);
	must(slp_dnn_graph.cudnnBackendExecute, "cuDNN has the graph API");
	for (int i = 0; i < WAYS * LAYERS; i++) compare_layouts(&layers[i / WAYS], (enum way)(i % WAYS), h, s);
	all_alike();
}
