/* CPU devices of any number, for programs that name CPUs without knowing how many teams of cores there are. */
#ifndef STARLING_DEVICE_H
#define STARLING_DEVICE_H

#include <starling/base.h>

#ifdef __cplusplus
extern "C" {
#endif

SL_API sl_device sl_cpu_named(int number);
SL_API int sl_device_number(sl_device device);

#ifdef __cplusplus
}
#endif

#endif
