/* The networks of the zoo: a row each, and the functions that build families of them. */
#include <string.h>

#include "zoo_networks.h"
#include "zoo_tables.h"

enum { STAGES = 5 };

struct row {
	struct zoo_network network;
	sl_block *(*features)(const struct row *row);
	int counts[STAGES];            /* of blocks, or of convolutions, in each stage */
	bool wide;                     /* residual blocks of three convolutions, not two */
	bool norm;                     /* VGG */
	int first, growth;             /* DenseNet: channels */
	double factor;                 /* MobileNet: times the channels */
	const struct zoo_layer *table; /* instead */
};

/* ---- convolutions ------------------------------------------------------------------------------------------------ */

static sl_block *conv(int channels, int kernel, int stride, bool bias)
{
	return sl_conv2d_layer(channels, .kernel = {kernel}, .stride = {stride, stride},
	                       .pad = {kernel / 2, kernel / 2}, .no_bias = !bias);
}

static void add_norm_relu(sl_block *s)
{
	zoo_add(s, (struct zoo_layer){.kind = ZOO_NORM});
	zoo_add(s, (struct zoo_layer){.kind = ZOO_RELU});
}

/* The first layers of ResNets and DenseNets. */
static void add_stem(sl_block *s, int channels)
{
	zoo_add_block(s, conv(channels, 7, 2, false));
	add_norm_relu(s);
	zoo_add(s, (struct zoo_layer){.kind = ZOO_MAX, .kernel = {3}, .stride = 2, .pad = {1}});
}

/* ---- ResNet: K. He, X. Zhang, S. Ren, J. Sun, "Deep residual learning for image recognition", 2016, and "Identity
 * mappings in deep residual networks", 2016 ------------------------------------------------------------------------ */

struct convolution {
	int channels, kernel, stride;
	bool bias;
};

/* The convolutions of a block; returns their number.  The first version has its stride first, and biases as Gluon. */
static int residual_convolutions(const struct row *r, bool v2, int channels, int stride, struct convolution *c)
{
	if (!r->wide) {
		c[0] = (struct convolution){channels, 3, stride, false};
		c[1] = (struct convolution){channels, 3, 1, false};
		return 2;
	}
	c[0] = (struct convolution){channels / 4, 1, v2 ? 1 : stride, !v2};
	c[1] = (struct convolution){channels / 4, 3, v2 ? stride : 1, false};
	c[2] = (struct convolution){channels, 1, 1, !v2};
	return 3;
}

static sl_block *residual_v1(const struct row *r, int channels, int stride, bool downsample)
{
	struct convolution c[3];
	int count = residual_convolutions(r, false, channels, stride, c);
	sl_block *block = zoo_join(ZOO_SUM, !downsample, SL_RELU), *body = zoo_sequence();
	for (int i = 0; i < count; i++) {
		zoo_add_block(body, conv(c[i].channels, c[i].kernel, c[i].stride, c[i].bias));
		zoo_add(body, (struct zoo_layer){.kind = ZOO_NORM});
		if (i + 1 < count) zoo_add(body, (struct zoo_layer){.kind = ZOO_RELU});
	}
	sl_block_add(block, "body", body);
	if (!downsample) return block;
	sl_block *beside = zoo_sequence();
	zoo_add_block(beside, conv(channels, 1, stride, false));
	zoo_add(beside, (struct zoo_layer){.kind = ZOO_NORM});
	sl_block_add(block, "downsample", beside);
	return block;
}

static sl_block *residual_v2(const struct row *r, int channels, int stride, bool downsample)
{
	struct convolution c[3];
	sl_block *convs[3];
	int count = residual_convolutions(r, true, channels, stride, c);
	for (int i = 0; i < count; i++) convs[i] = conv(c[i].channels, c[i].kernel, c[i].stride, c[i].bias);
	return zoo_preactivated(convs, count, downsample ? conv(channels, 1, stride, false) : NULL);
}

