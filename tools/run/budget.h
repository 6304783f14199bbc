/* Limits of memory and time, so that a small file from an unknown source cannot occupy the machine. */
#ifndef RUN_BUDGET_H
#define RUN_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

struct run_budget {
	double seconds; /* of loading and the first run; NAN: in proportion to the files, 0: no limit */
	int64_t bytes;  /* beyond those that the process has; -1: in proportion to the files, 0: no limit */
};

/* Bytes of a file; 0: there is none.  Of a model, with the files beside it that it names. */
int64_t run_file_bytes(const char *path);
int64_t run_model_bytes(const char *path);

/* The limits of files of so many bytes in all. */
struct run_budget run_budget_for(struct run_budget asked, int64_t file_bytes);
/* Memory beyond the limit is refused from now on, and the program ends with status 1 and a message once the time is over.
 * The model's name is for messages. */
void run_budget_begin(struct run_budget limits, const char *model);
/* The first run has ended: neither counts any more. */
void run_budget_end(void);
/* After an error: says that a limit may be its cause. */
void run_budget_explain(struct run_budget limits);

#endif
