#!/bin/bash
# Builds StarPU, which conda-forge does not have, and Starling with it; conda runs this.
set -euo pipefail
: "${STARPU_TARBALL:?the archive of a release of StarPU 1.4}"
export PKG_CONFIG_PATH=$PREFIX/lib/pkgconfig
tools/build-starpu --without-cuda --tarball "$STARPU_TARBALL" --prefix "$SRC_DIR/starpu" --jobs "$CPU_COUNT"
./autogen.sh
mkdir build
cd build
../configure --prefix="$PREFIX" --without-cuda --with-starpu="$SRC_DIR/starpu" --with-onednn="$PREFIX" --with-openblas \
  --with-onnx --with-png --with-jpeg --without-mpi
make -j"$CPU_COUNT"
make install
