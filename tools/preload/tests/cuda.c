/* Calls every function of the driver that the preloaded library knows, found in the way that the
 * argument says: as a program that is linked with the driver, with dlsym, or as CUDA's runtime does.
 * Sizes are chosen so that each says where it comes from; the test knows them. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef uint64_t P;
typedef int (*Ask)(const char *, void **, int, uint64_t);
typedef int (*Ask2)(const char *, void **, int, uint64_t, int *);

static void check(int fine, const char *what) {
    if (!fine) {
        fprintf(stderr, "cuda: %s\n", what);
        _exit(1);
    }
}

static void look(const char *what) {
    char line[16], text[64];
    int length = snprintf(text, sizeof text, "%s %d\n", what, (int)getpid());
    check(write(1, text, (size_t)length) == length, "nobody reads");
    check(read(0, line, sizeof line) > 0, "nobody answers");
}

static const char *way;
static void *driver;

#ifdef LINKED
#define EACH(X) X(cuMemAlloc_v2) X(cuMemFree_v2) X(cuMemAllocPitch_v2) X(cuMemAllocManaged) \
    X(cuMemAllocAsync) X(cuMemAllocFromPoolAsync) X(cuMemFreeAsync) X(cuMemAllocHost_v2) \
    X(cuMemHostAlloc) X(cuMemFreeHost) X(cuMemCreate) X(cuMemRelease) X(cuMemMap) X(cuMemUnmap) \
    X(cuArrayCreate_v2) X(cuArray3DCreate_v2) X(cuArrayDestroy) X(cuMipmappedArrayCreate) \
    X(cuMipmappedArrayDestroy) X(cuMemRetainAllocationHandle) X(cuDevicePrimaryCtxReset_v2) \
    X(fakeSetDevice) X(cuCtxDestroy_v2)
#define DECLARE(name) extern int name();
EACH(DECLARE)
#endif

static void *find(const char *asked, const char *symbol) {
    void *found = NULL;
#ifdef LINKED
#define IS(name) if (strcmp(symbol, #name) == 0) found = (void *)name;
    EACH(IS)
#else
    if (strncmp(symbol, "fake", 4) == 0 || strcmp(way, "dlsym") == 0) {
        found = dlsym(driver, symbol);
    } else if (strcmp(way, "before-12") == 0) {
        Ask ask = (Ask)dlsym(driver, "cuGetProcAddress");
        check(ask(asked, &found, 11040, 0) == 0, asked);
    } else {
        /* As CUDA's runtime: by way of the function that it asked for itself. */
        uint64_t flags = strcmp(way, "per-thread") == 0 ? 2 : 0;
        Ask2 first = (Ask2)dlsym(driver, "cuGetProcAddress_v2");
        Ask2 ask = NULL;
        int symbol_status = -1;
        check(first("cuGetProcAddress", (void **)&ask, 12000, 0, NULL) == 0, "no cuGetProcAddress");
        check(ask(asked, &found, 12000, flags, &symbol_status) == 0 && symbol_status == 0, asked);
    }
#endif
    check(found != NULL, symbol);
    return found;
}

static void blocks(void) {
    int (*alloc)(P *, size_t) = find("cuMemAlloc", "cuMemAlloc_v2");
    int (*give)(P) = find("cuMemFree", "cuMemFree_v2");
    int (*pitched)(P *, size_t *, size_t, size_t, unsigned) =
        find("cuMemAllocPitch", "cuMemAllocPitch_v2");
    int (*managed)(P *, size_t, unsigned) = find("cuMemAllocManaged", "cuMemAllocManaged");
    P kept, freed, rows, moved, none = 5;
    size_t pitch = 0;
    check(alloc(&kept, 1000000) == 0 && alloc(&freed, 2000000) == 0, "cuMemAlloc");
    check(give(freed) == 0, "cuMemFree");
    check(give(freed) == 1 && give(0) == 1, "a free of nothing succeeds");
    check(pitched(&rows, &pitch, 1000, 10, 4) == 0 && pitch == 1024, "cuMemAllocPitch");
    check(managed(&moved, 3000000, 1) == 0, "cuMemAllocManaged");
    check(managed(&moved, 3000000, 0) == 1, "wrong flags succeed");
    check(alloc(&none, (size_t)1 << 50) == 2 && none == 5, "an absurd cuMemAlloc succeeds");
}

static void streams(void) {
    int (*alloc)(P *, size_t, void *) = find("cuMemAllocAsync", "cuMemAllocAsync");
    int (*pooled)(P *, size_t, void *, void *) =
        find("cuMemAllocFromPoolAsync", "cuMemAllocFromPoolAsync");
    int (*give)(P, void *) = find("cuMemFreeAsync", "cuMemFreeAsync");
    int (*give_now)(P) = find("cuMemFree", "cuMemFree_v2");
    P kept, freed, of_pool;
    check(alloc(&kept, 4000000, NULL) == 0 && alloc(&freed, 5000000, NULL) == 0, "cuMemAllocAsync");
    check(give(kept, (void *)7) == 1, "a free in a wrong stream succeeds");
    check(give(freed, NULL) == 0, "cuMemFreeAsync");
    check(pooled(&of_pool, 6000000, &kept, NULL) == 0, "cuMemAllocFromPoolAsync");
    check(give_now(of_pool) == 0, "cuMemFree of a pool's block");
}

