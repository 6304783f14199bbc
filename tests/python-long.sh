#!/bin/bash
# The Python package's tests with 10^6 operations and 10^3 networks made and dropped: memory must not grow; and the
# tutorial's ResNet-18 on emulated GPUs.
set -euo pipefail
export STARLING_OPERATIONS=1000000 STARLING_NETWORKS=1000 PYTHON_LONG=trainer
exec "${srcdir:-.}/tests/python.sh"
