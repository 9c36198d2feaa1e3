/* Stands in for CUDA's driver: two devices, addresses that lead nowhere, and the functions that the
 * preloaded library knows. It refuses what the driver refuses: frees of what is not there, too. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef int CUresult;
typedef uint64_t CUdeviceptr;
enum { FINE = 0, INVALID = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NOT_FOUND = 500 };
#define MOST 256
#define DEEPEST 8

static struct { uint64_t address; size_t bytes; int device; } blocks[MOST];
static struct { uint64_t handle; int references, maps; } pieces[MOST];
static struct { uint64_t address; size_t bytes; int piece; } maps[MOST];
static uint64_t next_address = 0x7f0000000000;
static uint64_t next_handle = 0x100;
static int current;
static int contexts[2];
static int pushed[DEEPEST], depth;
static int ready;

CUresult cuInit(unsigned flags) { ready = flags == 0; return flags ? INVALID : FINE; }
CUresult fakeSetDevice(int device) { current = device; return FINE; }
CUresult cuCtxGetDevice(int *device) { *device = current; return FINE; }
CUresult cuCtxGetCurrent(void **context) { *context = &contexts[current]; return FINE; }
CUresult cuDeviceTotalMem_v2(size_t *bytes, int device) {
    *bytes = (size_t)80 << 30;
    return device < 2 ? FINE : INVALID;
}
CUresult cuDeviceGetAttribute(int *value, int attribute, int device) {
    switch (attribute) {
    case 33: *value = device ? 0xb1 : 0x17; return FINE; /* bus */
    case 34: *value = 0; return FINE;                    /* device */
    case 50: *value = 0; return FINE;                    /* domain */
    case 115: *value = 1; return FINE;                   /* memory pools */
    default: return INVALID;
    }
}

static CUresult take(CUdeviceptr *target, size_t bytes) {
    if (bytes > (size_t)80 << 30)
        return OUT_OF_MEMORY;
    for (int i = 0; i < MOST; i++) {
        if (blocks[i].address == 0) {
            blocks[i].address = *target = next_address;
            blocks[i].bytes = bytes;
            blocks[i].device = current;
            next_address += (bytes + 0x1fffff) & ~(uint64_t)0x1fffff;
            return FINE;
        }
    }
    return OUT_OF_MEMORY;
}

static CUresult give(CUdeviceptr block) {
    for (int i = 0; i < MOST; i++) {
        if (block != 0 && blocks[i].address == block) {
            blocks[i].address = 0;
            return FINE;
        }
    }
    return INVALID;
}

CUresult cuPointerGetAttribute(void *value, int attribute, CUdeviceptr block) {
    for (int i = 0; i < MOST; i++) {
        if (attribute == 9 && blocks[i].address == block) {
            *(int *)value = blocks[i].device;
            return FINE;
        }
    }
    return INVALID;
}

CUresult cuMemAlloc_v2(CUdeviceptr *target, size_t bytes) { return take(target, bytes); }
CUresult cuMemFree_v2(CUdeviceptr block) { return give(block); }
CUresult cuMemAllocPitch_v2(CUdeviceptr *target, size_t *pitch, size_t width, size_t height,
                            unsigned element) {
    (void)element;
    *pitch = (width + 511) & ~(size_t)511;
    return take(target, *pitch * height);
}
CUresult cuMemAllocManaged(CUdeviceptr *target, size_t bytes, unsigned flags) {
    return flags ? take(target, bytes) : INVALID;
}
CUresult cuMemAllocAsync(CUdeviceptr *target, size_t bytes, void *stream) {
    return stream == (void *)7 ? INVALID : take(target, bytes);
}
CUresult cuMemAllocAsync_ptsz(CUdeviceptr *target, size_t bytes, void *stream) {
    return cuMemAllocAsync(target, bytes, stream);
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *target, size_t bytes, void *pool, void *stream) {
    return pool ? cuMemAllocAsync(target, bytes, stream) : INVALID;
}
CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *target, size_t bytes, void *pool, void *stream) {
    return cuMemAllocFromPoolAsync(target, bytes, pool, stream);
}
CUresult cuMemFreeAsync(CUdeviceptr block, void *stream) {
    return stream == (void *)7 ? INVALID : give(block);
}
CUresult cuMemFreeAsync_ptsz(CUdeviceptr block, void *stream) {
    return cuMemFreeAsync(block, stream);
}
CUresult cuMemAllocHost_v2(void **target, size_t bytes) {
    return take((CUdeviceptr *)target, bytes);
}
CUresult cuMemHostAlloc(void **target, size_t bytes, unsigned flags) {
    (void)flags;
    return take((CUdeviceptr *)target, bytes);
}
CUresult cuMemFreeHost(void *block) { return give((CUdeviceptr)block); }

