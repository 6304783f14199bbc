/* Numbers as text, the same in every locale, because a program may have called setlocale, and other programs read the
 * output.  All numbers with a fraction are read and printed here (src/runtime/settings/number.c). */
#ifndef SLP_NUMBER_H
#define SLP_NUMBER_H

#include <locale.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Between these the calling thread reads and prints as in C: around calls of libraries that do so. */
locale_t slp_number_begin(void);
void slp_number_end(locale_t before);

/* A size as decimal digits, nothing before or after them; false: it is none, or too large. */
bool slp_size_read(const char *text, uint64_t *size);
double slp_number_read(const char *text, char **end); /* as strtod */
/* Numbers that users give, in variables for example: decimal digits, nothing before or after them.  false: blanks, a sign
 * of plus, hexadecimal digits, infinity, NaN, or a number beyond the type's.  A fraction and an exponent in the second. */
bool slp_whole_given(const char *text, int64_t *value);
bool slp_real_given(const char *text, double *value);
/* In as few digits as give the same number again, six or more; of a float, the same float.  "nan" has no sign. */
const char *slp_number_text(double x, bool single, char text[32]);

/* As those of <stdio.h>. */
int slp_snprintf(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
int slp_vsnprintf(char *text, size_t size, const char *format, va_list args) __attribute__((format(printf, 3, 0)));
/* Writes what a function's last two arguments say: `format` and the ... after it. */
#define SLP_FORMAT(text, size, format)                                                                                 \
	do {                                                                                                           \
		va_list args_;                                                                                         \
		va_start(args_, format);                                                                               \
		slp_vsnprintf(text, size, format, args_);                                                              \
		va_end(args_);                                                                                         \
	} while (0)
int slp_fprintf(FILE *file, const char *format, ...) __attribute__((format(printf, 2, 3)));

#ifdef __cplusplus
}
#endif
#endif