static void add_stages(sl_block *s, const struct row *r,
                       sl_block *(*residual)(const struct row *r, int channels, int stride, bool downsample))
{
	for (int i = 0; i < 4; i++) {
		sl_block *stage = zoo_sequence();
		int channels = (r->wide ? 256 : 64) << i;
		bool changes = i > 0 || r->wide;
		for (int k = 0; k < r->counts[i]; k++)
			zoo_add_block(stage, residual(r, channels, !k && i ? 2 : 1, !k && changes));
		zoo_add_block(s, stage);
	}
}

static sl_block *resnet_v1(const struct row *r)
{
	sl_block *s = zoo_sequence();
	add_stem(s, 64);
	add_stages(s, r, residual_v1);
	zoo_add(s, (struct zoo_layer){.kind = ZOO_GLOBAL});
	return s;
}

static sl_block *resnet_v2(const struct row *r)
{
	sl_block *s = zoo_sequence();
	zoo_add_block(s, sl_batch_norm_layer(.no_scale = true, .no_center = true));
	add_stem(s, 64);
	add_stages(s, r, residual_v2);
	add_norm_relu(s);
	zoo_add(s, (struct zoo_layer){.kind = ZOO_GLOBAL});
	zoo_add(s, (struct zoo_layer){.kind = ZOO_FLATTEN});
	return s;
}

/* ---- VGG: K. Simonyan, A. Zisserman, "Very deep convolutional networks for large-scale image recognition", 2015 --- */

static sl_block *vgg(const struct row *r)
{
	sl_block *s = zoo_sequence();
	for (int i = 0; i < STAGES; i++) {
		for (int k = 0; k < r->counts[i]; k++) {
			zoo_add_block(s, conv(i < 3 ? 64 << i : 512, 3, 1, true));
			if (r->norm) zoo_add(s, (struct zoo_layer){.kind = ZOO_NORM});
			zoo_add(s, (struct zoo_layer){.kind = ZOO_RELU});
		}
		zoo_add(s, (struct zoo_layer){.kind = ZOO_MAX, .kernel = {2}, .stride = 2});
	}
	for (int i = 0; i < 2; i++) {
		zoo_add(s, (struct zoo_layer){.kind = ZOO_DENSE, .channels = 4096, .relu = true});
		zoo_add(s, (struct zoo_layer){.kind = ZOO_DROPOUT});
	}
	return s;
}

/* ---- DenseNet: G. Huang, Z. Liu, L. van der Maaten, K. Weinberger, "Densely connected convolutional networks", 2017; the
 * last pooling, of 7 x 7, is one of the whole image here ----------------------------------------------------------- */

static sl_block *dense_layer(int growth)
{
	sl_block *join = zoo_join(ZOO_CONCAT, true, SL_IDENTITY), *s = zoo_sequence();
	add_norm_relu(s);
	zoo_add_block(s, conv(4 * growth, 1, 1, false));
	add_norm_relu(s);
	zoo_add_block(s, conv(growth, 3, 1, false));
	sl_block_add(join, "1", s);
	return join;
}

static void add_transition(sl_block *s, int channels)
{
	sl_block *t = zoo_sequence();
	add_norm_relu(t);
	zoo_add_block(t, conv(channels, 1, 1, false));
	zoo_add(t, (struct zoo_layer){.kind = ZOO_AVERAGE, .kernel = {2}, .stride = 2});
	zoo_add_block(s, t);
}

static sl_block *densenet(const struct row *r)
{
	sl_block *s = zoo_sequence();
	int channels = r->first;
	add_stem(s, channels);
	for (int i = 0; i < 4; i++) {
		sl_block *stage = zoo_sequence();
		for (int k = 0; k < r->counts[i]; k++) zoo_add_block(stage, dense_layer(r->growth));
		zoo_add_block(s, stage);
		channels += r->counts[i] * r->growth;
		if (i < 3) add_transition(s, channels /= 2);
	}
	add_norm_relu(s);
	zoo_add(s, (struct zoo_layer){.kind = ZOO_GLOBAL});
	zoo_add(s, (struct zoo_layer){.kind = ZOO_FLATTEN});
	return s;
}

