/* Numbers as text, the same in every locale (number.h). */
#include "number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

locale_t slp_number_begin(void)
{
	return uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0)); /* this one needs no memory */
}

void slp_number_end(locale_t before)
{
	uselocale(before);
}

bool slp_size_read(const char *text, uint64_t *size)
{
	uint64_t n = 0;
	for (const char *p = text; *p; p++) {
		if (*p < '0' || *p > '9' || __builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*p - '0'), &n))
			return false;
	}
	*size = n;
	return *text;
}

bool slp_whole_given(const char *text, int64_t *value)
{
	uint64_t size;
	bool negative = *text == '-';
	if (!slp_size_read(text + negative, &size) || size > INT64_MAX) return false;
	*value = negative ? -(int64_t)size : (int64_t)size;
	return true;
}

bool slp_real_given(const char *text, double *value)
{
	char *end;
	if (!strchr("-.0123456789", *text) || strspn(text, "-+.0123456789eE") != strlen(text)) return false;
	*value = slp_number_read(text, &end);
	return end != text && !*end && isfinite(*value);
}

double slp_number_read(const char *text, char **end)
{
	locale_t before = slp_number_begin();
	double x = strtod(text, end);
	slp_number_end(before);
	return x;
}

int slp_vsnprintf(char *text, size_t size, const char *format, va_list args)
{
	locale_t before = slp_number_begin();
	int n = vsnprintf(text, size, format, args);
	slp_number_end(before);
	return n;
}

int slp_snprintf(char *text, size_t size, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int n = slp_vsnprintf(text, size, format, args);
	va_end(args);
	return n;
}

int slp_fprintf(FILE *file, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	locale_t before = slp_number_begin();
	int n = vfprintf(file, format, args);
	slp_number_end(before);
	va_end(args);
	return n;
}

const char *slp_number_text(double x, bool single, char text[32])
{
	if (isnan(x)) return "nan";
	for (int digits = 6; digits <= 17; digits++) {
		slp_snprintf(text, 32, "%.*g", digits, x);
		double again = slp_number_read(text, NULL);
		if (single ? (float)again == (float)x : again == x) break;
	}
	return text;
}
