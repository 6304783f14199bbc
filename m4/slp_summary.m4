dnl SLP_SUMMARY: what configure found and will build.
AC_DEFUN([SLP_SUMMARY], [
slp_line() { printf '  %-14s %s\n' "$[1]" "$[2]"; }
slp_starpu="$starpu_version in $STARPU_PREFIX, $starpu_maxbuffers buffers a task"
AS_IF([test "$starpu_simgrid" = yes], [slp_starpu="$slp_starpu, simulation"])
AS_IF([test "$starpu_cuda" = yes], [slp_starpu="$slp_starpu, with CUDA"])
AS_IF([test "$have_cuda" = yes],
  [slp_cuda="$cuda_version in $cuda_dir, cuDNN $cudnn_version"
   slp_arch="$CUDA_ARCHS, PTX of $slp_oldest"],
  [slp_cuda="no: $cuda_why" slp_arch=-])
AS_IF([test "$have_onednn" = yes], [slp_onednn="$onednn_version (${ONEDNN_LIBS})"], [slp_onednn=no])
AS_IF([test "$have_openblas" = yes], [slp_openblas="$openblas_version (${OPENBLAS_LIBS})"], [slp_openblas=no])
AS_IF([test "$have_cunit" = yes], [slp_cunit="$($PKG_CONFIG --modversion cunit 2>/dev/null || echo yes)"],
  [slp_cunit="no: make check will not run"])
AS_IF([test "$have_onnx" = yes], [slp_onnx="protobuf-c $($PKG_CONFIG --modversion libprotobuf-c)"],
  [slp_onnx="no: needs libprotobuf-c-dev, protobuf-c-compiler"])
AS_IF([test "$have_png" = yes], [slp_png="libpng $($PKG_CONFIG --modversion libpng)"], [slp_png="no: needs libpng-dev"])
AS_IF([test "$have_jpeg" = yes], [slp_jpeg="libjpeg $($PKG_CONFIG --modversion libjpeg)"], [slp_jpeg="no: needs libjpeg-dev"])
AS_IF([test "$slp_cv_target_clones" = yes], [slp_variants=yes],
  [test "$slp_cv_target_clones" = features], [slp_variants="yes (avx512vl, fma)"],
  [test "$enable_native" != no], [slp_variants="no: for this machine's CPU only"],
  [test "$enable_sanitizers" != no], [slp_variants="no: not with sanitizers"],
  [test "$host_cpu" != x86_64], [slp_variants="no: $host_cpu has one"],
  [slp_variants="no: kernels use SSE2 only and are slow (config.log says why; --enable-native, or another compiler)"
   AC_MSG_WARN([$CC makes no variants of kernels for newer CPUs: they use SSE2 only and are slow])])
echo
echo "Starling $PACKAGE_VERSION"
slp_line "prefix" "$prefix"
slp_line "C compiler" "$CC $CFLAGS$SLP_CFLAGS"
slp_line "StarPU" "$slp_starpu"
slp_line "CUDA" "$slp_cuda"
slp_line "CUDA archs" "$slp_arch"
slp_line "emulated GPUs" "$have_emulation${emulation_why:+: $emulation_why}"
slp_line "oneDNN" "$slp_onednn"
slp_line "OpenBLAS" "$slp_openblas"
slp_line "OpenMP" "${OPENMP_CFLAGS:-no}"
slp_line "hwloc" "$($PKG_CONFIG --modversion hwloc)"
slp_line "zlib" "$($PKG_CONFIG --modversion zlib)"
slp_line "jansson" "$($PKG_CONFIG --modversion jansson)"
slp_line "libsodium" "$($PKG_CONFIG --modversion libsodium)"
slp_line "ONNX" "$slp_onnx"
slp_line "PNG" "$slp_png"
slp_line "JPEG" "$slp_jpeg"
slp_line "MPI" "$mpi_name"
slp_line "CUnit" "$slp_cunit"
slp_line "CPU variants" "$slp_variants"
slp_line "native" "$enable_native"
slp_line "sanitizers" "$enable_sanitizers"
slp_line "hardening" "${SLP_HARDENING:-no}$SLP_LDFLAGS"
slp_line "werror" "$enable_werror"
echo
])
