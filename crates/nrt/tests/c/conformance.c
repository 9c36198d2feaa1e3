/*
 * The sentences of the published document, above all its notes, each as a check.
 *
 *   conformance EVENTS    events that a stream is to hold; two cores are needed
 */
#include "check.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

/* Connect, poll, consume, close; the header says what the payload is. */
static void an_event_is_a_header_and_a_payload(void) {
    static const char zeros[512];
    float data[6] = {1, 2, 3, 4, 5, 6};
    uint64_t shape[2] = {2, 3};
    ndebug_stream_event_header_t header;
    void *payload;
    int fd = connected(1);
    CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    OK(telltale_debug_publish_tensor(1, "loss", 1, "float32", shape, 2, data, sizeof data));
    memset(&header, 0xff, sizeof header);
    OK(nrt_debug_client_read_one_event(fd, &header, &payload));
    CHECK(header.type == NDEBUG_STREAM_EVENT_TYPE_DEBUG_TENSOR_READ);
    CHECK(header.data_size == sizeof(tensor_t) + sizeof data);
    CHECK(memcmp(header.reserved, zeros, sizeof header.reserved) == 0);
    tensor_t *tensor = payload;
    CHECK(strcmp(tensor->prefix, "loss") == 0 && tensor->prefix[511] == 0);
    CHECK(memcmp(tensor->prefix + 5, zeros, 507) == 0);
    CHECK(tensor->logical_nc_id == 1 && tensor->pipe == 1);
    CHECK(strcmp(tensor->tensor_dtype, "float32") == 0);
    CHECK(memcmp(tensor->tensor_dtype + 8, zeros, 8) == 0);
    CHECK(tensor->tensor_shape[0] == 2 && tensor->tensor_shape[1] == 3);
    CHECK(memcmp(tensor->tensor_shape + 2, zeros, 48) == 0);
    CHECK(tensor->tensor_data_size == sizeof data);
    CHECK(memcmp(tensor->reserved0, zeros, sizeof tensor->reserved0) == 0);
    CHECK(memcmp(tensor->tensor_data, data, sizeof data) == 0);
    CHECK((uintptr_t)tensor->tensor_data % 16 == 0);
    free(payload);
    nrt_debug_client_connect_close(fd);
}

/* Long texts are cut, and end with a zero all the same; a scalar and an empty tensor exist. */
static void the_largest_and_the_smallest_event_fit(void) {
    ndebug_stream_event_header_t header;
    void *payload;
    char prefix[2000];
    uint64_t shape[8] = {1, 2, 3, 4, 5, 6, 7, 1ull << 63};
    int fd = connected(0);
    memset(prefix, 'x', sizeof prefix);
    prefix[1999] = 0;
    OK(telltale_debug_publish_tensor(0, prefix, 0, prefix, shape, 8, NULL, 0));
    OK(nrt_debug_client_read_one_event(fd, &header, &payload));
    tensor_t *tensor = payload;
    CHECK(strlen(tensor->prefix) == 511 && strlen(tensor->tensor_dtype) == 15);
    CHECK(memcmp(tensor->tensor_shape, shape, sizeof shape) == 0);
    CHECK(header.data_size == sizeof(tensor_t) && tensor->tensor_data_size == 0);
    free(payload);

    size_t large = 3 << 20;
    char *data = malloc(large);
    for (size_t i = 0; i < large; i++) data[i] = (char)(i * 7 >> 3);
    OK(telltale_debug_publish_tensor(0, "", 0, "float4e2m1fn_x4", NULL, 0, data, large));
    OK(nrt_debug_client_read_one_event(fd, &header, &payload));
    tensor = payload;
    CHECK(strcmp(tensor->tensor_dtype, "float4e2m1fn_x4") == 0 && tensor->prefix[0] == 0);
    CHECK(tensor->tensor_shape[0] == 0 && tensor->tensor_data_size == large);
    CHECK(memcmp(tensor->tensor_data, data, large) == 0);
    free(payload);
    free(data);
    nrt_debug_client_connect_close(fd);
}

