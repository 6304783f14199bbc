/* The language of programs as text, for printing and parsing.
 *
 *     input data: float32 (1, 784)
 *     param w: float32 (784, 10)
 *     const c: float32 (3,) = [1, 2, 3]        # small ones by value; one number: all elements are that
 *     h = linear(data, w): float32 (1, 10)     # types are optional
 *     bn = batch_norm(h, g, b, m, v, eps=1e-5)
 *     sgd(w, d, lr=0.1)
 *     assign(w, h)                             # writes h into w; a call without a name must write something
 *     return h, bn[1] as mean, add(h, 2)       # results after the first by index; names; numbers; nested calls
 *
 * A name with other characters than letters, digits, _ and . stands in quotes. */
#ifndef SLP_TEXT_H
#define SLP_TEXT_H

#include "graph/graph.h"
#include "op.h"

/* Attributes that are a list with its length in another attribute: X(name in text, length, list). */
#define SLP_TEXT_LISTS(X) X("shape", "ndim", "dim") X("axes", "naxes", "axes")

enum { SLP_TEXT_SHOWN = 64 }; /* elements of a constant by value, at most */

/* Names of enum sl_activation, and words that are not names; both end with NULL. */
extern const char *const slp_activation_names[], *const slp_text_words[];
/* The names of an attribute's values, 0 first, up to NULL; NULL: it has none. */
const char *const *slp_text_names(const struct slp_attr *a);
/* Whether a name needs no quotes. */
bool slp_text_is_plain(const char *name);
/* Whether the node is a number that is printed in its user's line. */
bool slp_text_is_literal(const struct slp_gnode *n);

#endif
