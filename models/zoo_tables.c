/* Networks of the zoo that are written as tables of layers. */
#include "zoo_tables.h"

#define SEQUENCE                                                                                                       \
	{                                                                                                              \
		.kind = ZOO_SEQUENCE                                                                                   \
	}
#define BRANCHES                                                                                                       \
	{                                                                                                              \
		.kind = ZOO_BRANCHES                                                                                   \
	}
#define END                                                                                                            \
	{                                                                                                              \
		.kind = ZOO_END                                                                                        \
	}
#define RELU                                                                                                           \
	{                                                                                                              \
		.kind = ZOO_RELU                                                                                       \
	}
#define GLOBAL                                                                                                         \
	{                                                                                                              \
		.kind = ZOO_GLOBAL                                                                                     \
	}
#define FLATTEN                                                                                                        \
	{                                                                                                              \
		.kind = ZOO_FLATTEN                                                                                    \
	}
#define DROPOUT                                                                                                        \
	{                                                                                                              \
		.kind = ZOO_DROPOUT                                                                                    \
	}
#define DENSE(...)                                                                                                     \
	{                                                                                                              \
		.kind = ZOO_DENSE, __VA_ARGS__                                                                         \
	}
#define MAX(...)                                                                                                       \
	{                                                                                                              \
		.kind = ZOO_MAX, .kernel = {3}, .stride = 2, __VA_ARGS__                                               \
	}
/* CONV(channels, kernel, …): with a bias; the ReLU after it is a separate layer, or part of it (.relu). */
#define CONV(c, k, ...)                                                                                                \
	{                                                                                                              \
		.kind = ZOO_CONV, .channels = c, .kernel = {k, k}, .bias = true, __VA_ARGS__                           \
	}

/* ---- A. Krizhevsky, "One weird trick for parallelizing convolutional neural networks", 2014 ---------------------- */

const struct zoo_layer zoo_alexnet[] = {
        CONV(64, 11, .stride = 4, .pad = {2, 2}, .relu = true),
        MAX(),
        CONV(192, 5, .pad = {2, 2}, .relu = true),
        MAX(),
        CONV(384, 3, .pad = {1, 1}, .relu = true),
        CONV(256, 3, .pad = {1, 1}, .relu = true),
        CONV(256, 3, .pad = {1, 1}, .relu = true),
        MAX(),
        FLATTEN,
        DENSE(.channels = 4096, .relu = true),
        DROPOUT,
        DENSE(.channels = 4096, .relu = true),
        DROPOUT,
        END,
};

/* ---- F. Iandola and others, "SqueezeNet: AlexNet-level accuracy with 50x fewer parameters and <0.5MB model size", 2016;
 * the last pooling, of 13 x 13, is one of the whole image here ----------------------------------------------------- */

#define FIRE(squeezed, expanded)                                                                                       \
	SEQUENCE, SEQUENCE, CONV(squeezed, 1), RELU, END, BRANCHES, SEQUENCE, CONV(expanded, 1), RELU, END, SEQUENCE,  \
	        CONV(expanded, 3, .pad = {1, 1}), RELU, END, END, END

/* clang-format off */
const struct zoo_layer zoo_squeezenet_1_0[] = {
	CONV(96, 7, .stride = 2), RELU,
	MAX(.ceil = true), FIRE(16, 64), FIRE(16, 64), FIRE(32, 128),
	MAX(.ceil = true), FIRE(32, 128), FIRE(48, 192), FIRE(48, 192), FIRE(64, 256),
	MAX(.ceil = true), FIRE(64, 256),
	DROPOUT, END,
};

const struct zoo_layer zoo_squeezenet_1_1[] = {
	CONV(64, 3, .stride = 2), RELU,
	MAX(.ceil = true), FIRE(16, 64), FIRE(16, 64),
	MAX(.ceil = true), FIRE(32, 128), FIRE(32, 128),
	MAX(.ceil = true), FIRE(48, 192), FIRE(48, 192), FIRE(64, 256), FIRE(64, 256),
	DROPOUT, END,
};
/* clang-format on */

const struct zoo_layer zoo_squeezenet_output[] = {CONV(ZOO_CLASSES, 1), RELU, GLOBAL, FLATTEN, END};

