/* A process that keeps a region of version 4 as tt-metal proposes it: without a lock, by atomics.
 *
 *   peer FILE ROUNDS PAIRS [HOLD]   attaches and detaches ROUNDS times with PAIRS allocations and
 *                                   frees each; then holds HOLD bytes until its input ends
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define KINDS 5
#define ROWS 64
#define CHIPS 16
#define READY 0x52454459u

struct region {
    uint32_t version, num_active_processes;
    uint64_t last_update;
    uint32_t reference_count;
    uint64_t board_serial, asic_id;
    uint32_t device_id;
    uint64_t total[KINDS];
    struct {
        uint32_t chip_id, is_remote;
        uint64_t bytes[KINDS];
    } chip[CHIPS];
    struct {
        int32_t pid;
        uint64_t bytes[KINDS], last_update;
        char name[64];
    } process[ROWS];
    uint32_t init_state;
} __attribute__((aligned(64)));

#define LOAD(X) __atomic_load_n(&(X), __ATOMIC_ACQUIRE)
#define STORE(X, V) __atomic_store_n(&(X), (V), __ATOMIC_RELEASE)
#define ADD(X, V) __atomic_fetch_add(&(X), (V), __ATOMIC_RELAXED)

static int swapped(int32_t *word, int32_t from, int32_t to) {
    return __atomic_compare_exchange_n(word, &from, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static void take(uint64_t *counter, uint64_t bytes) {
    uint64_t held = LOAD(*counter);
    while (!__atomic_compare_exchange_n(counter, &held, held > bytes ? held - bytes : 0, 0,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

static struct region *map_region(const char *path) {
    int file = open(path, O_CREAT | O_EXCL | O_RDWR, 0600);
    if (file < 0) file = open(path, O_RDWR);
    if (file < 0 || ftruncate(file, sizeof(struct region)) != 0) exit(3);
    struct region *region =
        mmap(NULL, sizeof *region, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (region == MAP_FAILED) exit(3);
    close(file);
    if (swapped((int32_t *)&region->init_state, 0, 1)) {
        for (int row = 0; row < CHIPS; row++) STORE(region->chip[row].chip_id, UINT32_MAX);
        STORE(region->chip[0].chip_id, 3);
        STORE(region->version, 4);
        STORE(region->init_state, READY);
    }
    for (int wait = 0; LOAD(region->init_state) != READY; wait++) {
        if (wait == 1000) exit(4);
        usleep(1000);
    }
    return region;
}

static void release(struct region *region, int row, int32_t owner) {
    if (!swapped(&region->process[row].pid, owner, -1)) return;
    for (int kind = 0; kind < KINDS; kind++) {
        uint64_t held = __atomic_exchange_n(&region->process[row].bytes[kind], 0, __ATOMIC_ACQ_REL);
        take(&region->total[kind], held);
    }
    STORE(region->process[row].pid, 0);
    ADD(region->reference_count, -1);
}

static int attach(struct region *region) {
    for (int row = 0; row < ROWS; row++) {
        int32_t pid = LOAD(region->process[row].pid);
        if (pid > 0 && kill(pid, 0) != 0 && errno == ESRCH) release(region, row, pid);
    }
    for (int row = 0; row < ROWS; row++) {
        if (swapped(&region->process[row].pid, 0, getpid())) {
            ADD(region->reference_count, 1);
            return row;
        }
    }
    exit(5);
}

static void allocate(struct region *region, int row, uint64_t bytes) {
    ADD(region->total[0], bytes);
    ADD(region->chip[0].bytes[0], bytes);
    ADD(region->process[row].bytes[0], bytes);
}

static void deallocate(struct region *region, int row, uint64_t bytes) {
    take(&region->total[0], bytes);
    take(&region->chip[0].bytes[0], bytes);
    take(&region->process[row].bytes[0], bytes);
}

int main(int count, char **words) {
    if (count < 4) return 2;
    struct region *region = map_region(words[1]);
    for (long round = atol(words[2]); round > 0; round--) {
        int row = attach(region);
        for (long pair = atol(words[3]); pair > 0; pair--) {
            allocate(region, row, 64 + (uint64_t)pair);
            deallocate(region, row, 64 + (uint64_t)pair);
        }
        release(region, row, getpid());
    }
    if (count > 4) {
        uint64_t hold = (uint64_t)atoll(words[4]);
        char nothing;
        int row = attach(region);
        allocate(region, row, hold);
        while (read(0, &nothing, 1) > 0) {
        }
        deallocate(region, row, hold);
        release(region, row, getpid());
    }
    return 0;
}
