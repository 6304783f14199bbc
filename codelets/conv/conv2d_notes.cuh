/* Which of cuDNN's engines and algorithms a precision setting allows: one table for both of its interfaces.
 *
 * Engines of the graph API carry numerical notes. Algorithms of the older interface carry none; their notes are stated
 * here. Unknown notes, of a newer cuDNN, are refused, and so is Winograd's algorithm with tiles of unknown size.
 *
 * Winograd's transforms multiply by powers of the points that they interpolate at.  On an H100, float32 results of the
 * older interface's algorithms differed from double precision by 2e-7 to 3e-6 of the largest value, those of Winograd's
 * with 6 × 6 tiles by 5e-6 to 2e-5, and those with 13 × 13 tiles, for 5 × 5 kernels, by 2e-3 to 5e-3.  In half types the
 * transformed tiles are rounded, too.  Sums by FFT were as near as others, but beside the largest value of a tile, not
 * beside each, and a NaN spreads over its tile. */
#ifndef SLP_CONV2D_NOTES_CUH
#define SLP_CONV2D_NOTES_CUH

#include <stdint.h>

#include "conv2d_graph.h"

/* float32 as it is (SL_TF32=none; float64, too), float32 that may be rounded to TF32, and half types. */
enum slp_precision { SLP_PRECISE, SLP_BY_TF32, SLP_BY_HALVES, SLP_PRECISIONS };

static inline enum slp_precision slp_conv_precision(const struct slp_conv_graph *f)
{
	bool half = f->type == CUDNN_DATA_HALF || f->type == CUDNN_DATA_BFLOAT16;
	return half ? SLP_BY_HALVES : f->tensor_cores ? SLP_BY_TF32 : SLP_PRECISE;
}

/* X(NOTE, PRECISE, BY_TF32, BY_HALVES): whether each allows it. */
#define SLP_CONV_NOTES(X)                                                                                              \
	X(TENSOR_CORE, 0, 1, 1)                                                                                        \
	X(DOWN_CONVERT_INPUTS, 0, 0, 0)                                                                                \
	X(REDUCED_PRECISION_REDUCTION, 0, 0, 0)                                                                        \
	X(FFT, 0, 1, 0)                                                                                                \
	X(NONDETERMINISTIC, 0, 0, 0)                                                                                   \
	X(WINOGRAD, 1, 1, 0) /* with a note for its tiles */                                                           \
	X(WINOGRAD_TILE_4x4, 1, 1, 0)                                                                                  \
	X(WINOGRAD_TILE_6x6, 0, 1, 0)                                                                                  \
	X(WINOGRAD_TILE_13x13, 0, 0, 0)                                                                                \
	X(STRICT_NAN_PROP, 1, 1, 1)

enum { SLP_NOTE_UNKNOWN = 1 << 30 };

static inline unsigned slp_note_bit(int64_t note)
{
#define X(name, ...) note == CUDNN_NUMERICAL_NOTE_##name ||
	if (!(SLP_CONV_NOTES(X) 0)) return SLP_NOTE_UNKNOWN;
#undef X
	return 1u << note;
}

/* Notes are a set of bits. */
static inline unsigned slp_notes_allowed(enum slp_precision precision)
{
	unsigned set = 0;
#define X(name, ...)                                                                                                   \
	{                                                                                                              \
		const bool may[SLP_PRECISIONS] = {__VA_ARGS__};                                                        \
		set |= may[precision] ? slp_note_bit(CUDNN_NUMERICAL_NOTE_##name) : 0;                                 \
	}
	SLP_CONV_NOTES(X)
#undef X
	return set;
}

static inline bool slp_notes_may(enum slp_precision precision, unsigned notes)
{
	const unsigned tiles = slp_note_bit(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4) |
	                       slp_note_bit(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6) |
	                       slp_note_bit(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13);
	if (notes & slp_note_bit(CUDNN_NUMERICAL_NOTE_WINOGRAD) && !(notes & tiles)) return false;
	return !(notes & ~slp_notes_allowed(precision));
}

/* ---- the older interface ----------------------------------------------------------------------------------------- */

/* X(ALGORITHM, note): the note that its name implies; the three passes have the same names. */
#define SLP_CONV_ALGORITHMS(X, pass)                                                                                   \
	X(pass, FFT, FFT)                                                                                              \
	X(pass, FFT_TILING, FFT)                                                                                       \
	X(pass, WINOGRAD, WINOGRAD_TILE_4x4)                                                                           \
	X(pass, WINOGRAD_NONFUSED, WINOGRAD)

/* By the type of its enum. */
#define X(pass, name, note)                                                                                            \
	if (algorithm == CUDNN_CONVOLUTION_##pass##_ALGO_##name) return slp_note_bit(CUDNN_NUMERICAL_NOTE_##note);
static inline unsigned slp_note_of(cudnnConvolutionFwdAlgo_t algorithm)
{
	SLP_CONV_ALGORITHMS(X, FWD)
	return 0;
}

static inline unsigned slp_note_of(cudnnConvolutionBwdDataAlgo_t algorithm)
{
	SLP_CONV_ALGORITHMS(X, BWD_DATA)
	return 0;
}

static inline unsigned slp_note_of(cudnnConvolutionBwdFilterAlgo_t algorithm)
{
	SLP_CONV_ALGORITHMS(X, BWD_FILTER)
	return 0;
}
#undef X

/* Separate transforms take 6 × 6 tiles for 3 × 3 kernels, 13 × 13 for 5 × 5. */
static inline unsigned slp_winograd_notes(int64_t kh, int64_t kw)
{
	unsigned note = slp_note_bit(CUDNN_NUMERICAL_NOTE_WINOGRAD);
	if (kh == 3 && kw == 3) return note | slp_note_bit(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6);
	return note | slp_note_bit(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13);
}

/* Of a proposal P for kernels of kh × kw. */
template <class P> static inline unsigned slp_notes_of(const P &p, int64_t kh, int64_t kw)
{
	unsigned notes = slp_note_of(p.algo);
	if (notes == slp_note_bit(CUDNN_NUMERICAL_NOTE_WINOGRAD)) notes = slp_winograd_notes(kh, kw);
	if (p.determinism != CUDNN_DETERMINISTIC) notes |= slp_note_bit(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
	if (p.mathType == CUDNN_TENSOR_OP_MATH) notes |= slp_note_bit(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
	if (p.mathType == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION)
		notes |= slp_note_bit(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
	return notes;
}

/* Facts that an engine of the graph API does not note. On an H100, cuDNN 9.19's engine 17 of gradients of weights gave
 * those of 5 × 5 kernels the values of WINOGRAD_NONFUSED, off by 4e-3, without a note about 13 × 13 tiles. */
static inline unsigned slp_notes_unsaid(const struct slp_conv_graph *f, int64_t engine, unsigned said)
{
	const unsigned winograd = slp_note_bit(CUDNN_NUMERICAL_NOTE_WINOGRAD) |
	                          slp_note_bit(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4) |
	                          slp_note_bit(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6);
	bool by_winograd = said & winograd || (f->pass == SLP_CONV_WEIGHTS && engine == 17);
	if (!by_winograd || (f->c.kh == 3 && f->c.kw == 3)) return 0;
	return slp_winograd_notes(f->c.kh, f->c.kw);
}

#endif