/* Arrays: handles that the driver alone can read, which are no addresses of the device. */
typedef struct { size_t width, height; int format; unsigned channels; } Plane;
typedef struct { size_t width, height, depth; int format; unsigned channels, flags; } Volume;
static struct { int used, mipmapped; } arrays[MOST];
static CUresult make_array(void **target, int mipmapped) {
    for (int i = 0; i < MOST; i++) {
        if (!arrays[i].used) {
            arrays[i].used = 1;
            arrays[i].mipmapped = mipmapped;
            *target = &arrays[i];
            return FINE;
        }
    }
    return OUT_OF_MEMORY;
}
static CUresult lose_array(void *array, int mipmapped) {
    for (int i = 0; i < MOST; i++) {
        if (array == &arrays[i] && arrays[i].used && arrays[i].mipmapped == mipmapped) {
            arrays[i].used = 0;
            return FINE;
        }
    }
    return INVALID;
}
static int has_room(size_t width, size_t height) { return width * height <= (size_t)80 << 30; }
CUresult cuArrayCreate_v2(void **target, const Plane *plane) {
    if (plane == NULL || plane->width == 0)
        return INVALID;
    return has_room(plane->width, plane->height) ? make_array(target, 0) : OUT_OF_MEMORY;
}
CUresult cuArray3DCreate_v2(void **target, const Volume *volume) {
    if (volume == NULL || volume->width == 0)
        return INVALID;
    return has_room(volume->width, volume->height) ? make_array(target, 0) : OUT_OF_MEMORY;
}
CUresult cuArrayDestroy(void *array) { return lose_array(array, 0); }
CUresult cuMipmappedArrayCreate(void **target, const Volume *volume, unsigned levels) {
    return volume == NULL || levels == 0 ? INVALID : make_array(target, 1);
}
CUresult cuMipmappedArrayDestroy(void *array) { return lose_array(array, 1); }

CUresult cuMemCreate(uint64_t *target, size_t bytes, const int *properties, uint64_t flags) {
    if (bytes > (size_t)80 << 30)
        return OUT_OF_MEMORY;
    if (flags || properties[0] != 1)
        return INVALID;
    for (int i = 0; i < MOST; i++) {
        if (pieces[i].references == 0 && pieces[i].maps == 0) {
            pieces[i].handle = *target = next_handle++;
            pieces[i].references = 1;
            return FINE;
        }
    }
    return OUT_OF_MEMORY;
}
static int piece_of(uint64_t handle) {
    for (int i = 0; i < MOST; i++)
        if (pieces[i].handle == handle && pieces[i].references > 0)
            return i;
    return -1;
}
CUresult cuMemRelease(uint64_t handle) {
    int i = piece_of(handle);
    if (i < 0)
        return INVALID;
    pieces[i].references--;
    return FINE;
}
CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, uint64_t handle,
                  uint64_t flags) {
    int i = piece_of(handle);
    if (i < 0 || offset || flags)
        return INVALID;
    for (int j = 0; j < MOST; j++) {
        if (maps[j].address == 0) {
            maps[j].address = address;
            maps[j].bytes = bytes;
            maps[j].piece = i;
            pieces[i].maps++;
            return FINE;
        }
    }
    return OUT_OF_MEMORY;
}
CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
    int found = 0;
    for (int j = 0; j < MOST; j++) {
        if (maps[j].address >= address && maps[j].address < address + bytes) {
            pieces[maps[j].piece].maps--;
            maps[j].address = 0;
            found = 1;
        }
    }
    return found ? FINE : INVALID;
}
CUresult cuMemRetainAllocationHandle(uint64_t *target, void *address) {
    for (int j = 0; j < MOST; j++) {
        if (maps[j].address && maps[j].address == (CUdeviceptr)address) {
            pieces[maps[j].piece].references++;
            *target = pieces[maps[j].piece].handle;
            return FINE;
        }
    }
    return INVALID;
}

