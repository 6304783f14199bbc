/* Failures of kernels (kernel_fail.c). */
#ifndef SLP_KERNEL_FAIL_H
#define SLP_KERNEL_FAIL_H

/* The last message of a kernel on this thread; "" if none. */
const char *slp_kernel_said(void);
void slp_kernel_says(const char *text);
void slp_kernel_forget(void); /* before each call */

#endif
