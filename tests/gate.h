/* A closed gate keeps a CPU worker busy, so that tests can look at what waits behind it. */
#ifndef SLP_TESTS_GATE_H
#define SLP_TESTS_GATE_H

/* Closes the gate of CPU team `team`; returns once the worker stands before it. */
void slp_gate_close(int team);
/* Opens all gates and waits until they are gone. */
void slp_gate_open(void);

#endif
