/* Words of a program's text: names, numbers, signs, ends of lines. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ascii.h"
#include "graph/text/lex.h"
#include "number.h"
#include "op.h"

bool slp_lex_fail(const struct slp_lexer *lex, enum sl_status status, const char *format, ...)
{
	char text[512];
	SLP_FORMAT(text, sizeof text, format);
	slp_call_fail(lex->at, "sl_graph_parse", status, "line %d, column %d: %s", lex->line, lex->column, text);
	return false;
}

static bool is_name(char c)
{
	return slp_is_letter(c) || slp_is_digit(c) || c == '_' || c == '.';
}

static bool lex_name(struct slp_lexer *lex)
{
	size_t n = 0;
	while (is_name(lex->p[n])) n++;
	if (n >= sizeof lex->text) return slp_lex_fail(lex, SL_EFORMAT, "a name is too long");
	memcpy(lex->text, lex->p, n);
	lex->text[n] = 0;
	lex->p += n;
	lex->kind = SLP_TOKEN_NAME;
	return true;
}

static bool lex_quoted(struct slp_lexer *lex)
{
	size_t n = 0;
	for (lex->p++; *lex->p != '"'; lex->p++) {
		bool escaped = *lex->p == '\\' && lex->p[1];
		lex->p += escaped;
		if (!*lex->p || *lex->p == '\n') return slp_lex_fail(lex, SL_EFORMAT, "a quote is not closed");
		if (n + 1 >= sizeof lex->text) return slp_lex_fail(lex, SL_EFORMAT, "a name is too long");
		lex->text[n++] = escaped && *lex->p == 'n' ? '\n' : *lex->p;
	}
	lex->p++;
	lex->text[n] = 0;
	if (!n) return slp_lex_fail(lex, SL_EFORMAT, "a name is empty");
	lex->kind = SLP_TOKEN_NAME;
	lex->quoted = true;
	return true;
}

static bool is_number(const char *p)
{
	p += *p == '-' || *p == '+';
	return slp_is_digit(*p) || (*p == '.' && slp_is_digit(p[1])) ||
	       ((!strncmp(p, "inf", 3) || !strncmp(p, "nan", 3)) && !is_name(p[3]));
}

/* slp_number_read alone would take hexadecimal numbers and more of "infinity". */
static bool lex_number(struct slp_lexer *lex)
{
	char *end, *whole_end;
	lex->number = slp_number_read(lex->p, &end);
	errno = 0;
	lex->integer = strtoll(lex->p, &whole_end, 10);
	lex->is_integer = whole_end == end && !errno;
	bool hexadecimal = memchr(lex->p, 'x', (size_t)(end - lex->p)) || memchr(lex->p, 'X', (size_t)(end - lex->p));
	if (end == lex->p || hexadecimal || is_name(*end)) return slp_lex_fail(lex, SL_EFORMAT, "this is not a number");
	lex->p = end;
	lex->kind = SLP_TOKEN_NUMBER;
	return true;
}

static bool lex_sign(struct slp_lexer *lex)
{
	size_t n = strncmp(lex->p, "...", 3) ? 1 : 3;
	if (n == 1 && !strchr("()[],:=", *lex->p))
		return slp_lex_fail(lex, SL_EFORMAT,
		                    slp_is_printable(*lex->p) ? "'%c' is not expected here" : "a character of code %d",
		                    (unsigned char)*lex->p);
	memcpy(lex->text, lex->p, n);
	lex->text[n] = 0;
	lex->p += n;
	lex->kind = SLP_TOKEN_SIGN;
	return true;
}

static void skip_blanks(struct slp_lexer *lex)
{
	while (*lex->p == ' ' || *lex->p == '\t' || *lex->p == '\r') lex->p++;
	if (*lex->p == '#') lex->p += strcspn(lex->p, "\n");
}

bool slp_lex_next(struct slp_lexer *lex)
{
	lex->line = lex->next_line;
	skip_blanks(lex);
	lex->column = (int)(lex->p - lex->line_start) + 1;
	lex->quoted = false;
	lex->text[0] = 0;
	if (!*lex->p) return lex->kind = SLP_TOKEN_END, true;
	if (*lex->p == '\n') {
		lex->line_start = ++lex->p;
		lex->next_line++;
		return lex->kind = SLP_TOKEN_LINE, true;
	}
	if (*lex->p == '"') return lex_quoted(lex);
	if (is_number(lex->p)) return lex_number(lex);
	if (slp_is_letter(*lex->p) || *lex->p == '_') return lex_name(lex);
	return lex_sign(lex);
}

bool slp_lex_begin(struct slp_lexer *lex, const char *at, const char *text)
{
	*lex = (struct slp_lexer){.at = at, .p = text, .line_start = text, .next_line = 1};
	return slp_lex_next(lex);
}

bool slp_lex_is(const struct slp_lexer *lex, const char *what)
{
	return (lex->kind == SLP_TOKEN_SIGN || lex->kind == SLP_TOKEN_NAME) && !lex->quoted && !strcmp(lex->text, what);
}

bool slp_lex_accept(struct slp_lexer *lex, const char *what, bool *ok)
{
	if (!*ok || !slp_lex_is(lex, what)) return false;
	*ok = slp_lex_next(lex);
	return true;
}

bool slp_lex_expect(struct slp_lexer *lex, const char *what)
{
	if (slp_lex_is(lex, what)) return slp_lex_next(lex);
	const char *found = lex->kind == SLP_TOKEN_END    ? "the end"
	                    : lex->kind == SLP_TOKEN_LINE ? "the end of the line"
	                    : lex->text[0]                ? lex->text
	                                                  : "a number";
	return slp_lex_fail(lex, SL_EFORMAT, "\"%s\" expected, not %s", what, found);
}
