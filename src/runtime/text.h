/* Strings that stay until the process ends, each stored once: call sites and names, which tapes, plans, faults and
 * StarPU refer to for longer than their owners may live. */
#ifndef SLP_TEXT_H
#define SLP_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* The only copy of a text; without memory, `otherwise`. */
const char *slp_text_keep(const char *text, const char *otherwise);

/* Names from files and peers may hold codes that a terminal would obey: a text in which control characters stand as
 * \xNN, cut off where it does not fit; with `lines`, ends of lines and tabs stay.  Returns the text. */
char *slp_text_escape(char *text, size_t size, bool lines);

#endif
