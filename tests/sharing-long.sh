#!/bin/bash
# sharing-long.sh: tests/sharing.sh with all pairs of public functions, and many saves beside training.  Run by make check-long.
set -euo pipefail
SLP_LONG=1 tests/test_moments
SHARING_PAIRS=${SHARING_PAIRS:-0} exec "${srcdir:-.}/tests/sharing.sh"
