#!/bin/bash
# soak-long.sh: memory stays level while networks are made, trained, saved and dropped.  SOAK_SECONDS=7200 tests/soak-long.sh
# runs for two hours.  Run by make check-long.
. "${srcdir:-.}/tests/expect.sh"
mkdir "$tmp/run"
tests/soak "$tmp/run" "${SOAK_SECONDS:-60}"
