#!/bin/bash
# schedules-long.sh: test_schedules with 10,000 seeds.  Run by make check-long.
SCHEDULES=${SCHEDULES:-10000} exec tests/test_schedules
