/* The command line of the programs of the book that train. */
#include <argp.h>
#include <stdlib.h>

#include "book.h"

enum { KEY_LIMIT = 0x100, KEY_EPOCHS, KEY_BATCH, KEY_LR, KEY_DEVICE };

static const struct argp_option keys[] = {
        {"limit", KEY_LIMIT, "N", 0, "Train and test with the first N images only", 0},
        {"epochs", KEY_EPOCHS, "N", 0, "Go N times over the images", 0},
        {"batch-size", KEY_BATCH, "N", 0, "Images in a batch, over all devices", 0},
        {"lr", KEY_LR, "RATE", 0, "Learning rate", 0},
        {"device", KEY_DEVICE, "LIST", 0, "Devices to train on, such as cpu:0,cpu:1 or gpu:0-1", 0},
        {0},
};

static int64_t count(struct argp_state *state, const char *text)
{
	char *end;
	long long n = strtoll(text, &end, 10);
	if (end == text || *end || n < 1) argp_error(state, "%s: not a number of 1 or more", text);
	return n;
}

static error_t parse(int key, char *text, struct argp_state *state)
{
	struct options *o = state->input;
	switch (key) {
	case KEY_LIMIT: o->limit = count(state, text); return 0;
	case KEY_EPOCHS: o->epochs = count(state, text); return 0;
	case KEY_BATCH: o->batch_size = count(state, text); return 0;
	case KEY_LR: o->lr = atof(text); return 0;
	case KEY_DEVICE: o->names = text; return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

/* As many CPU devices as the names need: cpu:1 needs two. */
static int teams(const struct options *o)
{
	int most = 0;
	for (int i = 0; i < o->n; i++)
		if (o->devices[i].kind == SL_DEVICE_CPU && o->devices[i].index > most) most = o->devices[i].index;
	return most + 1;
}

/* Overrides the options by the command line, and starts Starling with the given devices. */
bool prepare(int argc, char **argv, struct options *o)
{
	argp_parse(&(struct argp){.options = keys, .parser = parse}, argc, argv, 0, NULL, o);
	o->n = sl_device_parse(o->names, o->devices, MAX_DEVICES);
	if (o->n > 0 && sl_init(&(struct sl_config){.teams = teams(o)}) == SL_OK) return true;
	fprintf(stderr, "%s\n", sl_error_message());
	return false;
}
