#!/bin/bash
# The Python package's tests with 10^6 operations and 10^3 networks made and dropped: memory must not grow; the tutorial's
# ResNet-18 on emulated GPUs; and PYTHON_PAIRS pairs of public functions and methods on shared objects, 10,000 if it is not set;
# 5,000 expressions beside NumPy.
set -euo pipefail
export STARLING_OPERATIONS=1000000 STARLING_NETWORKS=1000 PYTHON_LONG=trainer PYTHON_PAIRS=${PYTHON_PAIRS:-10000} STARLING_EXPRESSIONS=5000
exec "${srcdir:-.}/tests/python.sh"
