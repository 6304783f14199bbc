/* The compiler's passes, in the order they run. */
#include "graph/pass/pass.h"
#include "starling/graph.h"

/* Segmentation and memory make the plan and leave the graph as it is. */
#define slp_pass_segment NULL
#define slp_pass_memory NULL
const struct slp_pass slp_passes[SL_PASSES] = {
#define X(NAME, name, doc) [SL_PASS_##NAME] = {#name, doc, slp_pass_##name},
        SL_PASS_LIST(X)
#undef X
};
