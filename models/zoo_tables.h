/* Networks of the zoo as tables, see zoo_tables.c. */
#ifndef MODELS_ZOO_TABLES_H
#define MODELS_ZOO_TABLES_H

#include "zoo_blocks.h"

extern const struct zoo_layer zoo_alexnet[], zoo_squeezenet_1_0[], zoo_squeezenet_1_1[], zoo_squeezenet_output[],
        zoo_inception_v3[];

#endif
