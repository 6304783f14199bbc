/* Event files as TensorBoard reads them: records (length, data, their masked CRC-32C) of protocol buffers
 * (tensorflow.Event with a Summary of one scalar).  Only a few fields are needed. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common.h"
#include "live.h"

/* ---- protocol buffers -------------------------------------------------------------------------------------------- */

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

struct message {
	unsigned char bytes[512];
	size_t size;
};

static void put_varint(struct message *m, uint64_t value)
{
	for (; value >= 0x80; value >>= 7) m->bytes[m->size++] = (unsigned char)(value | 0x80);
	m->bytes[m->size++] = (unsigned char)value;
}

static void put_little_endian(struct message *m, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++) m->bytes[m->size++] = (unsigned char)(value >> 8 * i);
}

static void put_key(struct message *m, int field, int type)
{
	put_varint(m, (uint64_t)(field << 3 | type));
}

static void put_double(struct message *m, int field, double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof bits);
	put_key(m, field, FIXED64);
	put_little_endian(m, bits, 8);
}

static void put_float(struct message *m, int field, float value)
{
	uint32_t bits;
	memcpy(&bits, &value, sizeof bits);
	put_key(m, field, FIXED32);
	put_little_endian(m, bits, 4);
}

/* Texts and inner messages. */
static void put_bytes(struct message *m, int field, const void *data, size_t size)
{
	put_key(m, field, BYTES);
	put_varint(m, size);
	memcpy(m->bytes + m->size, data, size);
	m->size += size;
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

/* CRC-32C, bit by bit: an event has some fifty bytes. */
static uint32_t crc32c(const unsigned char *data, size_t size)
{
	uint32_t c = ~0u;
	for (size_t i = 0; i < size; i++) {
		c ^= data[i];
		for (int bit = 0; bit < 8; bit++) c = c >> 1 ^ (c & 1 ? 0x82f63b78u : 0);
	}
	return ~c;
}

static uint32_t masked(const unsigned char *data, size_t size)
{
	uint32_t c = crc32c(data, size);
	return (c >> 15 | c << 17) + 0xa282ead8u;
}

/* The record is in the file when this returns: TensorBoard reads it during training. */
static bool put_record(FILE *events, const struct message *event)
{
	struct message head = {.size = 0}, tail = {.size = 0};
	put_little_endian(&head, event->size, 8);
	put_little_endian(&head, masked(head.bytes, 8), 4);
	put_little_endian(&tail, masked(event->bytes, event->size), 4);
	return fwrite(head.bytes, 1, head.size, events) == head.size &&
	       fwrite(event->bytes, 1, event->size, events) == event->size &&
	       fwrite(tail.bytes, 1, tail.size, events) == tail.size && fflush(events) == 0;
}

static double wall_time(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* Makes the folder and its parents; false after reporting an error. */
bool drv_tensorboard_folder(const char *folder)
{
	char path[4096];
	int n = snprintf(path, sizeof path, "%s/", folder);
	errno = ENAMETOOLONG;
	bool ok = n < (int)sizeof path;
	for (char *p = ok ? path + 1 : NULL; p && (p = strchr(p, '/')); *p++ = '/') {
		*p = '\0';
		if (!mkdir(path, 0777) || errno == EEXIST) continue;
		ok = false;
		break;
	}
	if (ok && access(folder, W_OK | X_OK) == 0) return true;
	drv_error("cannot write into %s: %s", folder, strerror(errno));
	return false;
}

/* Creates an event file in the folder, with its first record; NULL after reporting an error. */
FILE *drv_tensorboard_open(const char *folder)
{
	static const char version[] = "brain.Event:2";
	char host[256] = "host", path[4096];
	struct message event = {.size = 0};
	gethostname(host, sizeof host - 1);
	snprintf(path, sizeof path, "%s/events.out.tfevents.%.0f.%s.%d", folder, wall_time(), host, (int)getpid());
	FILE *events = fopen(path, "wbe");
	put_double(&event, 1, wall_time());
	put_bytes(&event, 3, version, strlen(version));
	if (events && put_record(events, &event)) return events;
	drv_error("cannot write %s: %s", path, strerror(errno));
	if (events) fclose(events);
	return NULL;
}

/* A scalar's value at a step of training. */
bool drv_tensorboard_scalar(FILE *events, const char *tag, int64_t step, double number)
{
	struct message value = {.size = 0}, summary = {.size = 0}, event = {.size = 0};
	put_bytes(&value, 1, tag, strnlen(tag, 128));
	put_float(&value, 2, (float)number);
	put_bytes(&summary, 1, value.bytes, value.size);
	put_double(&event, 1, wall_time());
	put_key(&event, 2, VARINT);
	put_varint(&event, (uint64_t)step);
	put_bytes(&event, 5, summary.bytes, summary.size);
	return put_record(events, &event);
}
