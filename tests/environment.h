/* The environment that tests run in. */
#ifndef SLP_TESTS_ENVIRONMENT_H
#define SLP_TESTS_ENVIRONMENT_H

/* Starts a program that was started by hand once more, in the environment of make check: OpenMP reads its variables before
 * main.  Variables that are set stay as they are.  Returns under make check, and where the program cannot be started. */
void slp_enter_environment(char **argv);

#endif
