/* sl-info: each part reports JSON values, which main.c prints for people or for machines. */
#ifndef INFO_H
#define INFO_H

#include <jansson.h>

#include <starling/base.h>

/* A section is an object of values, or a list of objects with the same keys. */
json_t *info_host(void);
json_t *info_cores(void);
void info_cores_hints(json_t *hints);  /* adds what costs speed */
void info_others_hints(json_t *hints); /* adds the processes that use the cores */
json_t *info_devices(void);
json_t *info_memory(void);
json_t *info_links(void);
json_t *info_libraries(void);
json_t *info_kernels(void);
json_t *info_types(void);
json_t *info_settings(void);
json_t *info_environment(void);
json_t *info_hints(void);

json_t *info_ops(void);
void info_print_ops(const json_t *ops);

#endif
