/* A program that knows CUDA's runtime and no driver, linked with the former. The test knows its sizes. */
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

int cudaMalloc(void **, size_t);
int cudaFree(void *);
int cudaMallocAsync(void **, size_t, void *);
int cudaFreeAsync(void *, void *);
int cudaMallocHost(void **, size_t);
int cudaFreeHost(void *);
int cudaMallocArray(void **, const void *, size_t, size_t);
int cudaFreeArray(void *);
int cudaDeviceReset(void);

static void check(int status, const char *what) {
    if (status != 0) {
        fprintf(stderr, "runtime: %s: %d\n", what, status);
        _exit(1);
    }
}

static void look(const char *what) {
    char line[16];
    printf("%s %d\n", what, (int)getpid());
    fflush(stdout);
    check(read(0, line, sizeof line) > 0 ? 0 : 1, "nobody answers");
}

int main(void) {
    void *kept, *freed, *later, *locked, *array, *other;
    check(cudaMalloc(&kept, 1000000), "cudaMalloc");
    check(cudaMalloc(&freed, 2000000), "cudaMalloc");
    check(cudaFree(freed), "cudaFree");
    check(cudaMallocAsync(&later, 4000000, NULL), "cudaMallocAsync");
    check(cudaMallocAsync(&freed, 8000000, NULL), "cudaMallocAsync");
    check(cudaFreeAsync(freed, NULL), "cudaFreeAsync");
    check(cudaMallocHost(&locked, 16000000), "cudaMallocHost");
    check(cudaMallocArray(&array, NULL, 4000, 2000), "cudaMallocArray");
    check(cudaMallocArray(&other, NULL, 16, 16), "cudaMallocArray");
    check(cudaFreeArray(other), "cudaFreeArray");
    look("has");
    check(cudaFreeHost(locked), "cudaFreeHost");
    check(cudaDeviceReset(), "cudaDeviceReset");
    look("reset");
    return 0;
}
