/* The state of a run: arrays and numbers by name, gathered from parts (network, trainer, loader, …) and restored. */
#ifndef SLP_STATE_H
#define SLP_STATE_H

#include <jansson.h>

#include "data/loader.h"
#include "nn/nn.h"
#include "op.h"
#include "starling/checkpoint.h"

struct slp_state {
	const char *at, *function; /* whose call, for messages */
	const struct sl_checkpoint_opts *opts;
	json_t *figures; /* an object a part */
	char **names;
	sl_tensor **tensors; /* retained */
	bool *used;          /* restoring: a part has claimed it */
	int count, capacity;
	struct slp_loader_state loader; /* where it stood before the moment that is saved */
	FILE *differences;              /* restoring: the differences, one on each line */
	int ndifferent, shown;          /* in all; of the part that is being looked at */
};

void slp_state_clear(struct slp_state *s);
/* Adds an array under a name; false with an error recorded. */
bool slp_state_add(struct slp_state *s, sl_tensor *t, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The array of that name, which then counts as used; NULL: no such array. */
sl_tensor *slp_state_find(struct slp_state *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Counts one, and gives where to write a line about it; NULL: enough have been written about this part. */
FILE *slp_state_difference(struct slp_state *s);
/* Adds a line about a difference: "\n  optimiser: adam in the file, sgd here". */
void slp_state_differs(struct slp_state *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* One about a tensor that is missing, or of another type. */
void slp_state_check_type(struct slp_state *s, const char *name, struct slp_type mine, const sl_tensor *saved);
void slp_state_check_tensor(struct slp_state *s, const char *name, const sl_tensor *mine, const sl_tensor *saved);
/* About a figure of a part; int64_t and double both. */
void slp_state_check_number(struct slp_state *s, const json_t *figures, const char *part, const char *key, double mine);
/* An integer; 0 if it is missing. */
int64_t slp_state_integer(const json_t *figures, const char *key);
/* Puts the values of `saved` into a tensor that exists. */
bool slp_state_copy(const char *at, sl_tensor *to, sl_tensor *saved);

/* A part of the state.  Another kind of state is another row of slp_state_parts. */
struct slp_state_part {
	const char *key;
	bool (*is_there)(const struct sl_checkpoint_opts *opts);
	/* Adds arrays and figures; false with an error recorded. */
	bool (*save)(struct slp_state *s, json_t *figures);
	/* Reports the differences, changes nothing. */
	void (*check)(struct slp_state *s, const json_t *figures);
	/* Gives everything its values; it has been checked. */
	bool (*restore)(struct slp_state *s, const json_t *figures);
};
extern const struct slp_state_part slp_state_parts[]; /* ends with a NULL key */

/* The trainer's part: state_trainer.c. */
bool slp_state_has_trainer(const struct sl_checkpoint_opts *opts);
bool slp_state_save_trainer(struct slp_state *s, json_t *figures);
void slp_state_check_trainer(struct slp_state *s, const json_t *figures);
bool slp_state_restore_trainer(struct slp_state *s, const json_t *figures);

/* Slow work before the values of a moment are gathered: the checksums of a data set.  False with an error recorded. */
bool slp_state_prepare(struct slp_state *s, const struct sl_checkpoint_opts *opts);
/* Gathers all parts; checks all; restores all.  False with an error recorded. */
bool slp_state_save(struct slp_state *s);
bool slp_state_restore(struct slp_state *s, const char *path);

/* A checkpoint from a file in memory; NULL with an error recorded (checkpoint/load.c). */
struct slp_file;
sl_checkpoint *slp_checkpoint_parse(struct slp_file *f);

#endif
