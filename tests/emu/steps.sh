#!/bin/bash
# steps.sh: ResNet-18 trained in shards on emulated GPUs: how often parameters travel, counted.  Run by make check-long
# in the build tree.
set -euo pipefail
. "$srcdir/tests/emu/common.sh"
not_sanitized
tests/emu/test_steps transfers
