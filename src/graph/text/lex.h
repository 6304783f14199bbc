/* Words of a program's text. */
#ifndef SLP_LEX_H
#define SLP_LEX_H

#include "graph/text/text.h"
#include "starling/base.h"

enum slp_token_kind { SLP_TOKEN_END, SLP_TOKEN_LINE, SLP_TOKEN_NAME, SLP_TOKEN_NUMBER, SLP_TOKEN_SIGN };

struct slp_lexer {
	const char *at; /* the call of sl_graph_parse */
	const char *p;  /* the rest of the text */
	const char *line_start;
	int line, column; /* of the token, from 1 */
	int next_line;
	enum slp_token_kind kind;
	bool quoted;    /* a name in quotes: never a word */
	char text[128]; /* of a name; a sign has one character, or is "..." */
	double number;
	int64_t integer; /* of a number, exactly, where it has neither point nor exponent */
	bool is_integer;
};

/* Both move to the next token; an error names line and column. */
bool slp_lex_begin(struct slp_lexer *lex, const char *at, const char *text);
bool slp_lex_next(struct slp_lexer *lex);
bool slp_lex_is(const struct slp_lexer *lex, const char *sign_or_word);
/* Moves past a token of this kind if it is the current one. */
bool slp_lex_accept(struct slp_lexer *lex, const char *sign_or_word, bool *ok);
/* Moves past it; records an error if it is missing. */
bool slp_lex_expect(struct slp_lexer *lex, const char *sign_or_word);
/* Records an error at the token; returns false. */
bool slp_lex_fail(const struct slp_lexer *lex, enum sl_status status, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

#endif
