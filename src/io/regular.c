/* Opens regular files, and never waits for other kinds. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/regular.h"

static void tell(char why[SLP_WHY])
{
	snprintf(why, SLP_WHY, "cannot be opened: %s", strerror(errno));
}

int slp_regular_open(const char *path, int64_t *size, char why[SLP_WHY])
{
	struct stat st;
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (file < 0 || fstat(file, &st)) tell(why);
	else if (!S_ISREG(st.st_mode)) snprintf(why, SLP_WHY, "is not a regular file");
	else {
		if (size) *size = st.st_size;
		return file;
	}
	if (file >= 0) close(file);
	return -1;
}

FILE *slp_regular_stream(const char *path, int64_t *size, char why[SLP_WHY])
{
	int file = slp_regular_open(path, size, why);
	FILE *stream = file >= 0 ? fdopen(file, "rb") : NULL;
	if (stream || file < 0) return stream;
	tell(why);
	close(file);
	return NULL;
}
