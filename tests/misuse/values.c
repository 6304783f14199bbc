/* Numbers, shapes, texts, memory: what makes sense, what is at the edge, and what is beyond it. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pool.h"
#include "inner.h"

static _Thread_local uint64_t state;

void pool_seed(uint64_t seed)
{
	state = seed;
}

/* SplitMix64 */
static uint64_t draw(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

int below(int n)
{
	return (int)(draw() % (uint64_t)n);
}

/* One of a list; its type is that of `type`. */
#define PICK(type, ...)                                                                                                \
	({                                                                                                             \
		static const type list_[] = {__VA_ARGS__};                                                             \
		list_[below(sizeof list_ / sizeof *list_)];                                                            \
	})

bool sometimes(void)
{
	return below(5) < 2;
}
bool pool_sensible;

bool often(void)
{
	return below(20) > 0 || pool_sensible;
}
int any_int(void)
{
	return often() ? PICK(int, 0, 1, 2, 3, 4, 5, -1, -2, 1, 2, 0)
	               : PICK(int, -7, 7, 64, 100, 100000, INT_MAX, INT_MIN, INT_MAX - 1, 1 << 30);
}
int any_count(void)
{
	return often() ? PICK(int, 0, 1, 2, 3, 4, 1, 2) : PICK(int, -1, INT_MIN, 5, 17, 64, 65, 1000);
}
int any_enum(void)
{
	return often() ? PICK(int, 0, 1, 2, 3, 4, 5, 6, 7, 8) : PICK(int, -1, 9, 13, 100, INT_MAX, INT_MIN);
}
int64_t any_int64_t(void)
{
	return often() ? PICK(int64_t, 0LL, 1, 2, 3, 4, 5, -1, -2, 1, 2)
	               : PICK(int64_t, -7LL, 7, 64, 1LL << 40, 1LL << 62, INT64_MAX, INT64_MIN, 1LL << 32, 100000);
}
uint64_t any_uint64_t(void)
{
	return (uint64_t)any_int64_t();
}
size_t any_size_t(void)
{
	return (size_t)(often() ? PICK(int64_t, 0LL, 1, 2, 4, 8, 12, 24, 16, 48)
	                        : PICK(int64_t, -1LL, 1 << 20, INT64_MIN, 7));
}
double any_double(void)
{
	return often() ? PICK(double, 0.0, 1.0, 0.5, 0.1, 2.0, 1e-3, -1.0)
	               : PICK(double, NAN, INFINITY, -INFINITY, 1e300, -1e300, 1e-310, -0.0, 1e18);
}
bool any_bool(void)
{
	return below(2);
}
char any_char(void)
{
	return PICK(char, ',', ';', '\t', 0, '"', '\n', -1, 'x');
}

static int64_t any_dim(bool huge)
{
	return often() || !huge ? PICK(int64_t, 1LL, 2, 3, 4, 5, 2, 3)
	                        : PICK(int64_t, 0LL, -1, -2, 1LL << 40, 1LL << 62, INT64_MAX, INT64_MIN, 8, 16);
}
static sl_shape shape(bool huge)
{
	sl_shape s = {often() ? below(5) : PICK(int, -1, 6, 7, INT_MAX, INT_MIN), {0}};
	for (int i = 0; i < SL_MAX_NDIM; i++) s.dim[i] = any_dim(huge);
	return s;
}
sl_shape any_sl_shape(void)
{
	return shape(true);
}
sl_shape any_small_shape(void)
{
	sl_shape s = shape(false);
	if (!often()) s.dim[0] = PICK(int64_t, 0LL, -1, INT64_MIN);
	return s;
}
sl_device any_sl_device(void)
{
	return often() ? PICK(sl_device, {0, 0}, {SL_DEVICE_CPU, 0}, {SL_DEVICE_CPU, 1}, {SL_DEVICE_AUTO, 0})
	               : PICK(sl_device, {SL_DEVICE_GPU, 0}, {SL_DEVICE_CPU, 7}, {SL_DEVICE_CPU, -1},
	                      {SL_DEVICE_CPU, INT_MIN}, {9, 1}, {-1, 3}, {SL_DEVICE_GPU, INT_MAX});
}

static char longest[5000];
const char *any_text(void)
{
	if (!longest[0]) memset(longest, 'a', sizeof longest - 1);
	static const char *const texts[] = {"x",
	                                    "y",
	                                    "",
	                                    "0.weight",
	                                    "0",
	                                    "weight",
	                                    "ij,jk->ik",
	                                    "ij->ji",
	                                    "cpu",
	                                    "cpu:0",
	                                    "float32",
	                                    "a.npy",
	                                    "a.safetensors",
	                                    "a.params",
	                                    "a.onnx",
	                                    "a-symbol.json",
	                                    "a.csv",
	                                    "a.bin",
	                                    "folder",
	                                    "input x: float32 (2,)\ny = relu(x)\nreturn y",
	                                    "w.npy",
	                                    "w.safetensors",
	                                    "run"};
	static const char *const wrong[] = {"%s%s%n%d",
	                                    "/nonexistent/x",
	                                    "../x/../",
	                                    "\xff\xfe",
	                                    ".",
	                                    "/",
	                                    "a b\nc",
	                                    "->",
	                                    ",,->",
	                                    "iii->i",
	                                    "x.",
	                                    ".x",
	                                    "gpu:99999999999",
	                                    "cpu:-1",
	                                    "/dev/null",
	                                    "/dev/full",
	                                    longest,
	                                    "@",
	                                    "\""};
	if (below(12) == 0) return NULL;
	return below(3) ? texts[below(sizeof texts / sizeof *texts)] : wrong[below(sizeof wrong / sizeof *wrong)];
}

FILE *any_file_stream(void)
{
	static FILE *null, *full, *input;
	if (!null) null = fopen("/dev/null", "w"), full = fopen("/dev/full", "w"), input = fopen("/dev/null", "r");
	return PICK(int, 0, 1, 1, 1, 1, 2, 3) == 0 ? NULL : below(6) ? null : below(2) ? full : input;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

void *any_memory(void)
{
	return below(8) ? kept(calloc(1, MEMORY), free) : NULL;
}
void *any_results(void)
{
	return below(12) ? kept(calloc(ARRAY, 2 * sizeof(void *)), free) : NULL;
}

static int called(void)
{
	return 0;
}
void *any_function(void)
{
	return below(6) ? (void *)called : NULL;
}

#define ARRAY_OF(type, name, element)                                                                                  \
	type *any_array_of_##name(void)                                                                                \
	{                                                                                                              \
		type *p = below(8) ? kept(calloc(ARRAY, sizeof *p), free) : NULL;                                      \
		for (int i = 0; p && i < 4; i++) p[i] = element;                                                       \
		return p;                                                                                              \
	}
ARRAY_OF(double, double, any_double())
ARRAY_OF(int, int, any_int())
ARRAY_OF(int64_t, int64_t, any_int64_t())
ARRAY_OF(sl_device, sl_device, any_sl_device())
ARRAY_OF(sl_shape, sl_shape, any_sl_shape())
ARRAY_OF(struct sl_batch, sl_batch, (struct sl_batch){0})
ARRAY_OF(struct sl_energy, sl_energy, (struct sl_energy){0})
ARRAY_OF(struct sl_stats, sl_stats, (struct sl_stats){0})
ARRAY_OF(struct sl_gradcheck_worst, sl_gradcheck_worst, (struct sl_gradcheck_worst){0})
ARRAY_OF(struct sl_sample, sl_sample, (struct sl_sample){0})
ARRAY_OF(struct sl_plan_number, sl_plan_number, ((struct sl_plan_number){any_text(), any_double()}))
/* Memory of a program's inputs or results, which are small. */
void **any_array_of_void(void)
{
	enum { LARGE = 1 << 20 };
	void **p = below(8) ? kept(calloc(ARRAY, sizeof *p), free) : NULL;
	for (int i = 0; p && i < 4; i++) p[i] = kept(calloc(1, LARGE), free);
	return p;
}
static struct sl_optimizer optimizer(void)
{
	return (struct sl_optimizer){
	        .kind = (enum sl_optimizer_kind)any_enum(), .lr = any_double(), .eps = any_double()};
}
ARRAY_OF(struct sl_optimizer, sl_optimizer, optimizer())
static struct sl_op_attr attr(int i)
{
	struct sl_op_attr none = {0};
	return i > 1 ? none
	             : (struct sl_op_attr){any_text(), (enum sl_op_attr_kind)any_enum(), any_size_t(), any_int(),
	                                   any_text()};
}
ARRAY_OF(struct sl_op_attr, sl_op_attr, attr(i))
static struct sl_schedule schedule(void)
{
	return (struct sl_schedule){(enum sl_schedule_kind)any_enum(),
	                            any_int64_t(),
	                            any_int64_t(),
	                            any_double(),
	                            any_int64_t(),
	                            any_double(),
	                            any_double(),
	                            any_bool()};
}
ARRAY_OF(struct sl_schedule, sl_schedule, schedule())
static struct sl_param_name param_name(void)
{
	return (struct sl_param_name){any_text(), any_text(), any_bool()};
}
ARRAY_OF(struct sl_param_name, sl_param_name, param_name())
static struct sl_transform transform(void)
{
	struct sl_transform t = {
	        .kind = (enum sl_transform_kind)any_enum(), .height = any_int64_t(), .width = any_int64_t()};
	if (sometimes()) t.pad = any_int64_t();
	if (sometimes()) t.p = any_double();
	if (sometimes()) t.mean[1] = any_double(), t.std[0] = any_double();
	if (sometimes()) t.brightness = any_double(), t.contrast = any_double(), t.saturation = any_double();
	if (sometimes()) t.map = any_function();
	return t;
}
ARRAY_OF(struct sl_transform, sl_transform, transform())
