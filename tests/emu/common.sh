# common.sh: what the tests on emulated GPUs start with.  They are left out of builds that have none.
[ -n "$EMULATION" ] || { echo "no emulated GPUs in this build: see configure's summary"; exit 77; }
export STARPU_SILENT=1
