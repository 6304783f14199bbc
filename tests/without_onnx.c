/* The program of tests on ONNX models in a build without protobuf-c: nothing to test. */
#include <stdio.h>

int main(void)
{
	puts("SKIP: built without protobuf-c");
	return 77;
}
