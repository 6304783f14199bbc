/* Kinds of characters in names and texts of formats: ASCII's, whatever the locale of the program says.  In a Turkish
 * one, 'I' has another small letter; in those of one byte a character, there are further letters. */
#ifndef SLP_ASCII_H
#define SLP_ASCII_H

#include <stdbool.h>

static inline bool slp_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline bool slp_is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static inline bool slp_is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static inline bool slp_is_printable(char c)
{
	return c >= ' ' && c <= '~';
}

static inline bool slp_is_control(char c)
{
	return (unsigned char)c < ' ' || c == 127;
}

static inline char slp_to_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

#endif
