/* What the files of tests/misuse share. */
#ifndef SLP_TESTS_MISUSE_INNER_H
#define SLP_TESTS_MISUSE_INNER_H

int below(int n);                               /* from 0 */
void *kept(void *object, void (*free)(void *)); /* until pool_sweep; NULL stays NULL */

#endif
