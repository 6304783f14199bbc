/* Operations on tensors.  Each returns a new tensor at once (it is computed later), or NULL after a mistake.
 *
 * tensor.h explains the ownership of arguments and results, base.h the errors.  For all operations:
 *
 * - The result is on the device of the arguments.  Arguments that are not on `auto` must be on one device: else
 *   SL_EDEVICE.  On a GPU, SL_EUNSUPPORTED if the operation has no CUDA kernel for the data type.
 * - SL_ESHAPE if the result would be larger than any memory, or has more than SL_MAX_NDIM axes.
 * - An operation that fails while it runs spoils its result, and everything computed from it; the next function that
 *   waits for a spoilt value reports the failure, with the place of the call.
 * - Gradients flow to all float arguments, unless an operation's documentation says otherwise.
 * - Symbols among the arguments make the result a symbol (graph.h). */
#ifndef STARLING_OPS_H
#define STARLING_OPS_H

#include <starling/arithmetic.h>
#include <starling/elementwise.h>
#include <starling/primitives.h>

#endif
