/* The compiler, as figures and reports name it. */
#ifndef MODELS_DRIVER_COMPILER_H
#define MODELS_DRIVER_COMPILER_H

#ifdef __clang__
#define DRV_COMPILER "clang " __clang_version__
#else
#define DRV_COMPILER "gcc " __VERSION__
#endif

#endif