/* "A standard Linux file descriptor": poll, select and epoll, level- and edge-triggered. */
static void every_way_to_poll_works(void) {
    struct epoll_event level = {EPOLLIN, {0}}, edge = {EPOLLIN | EPOLLET, {0}}, found;
    int fd = connected(0), levels = epoll_create1(0), edges = epoll_create1(0);
    CHECK(epoll_ctl(levels, EPOLL_CTL_ADD, fd, &level) == 0);
    CHECK(epoll_ctl(edges, EPOLL_CTL_ADD, fd, &edge) == 0);
    for (uint32_t round = 0; round < 3; round++) {
        CHECK(!is_readable(fd) && epoll_wait(levels, &found, 1, 0) == 0);
        OK(publish(0, 1));
        CHECK(epoll_wait(edges, &found, 1, 0) == 1 && epoll_wait(edges, &found, 1, 0) == 0);
        OK(publish(0, 2));
        for (uint32_t number = 1; number <= 2; number++) {
            fd_set readable;
            struct timeval at_once = {0, 0};
            FD_ZERO(&readable);
            FD_SET(fd, &readable);
            CHECK(select(fd + 1, &readable, NULL, NULL, &at_once) == 1);
            /* Being readable is a state: asking twice changes nothing. */
            CHECK(is_readable(fd) && is_readable(fd));
            CHECK(epoll_wait(levels, &found, 1, 0) == 1 && epoll_wait(levels, &found, 1, 0) == 1);
            CHECK(read_number(fd) == number);
        }
        CHECK(!is_readable(fd));
        read_refused(NRT_QUEUE_EMPTY, fd);
    }
    close(levels);
    close(edges);
    nrt_debug_client_connect_close(fd);
}

/* Note 1: events go to the process that owns the core, and to no other. */
static void note_1_no_other_process_gets_events(void) {
    int fd = connected(0), status;
    OK(publish(0, 7));
    pid_t child = fork();
    if (child == 0) {
        read_refused(NRT_INVALID, fd);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(read_number(fd) == 7);
    nrt_debug_client_connect_close(fd);
}

#define PASSED 20000

static void *publish_all(void *core) {
    for (uint32_t number = 0; number < PASSED; number++)
        while (publish(*(int *)core, number) == NRT_QUEUE_FULL) sched_yield();
    return NULL;
}

static void *read_all(void *core) {
    pthread_t producer;
    int fd = connected(*(int *)core);
    CHECK(pthread_create(&producer, NULL, publish_all, core) == 0);
    for (uint32_t number = 0; number < PASSED; number++) {
        struct pollfd one = {fd, POLLIN, 0};
        CHECK(poll(&one, 1, 60000) == 1);
        CHECK(read_number(fd) == number);
    }
    pthread_join(producer, NULL);
    nrt_debug_client_connect_close(fd);
    return NULL;
}

/* Note 2: different streams may be used by different threads. */
static void note_2_streams_do_not_disturb_each_other(void) {
    pthread_t threads[2];
    int cores[2] = {0, 1};
    for (int i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], NULL, read_all, &cores[i]) == 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
}

/* Note 3: one connection to a stream at a time; another core's is not concerned. */
static void note_3_only_one_client(void) {
    int fd = connected(0), other = connected(1), second = -2;
    for (int i = 0; i < 3; i++) {
        EXPECT(NRT_INVALID, nrt_debug_client_connect(0, &second));
        CHECK(second == -1);
    }
    OK(publish(0, 1));
    CHECK(read_number(fd) == 1);
    nrt_debug_client_connect_close(fd);
    fd = connected(0);
    nrt_debug_client_connect_close(fd);
    nrt_debug_client_connect_close(other);
}

/* Note 4: what is emitted before connecting is dropped. */
static void note_4_only_events_after_connecting(void) {
    EXPECT(NRT_CLOSED, publish(0, 1));
    int fd = connected(0);
    CHECK(!is_readable(fd));
    read_refused(NRT_QUEUE_EMPTY, fd);
    OK(publish(0, 2));
    CHECK(read_number(fd) == 2);
    OK(publish(0, 3));
    nrt_debug_client_connect_close(fd);
    EXPECT(NRT_CLOSED, publish(0, 4));
    fd = connected(0);
    CHECK(!is_readable(fd));
    nrt_debug_client_connect_close(fd);
}

/* The function behind the header's inline part, as dlsym finds it. */
static NRT_STATUS publish_by_call(int core, uint32_t number) {
    return (telltale_debug_publish_tensor)(core, "number", 0, "uint32", (uint64_t[]){1}, 1, &number,
                                           sizeof number);
}

static void *connect_there(void *fd) {
    OK(nrt_debug_client_connect(0, fd));
    return NULL;
}

/* With or without a call: nothing is published before connecting and after closing, all is between,
 * also when another thread connected, and for each core by itself. */
