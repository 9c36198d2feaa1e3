/* What the programs of this directory have in common: checks that end the program, and shortcuts. */
#ifndef CHECK_H
#define CHECK_H

#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nrt/ndebug_stream.h>
#include <nrt/nrt.h>
#include <telltale_debug.h>

#define CHECK(condition)                                                                          \
    do {                                                                                          \
        if (!(condition)) {                                                                       \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);               \
            exit(1);                                                                              \
        }                                                                                         \
    } while (0)

#define EXPECT(expected, call)                                                                    \
    do {                                                                                          \
        NRT_STATUS status = (call);                                                               \
        if (status != (expected)) {                                                               \
            fprintf(stderr, "%s:%d: %s gave %s\n", __FILE__, __LINE__, #call,                     \
                    nrt_get_status_as_str(status));                                               \
            exit(1);                                                                              \
        }                                                                                         \
    } while (0)

#define OK(call) EXPECT(NRT_SUCCESS, call)

typedef ndebug_stream_payload_debug_tensor_read_t tensor_t;

static inline int is_readable(int fd) {
    struct pollfd one = {fd, POLLIN, 0};
    return poll(&one, 1, 0) == 1;
}

/* Publishes a tensor with one element that numbers it. */
static inline NRT_STATUS publish(int core, uint32_t number) {
    uint64_t one = 1;
    return telltale_debug_publish_tensor(core, "number", 0, "uint32", &one, 1, &number,
                                         sizeof number);
}

/* Reads an event of `publish`. */
static inline uint32_t read_number(int fd) {
    ndebug_stream_event_header_t header;
    void *payload = NULL;
    uint32_t number;
    OK(nrt_debug_client_read_one_event(fd, &header, &payload));
    CHECK(((tensor_t *)payload)->tensor_data_size == sizeof number);
    memcpy(&number, ((tensor_t *)payload)->tensor_data, sizeof number);
    free(payload);
    return number;
}

/* Reads and wants this error; checks what stands beside an error. */
static inline void read_refused(NRT_STATUS expected, int fd) {
    static const char zeros[sizeof(ndebug_stream_event_header_t)];
    ndebug_stream_event_header_t header;
    void *payload = &header;
    memset(&header, 0xff, sizeof header);
    EXPECT(expected, nrt_debug_client_read_one_event(fd, &header, &payload));
    CHECK(payload == NULL && memcmp(&header, zeros, sizeof header) == 0);
}

static inline int connected(int core) {
    int fd = -2;
    OK(nrt_debug_client_connect(core, &fd));
    CHECK(fd >= 0);
    return fd;
}

static inline telltale_debug_counts_s counts(int core) {
    telltale_debug_counts_s found;
    OK(telltale_debug_counts(core, &found));
    CHECK(found.produced == found.delivered + found.waiting + found.unread +
                                found.dropped_events + found.dropped_bytes + found.dropped_memory);
    return found;
}

#endif
