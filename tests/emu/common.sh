# common.sh: what the tests on emulated GPUs start with.  They are left out of builds that have none.
[ -n "$EMULATION" ] || { echo "no emulated GPUs in this build: see configure's summary"; exit 77; }
export STARPU_SILENT=1
# Trying all ways to compute a convolution takes long here; test_convolutions does, and what sets it.
export SL_GPU_AUTOTUNE="${SL_GPU_AUTOTUNE-0}"
# The stand-in for NVRTC starts a compiler for each expression; test_compiled does.
export SL_GPU_COMPILE="${SL_GPU_COMPILE-0}"
# With a sanitizer everything takes many times as long.
not_sanitized() { [ -z "${ASAN_OPTIONS-}" ] || { echo "too slow with sanitizers; device.sh and ops.sh run"; exit 77; }; }
