/* Parameters of a GPT in safetensors, as Hugging Face's transformers (GPT2LMHeadModel) and nanoGPT name them. */
#ifndef MODELS_GPT_PARAMS_H
#define MODELS_GPT_PARAMS_H

#include "driver/networks.h"

/* Reads the size of the network in the file, except the number of heads: where size->heads is 0, heads are 64 wide.  False
 * with an error. */
bool gpt_params_size(const char *path, struct net_gpt_size *size);
/* Loads them into a net_gpt of that size. */
bool gpt_params_load(sl_block *net, const char *path, const struct net_gpt_size *size);

#endif
