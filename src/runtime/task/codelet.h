/* Codelets: one for each operation, and one for segments of several (codelet.c). */
#ifndef SLP_CODELET_H
#define SLP_CODELET_H

#include "runtime/compat.h"

struct starpu_codelet;

struct slp_segment;
struct slp_segment *slp_segment_new(void);
void slp_segment_free(struct slp_segment *segment);
struct starpu_codelet *slp_codelet_of(int op); /* op -1: of segments with several operations */
void slp_codelets_init(void);
void slp_codelet_add(int op);
void slp_cpu_segment(void *buffers[], void *arg);
void slp_cuda_segment(void *buffers[], void *arg);

#endif
