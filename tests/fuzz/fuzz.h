/* What the fuzz targets have in common.  libFuzzer calls LLVMFuzzerTestOneInput with inputs that it makes up; without
 * libFuzzer, replay.c calls it with files.
 *
 *     ../configure --enable-sanitizers --without-cuda CC=clang CXX=clang++ \
 *         CFLAGS="-O1 -g -fsanitize=fuzzer-no-link -fsanitize-coverage-allowlist=$PWD/../tests/fuzz/readers.list"
 *     make fuzz FUZZ_SECONDS=60 */
#ifndef SLP_TESTS_FUZZ_H
#define SLP_TESTS_FUZZ_H

#include <stddef.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

/* The input as a file, for readers that open one: its path.  It is in memory, and the same one each time. */
const char *fuzz_file(const unsigned char *data, size_t size);

#endif
