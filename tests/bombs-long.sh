#!/bin/bash
# bombs-long.sh: all files of tests/bombs.sh.  Run by make check-long in the build tree.
BOMBS=1 exec "${srcdir:-.}/tests/bombs.sh"