/* ---- MobileNet: A. Howard and others, "MobileNets: efficient convolutional neural networks for mobile vision
 * applications", 2017; M. Sandler and others, "MobileNetV2: inverted residuals and linear bottlenecks", 2018 ------- */

static int scaled(const struct row *r, int channels)
{
	return (int)(channels * r->factor);
}

enum ending { LINEAR, WITH_RELU, WITH_RELU6 };

/* A convolution, channel by channel or of all of them, normalised. */
static void add_unit(sl_block *s, int channels, int kernel, int stride, bool each, enum ending ending)
{
	zoo_add_block(s,
	              sl_conv2d_layer(channels, .kernel = {kernel}, .stride = {stride, stride},
	                              .pad = {kernel / 2, kernel / 2}, .groups = each ? channels : 1, .no_bias = true));
	zoo_add(s, (struct zoo_layer){.kind = ZOO_NORM});
	if (ending == WITH_RELU) zoo_add(s, (struct zoo_layer){.kind = ZOO_RELU});
	if (ending == WITH_RELU6) zoo_add_block(s, zoo_relu6());
}

static sl_block *mobilenet_v1(const struct row *r)
{
	static const struct {
		int channels, stride;
	} parts[] = {{64, 1},  {128, 2}, {128, 1}, {256, 2}, {256, 1},  {512, 2}, {512, 1},
	             {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1}};
	sl_block *s = zoo_sequence();
	int before = 32;
	add_unit(s, scaled(r, before), 3, 2, false, WITH_RELU);
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		add_unit(s, scaled(r, before), 3, parts[i].stride, true, WITH_RELU);
		add_unit(s, scaled(r, parts[i].channels), 1, 1, false, WITH_RELU);
		before = parts[i].channels;
	}
	zoo_add(s, (struct zoo_layer){.kind = ZOO_GLOBAL});
	zoo_add(s, (struct zoo_layer){.kind = ZOO_FLATTEN});
	return s;
}

static sl_block *bottleneck(int before, int channels, int wider, int stride)
{
	sl_block *join = zoo_join(ZOO_SUM, stride == 1 && before == channels, SL_IDENTITY), *s = zoo_sequence();
	add_unit(s, wider * before, 1, 1, false, WITH_RELU6);
	add_unit(s, wider * before, 3, stride, true, WITH_RELU6);
	add_unit(s, channels, 1, 1, false, LINEAR);
	sl_block_add(join, "out", s);
	return join;
}

