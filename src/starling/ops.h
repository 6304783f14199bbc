/* Operations on tensors.  Each returns a new tensor at once (it is computed later), or NULL after a mistake.
 *
 * tensor.h explains who owns arguments and results, base.h how errors are reported.  For all operations:
 *
 * - The result is on the device of the arguments, which must agree except for those on `auto`: else SL_EDEVICE.  On a
 *   GPU, SL_EUNSUPPORTED if the operation has no CUDA kernel for the data type.
 * - SL_ESHAPE if the result would be larger than any memory, or has more than SL_MAX_NDIM axes.
 * - An operation that fails while it runs spoils its result, and everything computed from it; the next function that
 *   waits for one of these reports the failure, with the place of the call.
 * - Gradients flow back through all of them to float arguments, unless their documentation says otherwise.
 * - Symbols among the arguments make the result a symbol (graph.h). */
#ifndef STARLING_OPS_H
#define STARLING_OPS_H

#include <starling/arithmetic.h>
#include <starling/elementwise.h>
#include <starling/primitives.h>

#endif
