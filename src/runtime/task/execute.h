/* Running a segment, here and for another process. */
#ifndef SLP_EXECUTE_H
#define SLP_EXECUTE_H

#include "runtime/task/record.h"
#include "starling/base.h"

/* A call whose kernel failed in a slave process; call -1: no call ran. */
struct slp_failure {
	int call;
	enum sl_status status;
	char text[240];
};
/* In any thread: runs the calls of a segment that has no buffers, on the memory of its slots, with one thread. */
enum sl_status slp_segment_run(struct slp_segment *seg, char **base, char *scratch);
/* In a slave process: runs a segment whose buffers belong to another process.  Returns the number of failed calls,
 * which *failures lists, malloc'd. */
int slp_segment_run_for_master(struct slp_segment *seg, void *buffers[], struct slp_failure **failures);
/* In the master: faults, as if the segment had run here. */
void slp_segment_ran_elsewhere(struct slp_segment *seg, const struct slp_failure *failures, int count);

/* For tests: the k-th kernel from now on fails (1: the next); 0: none. */
extern _Atomic long slp_fail_kernel;
/* For tests: slows a CPU team down by this factor. */
extern _Atomic int slp_slow_team, slp_slow_times;

#endif
