/* What a program says on stderr. */
#ifndef SLP_TESTS_CAPTURE_H
#define SLP_TESTS_CAPTURE_H

/* From here on stderr goes to a file. */
void slp_capture_begin(void);
/* stderr is as before; what was said meanwhile, as far as 4095 bytes go; free it. */
char *slp_capture_end(void);

#endif
