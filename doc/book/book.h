/* Shared by the programs of the book: their end, and the command line of programs that train. */
#ifndef BOOK_H
#define BOOK_H

#include <starling.h>

/* Waits for all work, prints an error, stops; returns the exit status of main. */
static inline int finish(void)
{
	bool ok = sl_wait_all() == SL_OK;
	if (!ok) fprintf(stderr, "%s\n", sl_error_message());
	sl_shutdown();
	return ok ? 0 : 1;
}

enum { MAX_DEVICES = 8 };

/* The options of a program that trains; book.c reads them from the command line and starts the engine. */
struct options {
	int64_t limit; /* images to train and to test with */
	int64_t epochs, batch_size;
	double lr;
	const char *names; /* of the devices: "cpu:0,cpu:1" */
	sl_device devices[MAX_DEVICES];
	int n;
};

bool prepare(int argc, char **argv, struct options *options);

#endif
