#!/bin/bash
# steps-long.sh: ResNet-18 trained in shards on emulated GPUs: the same losses on 1, 2 and 4 GPUs, under several policies,
# with copies and kernels that are late, and with threads in another order.  Run by make check-long in the build tree.
set -euo pipefail
. "$srcdir/tests/emu/common.sh"
not_sanitized
SL_EMU_JITTER_US=200 SL_EMU_COPY_US=200 tests/emu/test_steps losses
SL_EMU_ORDER=backward tests/emu/test_steps losses