static void host(void) {
    int (*alloc)(void **, size_t) = find("cuMemAllocHost", "cuMemAllocHost_v2");
    int (*other)(void **, size_t, unsigned) = find("cuMemHostAlloc", "cuMemHostAlloc");
    int (*give)(void *) = find("cuMemFreeHost", "cuMemFreeHost");
    void *kept, *freed;
    check(alloc(&kept, 7000000) == 0, "cuMemAllocHost");
    check(other(&freed, 8000000, 0) == 0 && give(freed) == 0, "cuMemHostAlloc");
}

/* All on device 1, and all but a plane of 3,000 by 1,000 floats gone at the end. */
static void arrays(void) {
    struct { size_t width, height; int format; unsigned channels; } plane = {3000, 1000, 0x20, 1};
    struct { size_t width, height, depth; int format; unsigned channels, flags; } volume =
        {64, 32, 10, 0x10, 2, 0};
    int (*create)(void **, const void *) = find("cuArrayCreate", "cuArrayCreate_v2");
    int (*create_3d)(void **, const void *) = find("cuArray3DCreate", "cuArray3DCreate_v2");
    int (*destroy)(void *) = find("cuArrayDestroy", "cuArrayDestroy");
    int (*mipmapped)(void **, const void *, unsigned) =
        find("cuMipmappedArrayCreate", "cuMipmappedArrayCreate");
    int (*unmipmapped)(void *) = find("cuMipmappedArrayDestroy", "cuMipmappedArrayDestroy");
    void *kept, *filled, *later, *levels;
    check(create(&kept, &plane) == 0 && create(&kept, NULL) == 1, "cuArrayCreate");
    check(create_3d(&filled, &volume) == 0, "cuArray3DCreate");
    check(mipmapped(&levels, &volume, 2) == 0, "cuMipmappedArrayCreate");
    volume.flags = 0x80; /* memory comes later, and is none of its own */
    check(create_3d(&later, &volume) == 0, "a deferred cuArray3DCreate");
    look("arrays");
    check(destroy(levels) == 1, "a mipmapped array is destroyed as another one");
    check(destroy(filled) == 0 && destroy(later) == 0 && unmipmapped(levels) == 0, "destroy");
    plane.width = (size_t)1 << 40;
    check(create(&filled, &plane) == 2, "an absurd cuArrayCreate succeeds");
    look("array");
    check(destroy(kept) == 0, "cuArrayDestroy");
}

static void physical(void) {
    int (*create)(uint64_t *, size_t, const int *, uint64_t) = find("cuMemCreate", "cuMemCreate");
    int (*release)(uint64_t) = find("cuMemRelease", "cuMemRelease");
    int (*map)(P, size_t, size_t, uint64_t, uint64_t) = find("cuMemMap", "cuMemMap");
    int (*unmap)(P, size_t) = find("cuMemUnmap", "cuMemUnmap");
    int (*retain)(uint64_t *, void *) =
        find("cuMemRetainAllocationHandle", "cuMemRetainAllocationHandle");
    /* Pinned memory on device 1, whichever is current. */
    int properties[16] = {1, 0, 1, 1};
    uint64_t gone, kept, again;
    P at = 0x600000000000;
    check(create(&gone, 16 << 20, properties, 0) == 0 && map(at, 16 << 20, 0, gone, 0) == 0, "map");
    check(release(gone) == 0 && release(gone) == 1, "cuMemRelease");
    check(create(&kept, 32 << 20, properties, 0) == 0, "cuMemCreate");
    check(map(at + (16 << 20), 32 << 20, 0, kept, 0) == 0, "cuMemMap");
    check(retain(&again, (void *)(at + (16 << 20))) == 0 && again == kept, "retain");
    check(release(kept) == 0, "the first of two");
    look("mapped");
    check(unmap(at, 48 << 20) == 0 && unmap(at, 48 << 20) == 1, "cuMemUnmap");
    look("held");
    check(release(again) == 0, "the second of two");
}

int main(int count, char **arguments) {
    way = count > 1 ? arguments[1] : "";
#ifndef LINKED
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    check(driver != NULL, "there is no driver");
#endif
    int (*set_device)(int) = find("fakeSetDevice", "fakeSetDevice");
    int (*reset)(int) = find("cuDevicePrimaryCtxReset", "cuDevicePrimaryCtxReset_v2");
    int (*alloc)(P *, size_t) = find("cuMemAlloc", "cuMemAlloc_v2");
    blocks();
    streams();
    host();
    P other;
    set_device(1);
    check(alloc(&other, 9000000) == 0, "on device 1");
    set_device(0);
    look("sums");
    set_device(1);
    arrays();
    set_device(0);
    physical();
    look("released");
    check(reset(1) == 0, "cuDevicePrimaryCtxReset");
    look("reset");
#ifndef LINKED
    check(dlclose(driver) == 0, "dlclose");
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    alloc = find("cuMemAlloc", "cuMemAlloc_v2");
    check(alloc(&other, 10000000) == 0, "after dlclose");
    look("again");
#endif
    return 0;
}