static void what_is_inline_and_what_is_called_agree(void) {
    for (uint32_t round = 0; round < 100; round++) {
        pthread_t thread;
        int fd = -2;
        EXPECT(NRT_CLOSED, publish(0, 1));
        EXPECT(NRT_CLOSED, publish_by_call(0, 1));
        EXPECT(NRT_INVALID, publish(2, 1));
        EXPECT(NRT_INVALID, publish_by_call(2, 1));
        CHECK(pthread_create(&thread, NULL, connect_there, &fd) == 0);
        pthread_join(thread, NULL);
        OK(publish(0, round));
        OK(publish_by_call(0, round + 1));
        EXPECT(NRT_CLOSED, publish(1, 1));
        EXPECT(NRT_CLOSED, publish_by_call(1, 1));
        CHECK(read_number(fd) == round && read_number(fd) == round + 1);
        read_refused(NRT_QUEUE_EMPTY, fd);
        nrt_debug_client_connect_close(fd);
    }
    CHECK(counts(1).waiting == 0);
}

/* Notes 5 and 6: a stream holds as many events as the variable says; newer ones are dropped. */
static void notes_5_and_6_the_buffer_is_bounded(uint32_t events) {
    int fd = connected(0);
    telltale_debug_counts_s before = counts(0);
    for (uint32_t number = 0; number < events; number++) OK(publish(0, number));
    for (int i = 0; i < 3; i++) EXPECT(NRT_QUEUE_FULL, publish(0, events));
    CHECK(counts(0).dropped_events == before.dropped_events + 3);
    CHECK(counts(0).waiting == events);
    CHECK(read_number(fd) == 0);
    OK(publish(0, events));
    EXPECT(NRT_QUEUE_FULL, publish(0, 0));
    for (uint32_t number = 1; number <= events; number++) {
        CHECK(is_readable(fd));
        CHECK(read_number(fd) == number);
    }
    CHECK(!is_readable(fd));
    read_refused(NRT_QUEUE_EMPTY, fd);
    CHECK(counts(0).dropped_events == before.dropped_events + 4);
    CHECK(counts(0).delivered == before.delivered + events + 1);
    nrt_debug_client_connect_close(fd);
}

/* Note 7: the payload is the caller's: later events and the end of the stream leave it alone. */
static void note_7_the_payload_is_the_callers(void) {
    ndebug_stream_event_header_t header;
    void *payloads[4];
    int fd = connected(0);
    for (uint32_t i = 0; i < 4; i++) {
        OK(publish(0, i));
        OK(nrt_debug_client_read_one_event(fd, &header, &payloads[i]));
    }
    nrt_debug_client_connect_close(fd);
    for (uint32_t i = 0; i < 4; i++) {
        CHECK(memcmp(((tensor_t *)payloads[i])->tensor_data, &i, sizeof i) == 0);
        payloads[i] = realloc(payloads[i], 8192);
        free(payloads[i]);
    }
}

/* What goes before connecting, and what comes after closing. */
static void begin_and_end(void) {
    uint32_t cores = 0;
    OK(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""));
    OK(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, NULL, NULL));
    OK(nrt_get_visible_nc_count(&cores));
    CHECK(cores == 2);
    EXPECT(NRT_INVALID, nrt_get_visible_nc_count(NULL));
    int fd = connected(0), none = -2;
    OK(publish(0, 1));
    nrt_close();
    CHECK(!is_readable(fd));
    read_refused(NRT_CLOSED, fd);
    EXPECT(NRT_CLOSED, publish(0, 1));
    EXPECT(NRT_CLOSED, nrt_debug_client_connect(0, &none));
    CHECK(none == -1);
    nrt_close();
    OK(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""));
    int again = connected(0);
    CHECK(again != fd);
    read_refused(NRT_CLOSED, fd);
    nrt_debug_client_connect_close(fd);
    CHECK(fcntl(fd, F_GETFD) == -1);
    OK(publish(0, 2));
    CHECK(read_number(again) == 2);
    nrt_debug_client_connect_close(again);
}

static void statuses_have_names(void) {
    CHECK(strcmp(nrt_get_status_as_str(NRT_SUCCESS), "NRT_SUCCESS") == 0);
    CHECK(strcmp(nrt_get_status_as_str(NRT_QUEUE_EMPTY), "NRT_QUEUE_EMPTY") == 0);
    for (int number = -2; number < 3000; number++)
        CHECK(strncmp(nrt_get_status_as_str((NRT_STATUS)number), "NRT_", 4) == 0);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    begin_and_end();
    statuses_have_names();
    an_event_is_a_header_and_a_payload();
    the_largest_and_the_smallest_event_fit();
    every_way_to_poll_works();
    note_1_no_other_process_gets_events();
    note_2_streams_do_not_disturb_each_other();
    note_3_only_one_client();
    note_4_only_events_after_connecting();
    what_is_inline_and_what_is_called_agree();
    notes_5_and_6_the_buffer_is_bounded((uint32_t)strtoul(argv[1], NULL, 10));
    note_7_the_payload_is_the_callers();
    return 0;
}
