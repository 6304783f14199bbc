/* The folder for StarPU's measurements if no variable names one (home.c). */
#ifndef SLP_HOME_H
#define SLP_HOME_H

#include <stdbool.h>

/* Makes a private folder and names it in STARPU_HOME until slp_home_forget, if no variable names a place; false, with
 * errno: it cannot be made. */
bool slp_home_make(void);
/* Removes it with all that is in it.  Without one it does nothing. */
void slp_home_forget(void);

#endif
