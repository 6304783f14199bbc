/* The comparison of topk_hits.c and topk_hits.cu. */
#ifndef SLP_TOPK_HITS_H
#define SLP_TOPK_HITS_H

struct slp_topk_attrs {
	int k;
};

#endif
