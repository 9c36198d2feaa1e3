/* Allocates as PyTorch does with a pluggable allocator: the library is loaded while the program
 * runs, and its two functions are called for devices that need not be the current one.
 *
 *   torch LIBRARY
 *
 * Prints "has PID" once it holds what the test knows of, and ends when standard input ends. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <telltale.h>
#include <unistd.h>

#define CHECK(condition)                                                                          \
    do {                                                                                          \
        if (!(condition)) {                                                                       \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                               \
            exit(1);                                                                              \
        }                                                                                         \
    } while (0)

typedef __typeof__(telltale_torch_alloc) *Alloc;
typedef __typeof__(telltale_torch_free) *Free;
static void *const stream = (void *)0x5;

int main(int count, char **arguments) {
    char byte;
    void *library = count > 1 ? dlopen(arguments[1], RTLD_LAZY) : NULL;
    CHECK(library != NULL);
    Alloc alloc = (Alloc)dlsym(library, "telltale_torch_alloc");
    Free give = (Free)dlsym(library, "telltale_torch_free");
    CHECK(alloc != NULL && give != NULL);

    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver == NULL) {
        CHECK(alloc(1000, 0, stream) == NULL);
        give((void *)4096, 1000, 0, stream);
        puts("no driver");
        return 0;
    }
    int (*set_device)(int) = (int (*)(int))dlsym(driver, "fakeSetDevice");
    int (*get_device)(int *) = (int (*)(int *))dlsym(driver, "cuCtxGetDevice");
    int device = -1;
    set_device(1);

    void *kept = alloc(1000000, 0, stream);
    void *freed = alloc(2000000, 0, stream);
    void *other = alloc(4000000, 1, stream);
    CHECK(kept != NULL && freed != NULL && other != NULL && kept != freed);
    CHECK(get_device(&device) == 0 && device == 1);
    give(freed, 2000000, 0, stream);
    give(NULL, 0, 0, stream);
    CHECK(alloc((ptrdiff_t)1 << 50, 0, stream) == NULL);
    CHECK(alloc(0, 0, stream) == NULL && alloc(-1, 0, stream) == NULL);
    CHECK(alloc(1000, 2, stream) == NULL && alloc(1000, -1, stream) == NULL);
    give((void *)4096, 1000, 7, stream);
    CHECK(get_device(&device) == 0 && device == 1);

    printf("has %d\n", (int)getpid());
    fflush(stdout);
    while (read(0, &byte, 1) > 0) {
    }
    give(kept, 1000000, 0, stream);
    give(other, 4000000, 1, stream);
    return 0;
}
