/* AdamW: Adam (adam.h) whose parameters decay by themselves, not through their gradients.
 * I. Loshchilov, F. Hutter, "Decoupled weight decay regularization", ICLR 2019. */
#ifndef SLP_RULES_ADAMW_H
#define SLP_RULES_ADAMW_H

#include "optim/rules/adam.h"
#include "optimizer.h"

#ifndef __cplusplus

static enum sl_status adamw_infer(struct slp_infer *c)
{
	((struct slp_adam_attrs *)c->attrs)->decoupled = true;
	return slp_optim_infer_options(c, &adam_optimizer);
}

SLP_OPTIM_OP(adamw, "a step of AdamW: parameters, gradients, means, variances in turn",
             "param gradient mean variance ...", 4, SLP_IN(0) | SLP_IN(2) | SLP_IN(3), struct slp_adam_attrs,
             adam_attrs, .infer = adamw_infer, SLP_RULE_ROWS(adam, slp_cuda_adam));

static const struct slp_optimizer adamw_optimizer = {
        .name = "adamw",
        .lr = 0.001,
        .states = {"mean", "var"},
        .options = adam_options,
        .noptions = 3,
        .op = &slp_op_adamw,
        .counts = true,
};

#endif

#endif
