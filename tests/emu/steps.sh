#!/bin/bash
# steps.sh: ResNet-18 trained in shards on emulated GPUs: how often parameters travel, counted; the same losses on 1, 2
# and 4 GPUs, under several policies, with copies and kernels that are late.  Run by make check in the build tree.
set -euo pipefail
. "$srcdir/tests/emu/common.sh"
not_sanitized
tests/emu/test_steps transfers
SL_EMU_JITTER_US=200 SL_EMU_COPY_US=200 tests/emu/test_steps losses