static sl_block *mobilenet_v2(const struct row *r)
{
	static const struct {
		int wider, channels, count, stride;
	} stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
	              {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
	sl_block *s = zoo_sequence();
	int before = scaled(r, 32);
	add_unit(s, before, 3, 2, false, WITH_RELU6);
	for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
		for (int k = 0; k < stages[i].count; k++) {
			int channels = scaled(r, stages[i].channels);
			zoo_add_block(s, bottleneck(before, channels, stages[i].wider, k ? 1 : stages[i].stride));
			before = channels;
		}
	add_unit(s, 1280, 1, 1, false, WITH_RELU6);
	zoo_add(s, (struct zoo_layer){.kind = ZOO_GLOBAL});
	return s;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static sl_block *from_table(const struct row *r)
{
	return zoo_layers(r->table, 0);
}

#define PAPER_RESNET "He and others 2016"
#define PAPER_VGG "Simonyan and Zisserman 2015"
#define PAPER_DENSENET "Huang and others 2017"
#define PAPER_MOBILENET "Howard and others 2017"
#define PAPER_MOBILENET_V2 "Sandler and others 2018"
#define RESNET_OF(number, version, is_wide, ...)                                                                       \
	{                                                                                                              \
		.network = {"resnet" #number "_v" #version, 224, 1, PAPER_RESNET}, .features = resnet_v##version,      \
		.counts = {__VA_ARGS__}, .wide = is_wide                                                               \
	}
#define RESNET(number, ...) RESNET_OF(number, 1, __VA_ARGS__), RESNET_OF(number, 2, __VA_ARGS__)
#define VGG_OF(name, with_norm, ...)                                                                                   \
	{                                                                                                              \
		.network = {name, 224, 32, PAPER_VGG}, .features = vgg, .counts = {__VA_ARGS__}, .norm = with_norm     \
	}
#define VGG(number, ...) VGG_OF("vgg" #number, false, __VA_ARGS__), VGG_OF("vgg" #number "_bn", true, __VA_ARGS__)
#define DENSENET(number, channels, more, ...)                                                                          \
	{                                                                                                              \
		.network = {"densenet" #number, 224, 29, PAPER_DENSENET}, .features = densenet,                        \
		.counts = {__VA_ARGS__}, .first = channels, .growth = more                                             \
	}
#define MOBILENET_OF(name, paper, made, times)                                                                         \
	{                                                                                                              \
		.network = {name, 224, 1, paper}, .features = made, .factor = times                                    \
	}
#define MOBILENET(times)                                                                                               \
	MOBILENET_OF("mobilenet" #times, PAPER_MOBILENET, mobilenet_v1, times),                                        \
	        MOBILENET_OF("mobilenetv2_" #times, PAPER_MOBILENET_V2, mobilenet_v2, times)
#define TABLE(name, size, smallest, paper, layers)                                                                     \
	{                                                                                                              \
		.network = {name, size, smallest, paper}, .features = from_table, .table = layers                      \
	}

static const struct row rows[] = {
        TABLE("alexnet", 224, 63, "Krizhevsky 2014", zoo_alexnet),
        DENSENET(121, 64, 32, 6, 12, 24, 16),
        DENSENET(161, 96, 48, 6, 12, 36, 24),
        DENSENET(169, 64, 32, 6, 12, 32, 32),
        DENSENET(201, 64, 32, 6, 12, 48, 32),
        TABLE("inceptionv3", 299, 75, "Szegedy and others 2016", zoo_inception_v3),
        MOBILENET(0.25),
        MOBILENET(0.5),
        MOBILENET(0.75),
        MOBILENET(1.0),
        RESNET(18, false, 2, 2, 2, 2),
        RESNET(34, false, 3, 4, 6, 3),
        RESNET(50, true, 3, 4, 6, 3),
        RESNET(101, true, 3, 4, 23, 3),
        RESNET(152, true, 3, 8, 36, 3),
        TABLE("squeezenet1.0", 224, 29, "Iandola and others 2016", zoo_squeezenet_1_0),
        TABLE("squeezenet1.1", 224, 25, "Iandola and others 2016", zoo_squeezenet_1_1),
        VGG(11, 1, 1, 2, 2, 2),
        VGG(13, 2, 2, 2, 2, 2),
        VGG(16, 2, 2, 3, 3, 3),
        VGG(19, 2, 2, 4, 4, 4),
};

const struct zoo_network *zoo_network(int i)
{
	return i >= 0 && i < (int)(sizeof rows / sizeof *rows) ? &rows[i].network : NULL;
}

const struct zoo_network *zoo_find(const char *name)
{
	for (int i = 0; zoo_network(i); i++)
		if (!strcmp(zoo_network(i)->name, name)) return zoo_network(i);
	return NULL;
}

/* Two families have no dense layer at the end. */
static sl_block *output_of(const struct row *r, int64_t classes)
{
	static const struct zoo_layer mobilenet_output[] = {
	        {.kind = ZOO_CONV, .channels = ZOO_CLASSES, .kernel = {1}}, {.kind = ZOO_FLATTEN}, {.kind = ZOO_END}};
	if (r->features == mobilenet_v2) return zoo_layers(mobilenet_output, classes);
	if (r->table == zoo_squeezenet_1_0 || r->table == zoo_squeezenet_1_1)
		return zoo_layers(zoo_squeezenet_output, classes);
	return sl_dense(classes);
}

sl_block *zoo_build(const struct zoo_network *network, int64_t classes)
{
	const struct row *r = (const struct row *)network;
	return zoo_net(r->features(r), output_of(r, classes));
}
