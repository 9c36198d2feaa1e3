/*
 * A publisher and a client of the debug stream in C, as a user would write them: linked to
 * libtelltale_nrt.so, nothing but its published calls. Does one thing so many times and writes the
 * nanoseconds that each took.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>

#include "nrt/ndebug_stream.h"
#include "telltale_debug.h"

/* With the header of 64 bytes and the fixed part of 1,024, an event has 1,152. */
#define TENSOR_BYTES 64
/* Events that wait at once when they are published and read in turn. */
#define BURST 256

static const uint64_t SHAPE[] = {16};
static const char PREFIX[] = "layer.07.act.out";

static void must(int holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "%s\n", what);
        exit(1);
    }
}

/* CLOCK_THREAD_CPUTIME_ID for what one thread does, so that other load shows less. */
static double now_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* The processors that the program was given. */
static cpu_set_t allowed;

/* Keeps the thread on the so-many-th processor, where there are so many. */
static void pin(int index) {
    cpu_set_t one;
    for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &allowed) && seen++ == index) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            sched_setaffinity(0, sizeof one, &one);
            return;
        }
    }
}

static NRT_STATUS publish(const char *tensor) {
    return telltale_debug_publish_tensor(0, PREFIX, 0, "float32", SHAPE, 1, tensor, TENSOR_BYTES);
}

static void publish_all(long events) {
    char tensor[TENSOR_BYTES];
    memset(tensor, 7, sizeof tensor);
    while (events > 0) {
        NRT_STATUS status = publish(tensor);
        must(status == NRT_SUCCESS || status == NRT_QUEUE_FULL, "an event was not accepted");
        events -= status == NRT_SUCCESS;
    }
}

/* The connection stays, as in a program. */
static int connect_to_core(void) {
    static int stream = -1;
    if (stream < 0) must(nrt_debug_client_connect(0, &stream) == NRT_SUCCESS, "cannot connect");
    return stream;
}

/* Takes one event, if one waits. */
static int read_one(int stream) {
    ndebug_stream_event_header_t header;
    void *payload;
    if (nrt_debug_client_read_one_event(stream, &header, &payload) != NRT_SUCCESS) return 0;
    must(((char *)payload)[1024 + TENSOR_BYTES - 1] == 7, "not what was published");
    free(payload);
    return 1;
}

/* One thread publishes a burst and reads it. */
static double in_turn(long events) {
    int stream = connect_to_core();
    double start = now_ns(CLOCK_THREAD_CPUTIME_ID);
    for (long done = 0; done < events; done += BURST) {
        publish_all(BURST);
        for (int got = 0; got < BURST; got++) must(read_one(stream), "an event is missing");
        must(!read_one(stream), "there is one too many");
    }
    return now_ns(CLOCK_THREAD_CPUTIME_ID) - start;
}

static void *publisher(void *events) {
    pin(0);
    publish_all(*(long *)events);
    return NULL;
}

/* One thread publishes, the other reads until nothing waits, and polls. */
static double passing(long events) {
    struct pollfd set = {.fd = connect_to_core(), .events = POLLIN};
    pthread_t thread;
    double start = now_ns(CLOCK_MONOTONIC);
    must(pthread_create(&thread, NULL, publisher, &events) == 0, "cannot start a thread");
    pin(1);
    for (long got = 0; got < events;) {
        if (read_one(set.fd)) {
            got++;
        } else {
            poll(&set, 1, -1);
        }
    }
    double took = now_ns(CLOCK_MONOTONIC) - start;
    pthread_join(thread, NULL);
    return took;
}

static int set_with(int descriptor) {
    struct epoll_event event = {.events = EPOLLIN};
    int set = epoll_create1(EPOLL_CLOEXEC);
    must(set >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event) == 0, "no epoll set");
    return set;
}

static void wait_once(int set) {
    struct epoll_event found[16];
    must(epoll_wait(set, found, 16, -1) == 1, "not readable");
}

/* One read for each epoll_wait, on a stream where events wait. */
static double waiting(long events) {
    int stream = connect_to_core();
    int set = set_with(stream);
    double took = 0;
    for (long done = 0; done < events; done += BURST) {
        publish_all(BURST);
        double start = now_ns(CLOCK_THREAD_CPUTIME_ID);
        for (int got = 0; got < BURST; got++) {
            wait_once(set);
            must(read_one(stream), "readable, and nothing there");
        }
        took += now_ns(CLOCK_THREAD_CPUTIME_ID) - start;
    }
    return took;
}

/* epoll_wait alone, on a descriptor that always is readable. */
static double waits(long events) {
    int set = set_with(eventfd(1, EFD_CLOEXEC));
    double start = now_ns(CLOCK_THREAD_CPUTIME_ID);
    for (long done = 0; done < events; done++) wait_once(set);
    return now_ns(CLOCK_THREAD_CPUTIME_ID) - start;
}

/* Publishes without a consumer. */
static double disabled(long events) {
    char tensor[TENSOR_BYTES] = {7};
    double start = now_ns(CLOCK_THREAD_CPUTIME_ID);
    for (long done = 0; done < events; done++) {
        must(publish(tensor) == NRT_CLOSED, "a consumer is connected");
    }
    return now_ns(CLOCK_THREAD_CPUTIME_ID) - start;
}

int main(int count, char **arguments) {
    static const struct {
        const char *name;
        double (*run)(long);
    } TASKS[] = {{"in-turn", in_turn}, {"passing", passing}, {"waiting", waiting},
                 {"waits", waits},     {"disabled", disabled}};
    must(count == 3, "usage: client TASK EVENTS");
    long events = (atol(arguments[2]) + BURST - 1) / BURST * BURST;
    sched_getaffinity(0, sizeof allowed, &allowed);
    pin(0);
    for (size_t task = 0; task < sizeof TASKS / sizeof *TASKS; task++) {
        if (strcmp(TASKS[task].name, arguments[1]) == 0) {
            TASKS[task].run(BURST);
            return printf("%f\n", TASKS[task].run(events) / (double)events) < 0;
        }
    }
    must(0, "no such task");
}
