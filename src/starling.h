/* Starling: deep learning in C on StarPU.  This is the header that programs include. */
#ifndef STARLING_H
#define STARLING_H

#include <starling/base.h>
#include <starling/device.h>
#include <starling/tensor.h>
#include <starling/options.h>
#include <starling/ops.h>
#include <starling/functions.h>
#include <starling/autograd.h>
#include <starling/data.h>
#include <starling/graph.h>
#include <starling/nn.h>
#include <starling/io.h>
#include <starling/quantize.h>
#include <starling/checkpoint.h>
#include <starling/spill.h>

#endif
