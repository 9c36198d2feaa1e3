/* Calls the plugin as NCCL does: the same order, the same threads, the same structures.
 *
 * harness LIBRARY v5|v6 SCENARIO. What the plugin says in NCCL's log is written to stdout. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "nccl_profiler.h"

#define CHECK(condition)                                                                          \
    do {                                                                                          \
        if (!(condition)) {                                                                       \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);               \
            exit(1);                                                                              \
        }                                                                                         \
    } while (0)
#define OK(call) CHECK((call) == 0)

typedef ncclProfilerEventDescr_v6_t event_t;
typedef ncclProfilerEventStateArgs_v6_t arguments_t;

/* Version 5's description is a beginning of version 6's, so one table of pointers serves both. */
static ncclProfiler_v6_t plugin;
static void *world;

static void logger(int level, unsigned long flags, const char *file, int line, const char *format,
                   ...) {
    (void)level, (void)flags, (void)file, (void)line;
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    fflush(stdout);
}

static void nap(long milliseconds) {
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static void *start(void *context, event_t event) {
    void *handle = &handle;
    OK(plugin.startEvent(context, &handle, &event));
    return handle;
}

static void *collective(void *context, const char *name, size_t count, int channels) {
    event_t event = {.type = ncclProfileColl, .rank = 3};
    event.coll.func = name;
    event.coll.count = count;
    event.coll.root = 0;
    event.coll.datatype = "ncclFloat32";
    event.coll.nChannels = (uint8_t)channels;
    event.coll.algo = "RING";
    event.coll.proto = "SIMPLE";
    void *handle = start(context, event);
    if (handle) OK(plugin.stopEvent(handle));
    return handle;
}

static void *transfer(void *context, const char *name, size_t count, int peer) {
    event_t event = {.type = ncclProfileP2p};
    event.p2p.func = name;
    event.p2p.count = count;
    event.p2p.datatype = "ncclBfloat16";
    event.p2p.peer = peer;
    event.p2p.nChannels = 1;
    void *handle = start(context, event);
    if (handle) OK(plugin.stopEvent(handle));
    return handle;
}

static void *operation(void *context, void *parent, int peer, int is_send, pid_t pid) {
    event_t event = {.type = ncclProfileProxyOp, .parentObj = parent};
    event.proxyOp.pid = pid;
    event.proxyOp.peer = peer;
    event.proxyOp.nSteps = 2;
    event.proxyOp.chunkSize = 4096;
    event.proxyOp.isSend = is_send;
    return start(context, event);
}

static void *step(void *context, void *parent, int number) {
    event_t event = {.type = ncclProfileProxyStep, .parentObj = parent};
    event.proxyStep.step = number;
    return start(context, event);
}

static void state(void *handle, ncclProfilerEventState_t state, size_t bytes) {
    arguments_t arguments = {.proxyStep = {bytes}};
    if (handle) OK(plugin.recordEventState(handle, state, &arguments));
}

static void *kernel(void *context, void *parent, uint64_t timer) {
    event_t event = {.type = ncclProfileKernelCh, .parentObj = parent};
    event.kernelCh.pTimer = timer;
    return start(context, event);
}

static void kernel_end(void *handle, uint64_t timer) {
    arguments_t arguments = {.kernelCh = {timer}};
    OK(plugin.recordEventState(handle, ncclProfilerKernelChStop, &arguments));
    OK(plugin.stopEvent(handle));
}

static void stop(void *handle) {
    if (handle) OK(plugin.stopEvent(handle));
}

/* A step that waits so long for each cause, in milliseconds. */
static void send_step(void *context, void *parent, int number, long device, long peer, long network) {
    void *handle = step(context, parent, number);
    CHECK(handle);
    state(handle, ncclProfilerProxyStepSendGPUWait, 0);
    nap(device);
    state(handle, ncclProfilerProxyStepSendPeerWait_v4, 0);
    nap(peer);
    state(handle, ncclProfilerProxyStepSendWait, 3000);
    nap(network);
    stop(handle);
}

static void receive_step(void *context, void *parent, int number, long network, long device) {
    void *handle = step(context, parent, number);
    CHECK(handle);
    state(handle, ncclProfilerProxyStepRecvWait, 0);
    nap(network);
    state(handle, ncclProfilerProxyStepRecvFlushWait, 2048);
    state(handle, ncclProfilerProxyStepRecvGPUWait, 2048);
    nap(device);
    stop(handle);
}

/* A ring's step between nodes: a collective, its kernel's two channels, one send and one receive. */
static void network(void) {
    void *task = collective(world, "AllReduce", 1000, 2);
    CHECK(task);
    void *channels[2] = {kernel(world, task, 5000000), kernel(world, task, 5100000)};
    void *send = operation(world, task, 4, 1, getpid());
    void *receive = operation(world, task, 2, 0, getpid());
    CHECK(send && receive);
    state(send, ncclProfilerProxyOpInProgress_v4, 0);
    send_step(world, send, 0, 30, 40, 5);
    send_step(world, send, 1, 0, 0, 5);
    receive_step(world, receive, 0, 5, 30);
    receive_step(world, receive, 1, 5, 0);
    stop(send);
    stop(receive);
    kernel_end(channels[0], 9000000);
    kernel_end(channels[1], 9700000);
}

/* Within a node there is nothing but the kernel. */
static void within(void) {
    void *task = transfer(world, "Send", 512, 6);
    kernel_end(kernel(world, task, 1000000), 1250000);
    task = transfer(world, "Recv", 512, 6);
    kernel_end(kernel(world, task, 1000000), 1500000);
}

/* A process group with a name, and one without. */
static void groups(void) {
    for (int named = 0; named < 2; named++) {
        void *context = NULL;
        int mask = 0;
        OK(plugin.init(&context, 0xabc, &mask, named ? "tp \"0\"" : NULL, 1, 2, 1, logger));
        kernel_end(kernel(context, collective(context, "AllGather", 8, 1), 1000), 4000);
        OK(plugin.finalize(context));
    }
}

/* A collective whose kernel runs and does not end, and a send that does not arrive. */
static void hang(void) {
    void *task = collective(world, "ReduceScatter", 77, 1);
    CHECK(kernel(world, task, 1000));
    void *send = operation(world, task, 1, 1, getpid());
    state(step(world, send, 0), ncclProfilerProxyStepSendWait, 10);
    /* In the queue, and not begun: the device is busy. */
    CHECK(collective(world, "AllReduce", 1, 1));
}

static void misuse(void) {
    int mask;
    void *context = NULL;
    OK(plugin.init(NULL, 1, &mask, "x", 1, 1, 0, logger));
    OK(plugin.init(&context, 1, NULL, "x", 1, 1, 0, logger));
    OK(plugin.init(&context, 1, &mask, NULL, -1, -1, -1, NULL));
    CHECK(context == NULL);
    OK(plugin.startEvent(world, NULL, NULL));
    void *handle = &handle;
    OK(plugin.startEvent(world, &handle, NULL));
    CHECK(handle == NULL);
    void *garbage[] = {NULL, (void *)1, (void *)-1, &handle, (void *)0xdeadbeefdeadbeef};
    for (size_t at = 0; at < sizeof garbage / sizeof *garbage; at++) {
        void *bad = garbage[at];
        OK(plugin.stopEvent(bad));
        OK(plugin.recordEventState(bad, ncclProfilerProxyStepSendWait, NULL));
        OK(plugin.recordEventState(bad, (ncclProfilerEventState_t)12345, NULL));
        CHECK(collective(bad, "AllReduce", 1, 1) == NULL);
        CHECK(kernel(world, bad, 1) == NULL);
        CHECK(step(world, bad, 1) == NULL);
        OK(plugin.finalize(bad));
    }
    /* Kinds that were not asked for, and an unknown one. */
    for (int bit = 0; bit < 64; bit++) {
        event_t event = {.type = 1ull << bit};
        if (bit == 1 || bit == 2 || bit == 3) continue;
        CHECK(start(world, event) == NULL);
    }
    /* Another process's operation (PXN), texts that are no names, steps out of any range. */
    CHECK(operation(world, &handle, 1, 1, getpid() + 1) == NULL);
    void *task = collective(world, "a name that is far too long \x01\"\\", SIZE_MAX, 0);
    CHECK(task);
    void *send = operation(world, task, -5, 1, getpid());
    void *steps[3] = {step(world, send, -1), step(world, send, 1 << 30), step(world, send, 3)};
    for (int at = 0; at < 3; at++) state(steps[at], ncclProfilerProxyStepSendWait, SIZE_MAX);
    for (int at = 0; at < 3; at++) stop(steps[at]), stop(steps[at]);
    stop(send);
    stop(send);
    stop(task);
    /* A communicator that is gone. */
    OK(plugin.init(&context, 1, &mask, NULL, 1, 2, 0, logger));
    OK(plugin.finalize(context));
    OK(plugin.finalize(context));
    CHECK(collective(context, "AllReduce", 1, 1) == NULL);
}

/* More of everything than there is place for. */
static void flood(void) {
    int given = 0, refused = 0;
    for (int at = 0; at < 20000; at++) {
        if (operation(world, NULL, 1, 1, getpid())) given++;
        else refused++;
    }
    CHECK(given >= 8192 && refused > 0);
}

static void *many(void *context) {
    for (int at = 0; at < 500; at++) {
        void *task = collective(context, "AllReduce", 10, 1);
        void *send = operation(context, task, 1, 1, getpid());
        if (send) {
            void *one = step(context, send, at);
            state(one, ncclProfilerProxyStepSendWait, 64);
            stop(one);
            stop(send);
        }
        if (task) kernel_end(kernel(context, task, 1000), 2000);
        if (at % 50 == 0) nap(1);
    }
    return NULL;
}

static void threads(void) {
    pthread_t workers[4];
    for (int at = 0; at < 4; at++) CHECK(!pthread_create(&workers[at], NULL, many, world));
    for (int at = 0; at < 4; at++) CHECK(!pthread_join(workers[at], NULL));
}

static double now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

#define TIMED(name, times, call)                                                                  \
    do {                                                                                          \
        double before = now_ns();                                                                 \
        for (int at = 0; at < (times); at++) call;                                                \
        printf("cost %s %.0f\n", name, (now_ns() - before) / (times));                            \
    } while (0)

/* Nanoseconds a call. Each kind in pieces, so that the places are free again for the next. */
static void measure(void) {
    enum { PIECE = 2000 };
    static void *tasks[PIECE], *operations[PIECE], *steps[PIECE];
    for (int round = 0; round < 10; round++) {
        TIMED("start_task", PIECE, tasks[at] = collective(world, "AllReduce", 10, 1));
        TIMED("start_operation", PIECE, operations[at] = operation(world, tasks[at], 1, 1, getpid()));
        TIMED("start_step", PIECE, steps[at] = step(world, operations[at], 0));
        TIMED("state", PIECE, state(steps[at], ncclProfilerProxyStepSendWait, 10));
        TIMED("stop_step", PIECE, stop(steps[at]));
        TIMED("stop_operation", PIECE, stop(operations[at]));
        TIMED("kernel", PIECE, kernel_end(kernel(world, tasks[at], 1), 2));
        nap(300);
    }
}

int main(int count, char **words) {
    CHECK(count == 4);
    void *library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) fprintf(stderr, "%s\n", dlerror());
    CHECK(library);
    char symbol[32];
    snprintf(symbol, sizeof symbol, "ncclProfiler_%s", words[2]);
    const ncclProfiler_v6_t *found = dlsym(library, symbol);
    CHECK(found && strcmp(found->name, "Telltale") == 0);
    plugin = *found;
    int mask = -1;
    OK(plugin.init(&world, 0x1234, &mask, NULL, 4, 8, 3, logger));
    printf("mask %#x\n", mask);
    struct { const char *name; void (*run)(void); } scenarios[] = {
        {"network", network}, {"within", within},   {"groups", groups},   {"hang", hang},
        {"misuse", misuse},   {"flood", flood},     {"threads", threads}, {"measure", measure},
    };
    for (size_t at = 0; at < sizeof scenarios / sizeof *scenarios; at++)
        if (strcmp(words[3], scenarios[at].name) == 0) scenarios[at].run();
    fflush(stdout);
    /* Until the test has seen what it waits for. */
    (void)!getchar();
    OK(plugin.finalize(world));
    CHECK(dlclose(library) == 0);
    return 0;
}
