/* JSON from files: the memory that it takes is computed before it is allocated. */
#include "io/json.h"

#include "runtime/memory/memory_limit.h"

/* The most memory that jansson takes for a value, a pair, an array or an object, as malloc counts. */
enum { VALUE = 96, PAIR = 160, ARRAY = 176, OBJECT = 320 };

static size_t most_memory(const char *text, size_t length)
{
	size_t bytes = 2 * length;
	for (size_t i = 0; i < length; i++) {
		char c = text[i];
		bytes += c == ',' ? VALUE : c == ':' ? PAIR : c == '[' ? ARRAY : c == '{' ? OBJECT : 0;
	}
	return bytes;
}

json_t *slp_json_read(struct slp_file *f, const char *text, size_t length, json_error_t *e)
{
	char why[160];
	size_t bytes = most_memory(text, length);
	*e = (json_error_t){.text = ""};
	if (bytes < SLP_MEMORY_LARGE || slp_memory_limit_allows(bytes))
		return json_loadb(text, length, JSON_REJECT_DUPLICATES, e);
	slp_file_fail(f, SL_ENOMEM, "its JSON: %s", slp_memory_limit_text(bytes, why));
	return NULL;
}
