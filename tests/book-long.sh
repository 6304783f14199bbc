#!/bin/bash
# book-long.sh: all of book.sh.  Run by make check-long in the build tree.
BOOK_LONG=yes exec "${srcdir:-.}/tests/book.sh"
