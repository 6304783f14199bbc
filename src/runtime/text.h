/* Strings that stay until the process ends, each once: call sites and names, which tapes, plans, faults and StarPU
 * refer to for longer than what they belong to may live. */
#ifndef SLP_TEXT_H
#define SLP_TEXT_H

/* The only copy of a text; without memory, `otherwise`. */
const char *slp_text_keep(const char *text, const char *otherwise);

#endif
