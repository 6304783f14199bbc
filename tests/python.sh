#!/bin/bash
# The Python package: built from this build's library, then its tests and the tutorial's programs, on CPU teams and, where they
# can be built, on emulated GPUs.  Run by make check, in the build folder; by python-long.sh with what takes long.
set -euo pipefail
srcdir=${srcdir:-.}
export LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1 STARPU_SILENT=1

# A Python that can build and run it: the one of quickstart python, or one that has the packages.
usable() { "$1" -c 'import cffi, numpy, os, sysconfig
assert os.path.exists(sysconfig.get_paths()["include"] + "/Python.h")' 2>/dev/null; }
for python in "$PWD/python/venv/bin/python" "${PYTHON:-python3}" /usr/bin/python3 none; do
  ! usable "$python" || break
done
for tool in perl patchelf; do command -v "$tool" >/dev/null || python=none; done
if [ "$python" = none ]; then
  echo "SKIP: needs Python with its headers, cffi and NumPy (Debian: python3-dev python3-cffi python3-numpy), perl, patchelf"
  exit 77
fi

tree=$PWD/tests/python.dir
"$python" "$srcdir/python/generate/build.py" --source "$srcdir" --build . --out "$tree"
export PYTHONPATH=$tree STARLING_SOURCE=$srcdir SLP_LAUNCH=$PWD/tools/sl-launch
STARLING_SOURCE=$(cd "$srcdir" && pwd)

modules="
  test_native test_options test_every_option test_integers test_owners test_operands test_unknown
  test_indices test_values test_copies test_registry test_creation test_runs test_several test_custom
  test_gluon test_gluon_more test_gluon_values test_answers test_recurrent test_cells test_dist
  test_life test_sharing test_programs test_kills test_second test_symbols test_symbol_programs test_module test_numpy
  test_option_pairs test_edge_table test_formats test_sparse test_updates test_estimator test_iterators
  test_mx_corners test_places"
for name in $modules; do
  echo "--- $name"
  (cd "$srcdir/python/tests" && "$python" -m unittest "$name")
done
echo "--- pairs"
"$python" "$STARLING_SOURCE/python/tests/pairs.py" --pairs "${PYTHON_PAIRS:-20}"

if "$python" -c 'import torch' 2>/dev/null; then
  for name in test_torch test_torch_ops test_torch_special test_torch_calls test_torch_edges test_torch_heads test_torch_eager test_second_torch; do
    echo "--- $name"
    (cd "$srcdir/python/tests" && "$python" -m unittest "$name")
  done
  for name in torch/devices torch/trainer; do
    echo "--- $name.py"
    STARPU_NCPU=2 "$python" "$srcdir/doc/tutorial/$name.py" >"$tree/output" 2>&1 || { cat "$tree/output"; exit 1; }
  done
else
  echo "SKIP: test_torch, test_torch_eager, doc/tutorial/torch: need PyTorch"
fi

programs() {
  local name
  echo "--- test_cells on $1"
  (cd "$srcdir/python/tests" && "$python" -m unittest test_cells)
  for name in hybrid asynchronous parallel devices "${@:2}"; do
    echo "--- $name.py on $1"
    "$python" "$srcdir/doc/tutorial/$name.py" >"$tree/output" 2>&1 || { cat "$tree/output"; exit 1; }
  done
}
STARPU_NCPU=2 programs "CPU teams" trainer

# The same library with emulated GPUs, in the place of the one that the package carries.
emulated=$PWD/tests/emu/.libs/libstarling.so
if [ -e "$emulated" ]; then
  export LD_PRELOAD=$emulated SL_EMU_DEVICES=2
  "$python" -c 'from starling import mx; assert mx.num_gpus() == 2, mx.num_gpus()'
  # shellcheck disable=SC2086 # none, or one name
  programs "emulated GPUs" ${PYTHON_LONG-}
else
  echo "SKIP: GPUs: no emulated ones in this build"
fi
