/* CSV files, one field after the other. */
#ifndef SLP_CSV_H
#define SLP_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct slp_csv {
	const char *path;
	FILE *file;
	char separator;
	int64_t line, begin; /* being read; where the field began */
	int column;          /* of the field, from 1 */
	char *text;          /* of the field, followed by a 0 */
	size_t length, room;
	bool quoted, last; /* it stood in quotes; it ends its line */
};

/* false with an error recorded. */
bool slp_csv_open(struct slp_csv *c, const char *path, char separator);
/* The next field: 1; 0: the file is over; -1: an error has been recorded.  Empty lines are passed over. */
int slp_csv_next(struct slp_csv *c);
void slp_csv_close(struct slp_csv *c);

#endif
