/* Stands in for CUDA's runtime where it is a library of its own. It finds the driver as the runtime of CUDA 12.4 was
 * seen to: it loads it, asks the loader for cuGetProcAddress_v2 alone, and this for every other function, by the
 * version of CUDA in which that function appeared. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

typedef struct { size_t width, height; int format; unsigned channels; } Plane;
enum { FINE = 0, INSUFFICIENT_DRIVER = 35 };

static int (*ask)(const char *, void **, int, uint64_t, int *);
static int (*mem_alloc)(uint64_t *, size_t);
static int (*mem_free)(uint64_t);
static int (*mem_alloc_async)(uint64_t *, size_t, void *);
static int (*mem_free_async)(uint64_t, void *);
static int (*mem_host_alloc)(void **, size_t, unsigned);
static int (*mem_free_host)(void *);
static int (*array_create)(void **, const Plane *);
static int (*array_destroy)(void *);
static int (*reset)(int);

static const struct { const char *name; int version; uint64_t flags; void *place; } functions[] = {
    {"cuMemAlloc", 3020, 0, &mem_alloc},
    {"cuMemFree", 3020, 0, &mem_free},
    {"cuMemAllocAsync", 11020, 0, &mem_alloc_async},
    {"cuMemFreeAsync", 11020, 0, &mem_free_async},
    {"cuMemHostAlloc", 2020, 0, &mem_host_alloc},
    {"cuMemFreeHost", 2000, 0, &mem_free_host},
    {"cuArrayCreate", 3020, 0, &array_create},
    {"cuArrayDestroy", 2000, 0, &array_destroy},
    {"cuDevicePrimaryCtxReset", 7000, 0, &reset},
};

static int begin(void) {
    if (reset)
        return FINE;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver)
        return INSUFFICIENT_DRIVER;
    *(void **)&ask = dlsym(driver, "cuGetProcAddress_v2");
    if (!ask || ask("cuGetProcAddress", (void **)&ask, 12000, 0, NULL))
        return INSUFFICIENT_DRIVER;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        int found = -1;
        if (ask(functions[i].name, functions[i].place, functions[i].version, functions[i].flags,
                &found) || found)
            return INSUFFICIENT_DRIVER;
    }
    return FINE;
}

int cudaMalloc(void **block, size_t bytes) {
    int status = begin();
    return status ? status : mem_alloc((uint64_t *)block, bytes);
}
int cudaFree(void *block) { return mem_free((uint64_t)block); }
int cudaMallocAsync(void **block, size_t bytes, void *stream) {
    return mem_alloc_async((uint64_t *)block, bytes, stream);
}
int cudaFreeAsync(void *block, void *stream) { return mem_free_async((uint64_t)block, stream); }
int cudaMallocHost(void **block, size_t bytes) { return mem_host_alloc(block, bytes, 0); }
int cudaFreeHost(void *block) { return mem_free_host(block); }
int cudaMallocArray(void **array, const void *format, size_t width, size_t height) {
    Plane plane = {width, height, 0x20, 1};
    (void)format; /* floats, whatever is said */
    return array_create(array, &plane);
}
int cudaFreeArray(void *array) { return array_destroy(array); }
int cudaDeviceReset(void) { return reset(0); }