static void lose(int device) {
    for (int i = 0; i < MOST; i++)
        if (blocks[i].device == device)
            blocks[i].address = 0;
}
CUresult cuCtxDestroy_v2(void *context) { lose(context == &contexts[1]); return FINE; }
CUresult cuDevicePrimaryCtxReset(int device) { lose(device); return FINE; }
CUresult cuDevicePrimaryCtxReset_v2(int device) { lose(device); return FINE; }
CUresult cuDevicePrimaryCtxRelease(int device) { lose(device); return FINE; }
CUresult cuDevicePrimaryCtxRelease_v2(int device) { lose(device); return FINE; }
CUresult cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
    (void)device;
    *flags = 0;
    *active = 0;
    return FINE;
}
CUresult cuDevicePrimaryCtxRetain(void **context, int device) {
    if (!ready)
        return NOT_INITIALIZED;
    if (device < 0 || device > 1)
        return INVALID;
    *context = &contexts[device];
    return FINE;
}
CUresult cuCtxPushCurrent_v2(void *context) {
    if (depth == DEEPEST)
        return INVALID;
    pushed[depth++] = current;
    current = context == &contexts[1];
    return FINE;
}
CUresult cuCtxPopCurrent_v2(void **context) {
    if (depth == 0)
        return INVALID;
    *context = &contexts[current];
    current = pushed[--depth];
    return FINE;
}

CUresult cuGetProcAddress(const char *, void **, int, uint64_t);
CUresult cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *);
#define ROW(asked, symbol) { #asked, 0, 0, (void *)symbol }
#define PER_THREAD(asked) { #asked, 1, 0, (void *)asked }, { #asked, 2, 0, (void *)asked##_ptsz }
/* The last one whose version is not above the wanted one is given. */
static const struct { const char *asked; int stream, since; void *function; } table[] = {
    ROW(cuMemAlloc, cuMemAlloc_v2), ROW(cuMemFree, cuMemFree_v2),
    ROW(cuMemAllocPitch, cuMemAllocPitch_v2), ROW(cuMemAllocManaged, cuMemAllocManaged),
    PER_THREAD(cuMemAllocAsync), PER_THREAD(cuMemAllocFromPoolAsync), PER_THREAD(cuMemFreeAsync),
    ROW(cuMemAllocHost, cuMemAllocHost_v2), ROW(cuMemHostAlloc, cuMemHostAlloc),
    ROW(cuMemFreeHost, cuMemFreeHost), ROW(cuMemCreate, cuMemCreate),
    ROW(cuArrayCreate, cuArrayCreate_v2), ROW(cuArray3DCreate, cuArray3DCreate_v2),
    ROW(cuArrayDestroy, cuArrayDestroy), ROW(cuMipmappedArrayCreate, cuMipmappedArrayCreate),
    ROW(cuMipmappedArrayDestroy, cuMipmappedArrayDestroy),
    ROW(cuMemRelease, cuMemRelease), ROW(cuMemMap, cuMemMap), ROW(cuMemUnmap, cuMemUnmap),
    ROW(cuMemRetainAllocationHandle, cuMemRetainAllocationHandle),
    ROW(cuCtxDestroy, cuCtxDestroy_v2), ROW(cuInit, cuInit),
    ROW(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset),
    { "cuDevicePrimaryCtxReset", 0, 11000, (void *)cuDevicePrimaryCtxReset_v2 },
    ROW(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease),
    { "cuDevicePrimaryCtxRelease", 0, 11000, (void *)cuDevicePrimaryCtxRelease_v2 },
};

CUresult cuGetProcAddress(const char *name, void **target, int version, uint64_t flags) {
    *target = NULL;
    if (strcmp(name, "cuGetProcAddress") == 0) {
        *target = version < 12000 ? (void *)cuGetProcAddress : (void *)cuGetProcAddress_v2;
        return FINE;
    }
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        int wanted = table[i].stream == 0 || table[i].stream == (flags & 2 ? 2 : 1);
        if (wanted && version >= table[i].since && strcmp(table[i].asked, name) == 0)
            *target = table[i].function;
    }
    return *target ? FINE : NOT_FOUND;
}
CUresult cuGetProcAddress_v2(const char *name, void **target, int version, uint64_t flags,
                             int *found) {
    CUresult status = cuGetProcAddress(name, target, version, flags);
    if (found)
        *found = status;
    return status;
}
