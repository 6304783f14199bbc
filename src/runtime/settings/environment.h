/* Environment variables of StarPU (environment.c). */
#ifndef SLP_ENVIRONMENT_H
#define SLP_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

bool slp_env_check(const char *at); /* false, with an error recorded: StarPU would abort on one of its variables */
bool slp_env_unbound(void);         /* STARPU_WORKERS_NOBIND: workers run on any core */
/* The folder where StarPU keeps its measurements: its length, as of snprintf; 0: StarPU chooses one itself. */
int slp_starpu_folder(char *path, size_t size);

#endif
