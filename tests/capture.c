/* What a program says on stderr. */
#include "capture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST = 4096 };

static FILE *file;
static int saved;

void slp_capture_begin(void)
{
	fflush(stderr);
	file = tmpfile();
	saved = dup(STDERR_FILENO);
	if (file && saved >= 0) dup2(fileno(file), STDERR_FILENO);
}

char *slp_capture_end(void)
{
	char *text = calloc(1, MOST);
	fflush(stderr);
	if (saved >= 0) dup2(saved, STDERR_FILENO);
	if (saved >= 0) close(saved);
	if (!file) return text;
	rewind(file);
	size_t n = text ? fread(text, 1, MOST - 1, file) : 0;
	if (text) text[n] = '\0';
	fclose(file);
	return text;
}
