/* Environment variables: StarPU's (environment.c), and the names of ours (variables.c). */
#ifndef SLP_ENVIRONMENT_H
#define SLP_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

bool slp_env_check(const char *at); /* false, with an error recorded: StarPU would abort on one of its variables */
bool slp_env_unbound(void);         /* STARPU_WORKERS_NOBIND: workers run on any core */
/* The folder where StarPU keeps its measurements: its length, as of snprintf; 0: StarPU chooses one itself. */
int slp_starpu_folder(char *path, size_t size);

/* Writes each variable SL_… that is not known to standard error, once in a process. */
void slp_env_report_unknown(void);
/* The known variable whose name is nearest to the first n characters, and how many of them differ; NULL: n is too large. */
const char *slp_env_nearest(const char *name, size_t n, int *difference);

#endif