/* ---- C. Szegedy and others, "Rethinking the Inception architecture for computer vision", 2016; the last pooling, of
 * 8 x 8, is one of the whole image here ---------------------------------------------------------------------------- */

/* A convolution without a bias, normalised, with a ReLU: of k x k, or of h x w elements. */
#define UNIT_OF(c, h, w, ...)                                                                                          \
	SEQUENCE, {.kind = ZOO_CONV, .channels = c, .kernel = {h, w}, __VA_ARGS__}, {.kind = ZOO_NORM, .eps = 1e-3},   \
	        RELU, END
#define UNIT(c, k, ...) UNIT_OF(c, k, k, __VA_ARGS__)
#define ROW(c, k) UNIT_OF(c, 1, k, .pad = {0, (k) / 2})
#define COLUMN(c, k) UNIT_OF(c, k, 1, .pad = {(k) / 2, 0})
#define BRANCH(...) SEQUENCE, __VA_ARGS__, END
#define JOINED(...) BRANCHES, __VA_ARGS__, END
#define AVERAGE                                                                                                        \
	{                                                                                                              \
		.kind = ZOO_AVERAGE, .kernel = {3}, .stride = 1, .pad = { 1 }                                          \
	}

/* clang-format off */
#define INCEPTION_A(pooled)                                                                                            \
	JOINED(BRANCH(UNIT(64, 1)),                                                                                    \
	       BRANCH(UNIT(48, 1), UNIT(64, 5, .pad = {2, 2})),                                                        \
	       BRANCH(UNIT(64, 1), UNIT(96, 3, .pad = {1, 1}), UNIT(96, 3, .pad = {1, 1})),                            \
	       BRANCH(AVERAGE, UNIT(pooled, 1)))
#define INCEPTION_B                                                                                                    \
	JOINED(BRANCH(UNIT(384, 3, .stride = 2)),                                                                      \
	       BRANCH(UNIT(64, 1), UNIT(96, 3, .pad = {1, 1}), UNIT(96, 3, .stride = 2)),                              \
	       BRANCH(MAX()))
#define INCEPTION_C(c)                                                                                                 \
	JOINED(BRANCH(UNIT(192, 1)),                                                                                   \
	       BRANCH(UNIT(c, 1), ROW(c, 7), COLUMN(192, 7)),                                                          \
	       BRANCH(UNIT(c, 1), COLUMN(c, 7), ROW(c, 7), COLUMN(c, 7), ROW(192, 7)),                                 \
	       BRANCH(AVERAGE, UNIT(192, 1)))
#define INCEPTION_D                                                                                                    \
	JOINED(BRANCH(UNIT(192, 1), UNIT(320, 3, .stride = 2)),                                                        \
	       BRANCH(UNIT(192, 1), ROW(192, 7), COLUMN(192, 7), UNIT(192, 3, .stride = 2)),                           \
	       BRANCH(MAX()))
#define SPLIT(c) JOINED(BRANCH(ROW(c, 3)), BRANCH(COLUMN(c, 3)))
#define INCEPTION_E                                                                                                    \
	JOINED(BRANCH(UNIT(320, 1)),                                                                                   \
	       BRANCH(BRANCH(UNIT(384, 1)), SPLIT(384)),                                                               \
	       BRANCH(BRANCH(UNIT(448, 1), UNIT(384, 3, .pad = {1, 1})), SPLIT(384)),                                  \
	       BRANCH(AVERAGE, UNIT(192, 1)))

const struct zoo_layer zoo_inception_v3[] = {
	UNIT(32, 3, .stride = 2), UNIT(32, 3), UNIT(64, 3, .pad = {1, 1}), MAX(),
	UNIT(80, 1), UNIT(192, 3), MAX(),
	INCEPTION_A(32), INCEPTION_A(64), INCEPTION_A(64),
	INCEPTION_B,
	INCEPTION_C(128), INCEPTION_C(160), INCEPTION_C(160), INCEPTION_C(192),
	INCEPTION_D,
	INCEPTION_E, INCEPTION_E,
	GLOBAL, DROPOUT, END,
};
/* clang-format on */
