/* System calls that can be made to fail, or to end the program: what replaces them comes before libc's. */
#ifndef SLP_TESTS_IO_FAULTS_H
#define SLP_TESTS_IO_FAULTS_H

#include <stdbool.h>

#define IO_CALLS(X) X(open) X(write) X(fsync) X(rename) X(link)
enum io_call {
#define X(name) IO_##name,
	IO_CALLS(X)
#undef X
	        IO_COUNT
};
extern const char *const io_names[IO_COUNT];

/* Counts calls from now on; the k-th one of a kind (from 1, 0: none; negative: the -k-th and all later ones) fails with
 * this errno, or, with errno 0, is the program's last: it is killed there.  open for reading is not counted. */
void io_fail(enum io_call call, int k, int error);
/* How many there were since then; whether that one came. */
int io_calls(enum io_call call);
bool io_failed(void);
/* Each write takes so many microseconds longer. */
void io_slow(unsigned microseconds);

#endif
