#!/bin/bash
# slaves-long.sh: all of slaves.sh.  Run by make check-long in the build tree.
SLAVES_LONG=yes exec "${srcdir:-.}/tests/slaves.sh"
