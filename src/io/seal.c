/* Sealed safetensors: the metadata begins with the checksum of the header, taken with eight zeros in its place, and has
 * the checksums of all arrays and a state, text in JSON.  Any other program reads them as safetensors. */
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "io/crc32c.h"
#include "io/params.h"
#include "io/regular.h"
#include "starling/base.h"

static const char begin[] = "{\"__metadata__\":{\"header_crc32c\":\"", zeros[] = "00000000";
/* A later version of Starling that writes what this one would not understand raises the number. */
static const char format[] = "starling-checkpoint-1";
enum { BEGIN = sizeof begin - 1, DIGITS = sizeof zeros - 1 };

json_t *slp_seal_metadata(const char *state, json_t *checksums)
{
	char *text = json_dumps(checksums, JSON_COMPACT);
	json_t *metadata = text ? json_pack("{s:s, s:s, s:s, s:s, s:s}", "header_crc32c", zeros, "format", format,
	                                    "starling", sl_version(), "state", state, "checksums", text)
	                        : NULL;
	free(text);
	json_decref(checksums);
	return metadata;
}

static uint32_t header_checksum(const char *header, size_t length)
{
	uint32_t c = slp_crc32c(0, header, BEGIN);
	c = slp_crc32c(c, zeros, DIGITS);
	return slp_crc32c(c, header + BEGIN + DIGITS, length - BEGIN - DIGITS);
}

void slp_seal_close(char *header, size_t length)
{
	char digits[DIGITS + 1];
	snprintf(digits, sizeof digits, "%08x", header_checksum(header, length));
	memcpy(header + BEGIN, digits, DIGITS);
}

bool slp_seal_is_there(const char *header, size_t length)
{
	return length > BEGIN + DIGITS && !memcmp(header, begin, BEGIN);
}

bool slp_seal_is_file(const char *path)
{
	uint64_t length;
	char header[BEGIN + DIGITS + 1], why[SLP_WHY];
	FILE *f = slp_regular_stream(path, NULL, why);
	bool is = f && fread(&length, sizeof length, 1, f) == 1 && fread(header, sizeof header, 1, f) == 1 &&
	          slp_seal_is_there(header, sizeof header);
	if (f) fclose(f);
	return is;
}

bool slp_seal_is_whole(const char *header, size_t length)
{
	char digits[DIGITS + 1];
	snprintf(digits, sizeof digits, "%08x", header_checksum(header, length));
	return !memcmp(header + BEGIN, digits, DIGITS);
}

static const char *metadata(const json_t *header, const char *key)
{
	return json_string_value(json_object_get(json_object_get(header, "__metadata__"), key));
}

json_t *slp_seal_checksums(const json_t *header)
{
	const char *text = metadata(header, "header_crc32c") ? metadata(header, "checksums") : NULL;
	json_t *checksums = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
	if (json_is_object(checksums)) return checksums;
	json_decref(checksums);
	return NULL;
}

bool slp_seal_holds(const json_t *checksums, const char *name, const void *data, size_t bytes)
{
	const json_t *c = json_object_get(checksums, name);
	return json_is_integer(c) && json_integer_value(c) == (json_int_t)slp_crc32c(0, data, bytes);
}

const char *slp_seal_stranger(const json_t *header)
{
	const char *text = metadata(header, "format");
	return text && strcmp(text, format) ? text : NULL;
}

const char *slp_seal_writer(const json_t *header)
{
	const char *version = metadata(header, "starling");
	return version ? version : "an unknown version";
}

char *slp_seal_state(const json_t *header)
{
	const char *state = metadata(header, "state");
	return state ? slp_strdup(state) : NULL;
}
