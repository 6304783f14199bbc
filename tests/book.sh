#!/bin/bash
# The book: its listings are the programs, which are compiled by make check, and they print what it says they do; figures
# vary, so of most outputs only the form is compared.  Run by make check, in the build folder; srcdir comes from there; by
# book-long.sh with what the text says of times, with the outputs of solutions and of longer trainings.
set -euo pipefail
export LC_ALL=C
command -v perl >/dev/null || { echo "no perl"; exit 77; }
some=(--form --without '^solution-|--epochs') # times are for a quiet machine
[ -z "${BOOK_LONG-}" ] || some=()
"${srcdir:-.}/doc/book/regenerate" --check --build . ${some[@]+"${some[@]}"}

# Each program is in the text.
for program in "${srcdir:-.}"/doc/book/*.c "${srcdir:-.}"/doc/book/*.cc; do
  name=$(basename "$program")
  [ "$name" = book.c ] || grep -qE "^<!-- code: $name(: .*)? -->" "${srcdir:-.}"/doc/book/*.md ||
    { echo "$name is not in the book"; exit 1; }
done
