#!/bin/bash
# chaos-long.sh: chaos.sh with every fault and many random kills.  Run by make check-long.
export CHAOS_KILLS=${CHAOS_KILLS:-60}
exec "${srcdir:-.}/tests/chaos.sh"
