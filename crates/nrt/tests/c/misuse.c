/* Everything that a caller can get wrong: each ends with a status, and touches no other's files. */
#include "check.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void null_pointers_and_cores_that_are_not_there(void) {
    ndebug_stream_event_header_t header;
    uint64_t nine[9] = {0};
    void *payload = &header;
    static const int wrong[] = {-1, 2, 1000, INT_MAX, INT_MIN};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        int none = -2;
        telltale_debug_counts_s counts;
        EXPECT(NRT_INVALID, nrt_debug_client_connect(wrong[i], &none));
        CHECK(none == -1);
        EXPECT(NRT_INVALID, publish(wrong[i], 0));
        EXPECT(NRT_INVALID, telltale_debug_counts(wrong[i], &counts));
        read_refused(NRT_INVALID, wrong[i]);
        nrt_debug_client_connect_close(wrong[i]);
    }
    EXPECT(NRT_INVALID, nrt_debug_client_connect(0, NULL));
    EXPECT(NRT_INVALID, telltale_debug_counts(0, NULL));
    int fd = connected(0);
    OK(publish(0, 5));
    EXPECT(NRT_INVALID, nrt_debug_client_read_one_event(fd, NULL, &payload));
    CHECK(payload == NULL);
    EXPECT(NRT_INVALID, nrt_debug_client_read_one_event(fd, &header, NULL));
    EXPECT(NRT_INVALID, nrt_debug_client_read_one_event(fd, NULL, NULL));
    EXPECT(NRT_INVALID, telltale_debug_publish_tensor(0, NULL, 0, "int8", NULL, 0, NULL, 0));
    EXPECT(NRT_INVALID, telltale_debug_publish_tensor(0, "x", 0, NULL, NULL, 0, NULL, 0));
    EXPECT(NRT_INVALID, telltale_debug_publish_tensor(0, "x", 0, "int8", NULL, 1, NULL, 0));
    EXPECT(NRT_INVALID, telltale_debug_publish_tensor(0, "x", 0, "int8", NULL, 0, NULL, 1));
    EXPECT(NRT_INVALID, telltale_debug_publish_tensor(0, "x", 0, "int8", nine, 9, NULL, 0));
    EXPECT(NRT_INVALID,
           telltale_debug_publish_tensor(0, "x", 0, "int8", NULL, 0, nine, (size_t)PTRDIFF_MAX + 1));
    /* No refused call took the event. */
    CHECK(read_number(fd) == 5);
    nrt_debug_client_connect_close(fd);
}

static void foreign_and_duplicated_descriptors(void) {
    int fd = connected(0), duplicate = dup(fd), file = open("/dev/null", O_RDWR);
    int event = eventfd(3, EFD_NONBLOCK);
    int foreign[] = {duplicate, file, event, 0, 1, 2, 100000};
    OK(publish(0, 1));
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        read_refused(NRT_INVALID, foreign[i]);
        nrt_debug_client_connect_close(foreign[i]);
    }
    CHECK(fcntl(duplicate, F_GETFD) != -1 && fcntl(file, F_GETFD) != -1);
    CHECK(is_readable(duplicate) && read_number(fd) == 1);
    nrt_debug_client_connect_close(fd);
    CHECK(fcntl(fd, F_GETFD) == -1 && !is_readable(duplicate));
    eventfd_t value;
    CHECK(eventfd_read(event, &value) == 0 && value == 3);
    close(duplicate);
    close(file);
    close(event);
}

static void closed_descriptors(void) {
    int fd = connected(0);
    nrt_debug_client_connect_close(fd);
    nrt_debug_client_connect_close(fd);
    read_refused(NRT_INVALID, fd);
    /* With close(2), which is wrong: it ends the connection where it is noticed. */
    fd = connected(0);
    OK(publish(0, 1));
    close(fd);
    read_refused(NRT_INVALID, fd);
    EXPECT(NRT_CLOSED, publish(0, 2));
    fd = connected(0);
    close(fd);
    int again = connected(0);
    CHECK(again == fd);
    OK(publish(0, 3));
    CHECK(read_number(again) == 3);
    nrt_debug_client_connect_close(again);
}

/* A file that gets a stream's number is never read, written or closed. */
static void reused_numbers(void) {
    char text[8];
    for (int how = 0; how < 4; how++) {
        int pipes[2], fd = connected(0);
        CHECK(pipe(pipes) == 0);
        CHECK(write(pipes[1], "foreign", 7) == 7);
        CHECK(dup2(how % 2 ? pipes[1] : pipes[0], fd) == fd);
        /* The stream goes on to ring its own descriptor, not this one. */
        OK(publish(0, 1));
        if (how < 2) read_refused(NRT_INVALID, fd);
        nrt_debug_client_connect_close(fd);
        CHECK(fcntl(fd, F_GETFD) != -1);
        CHECK(read(pipes[0], text, sizeof text) == 7 && memcmp(text, "foreign", 7) == 0);
        close(fd);
        close(pipes[0]);
        close(pipes[1]);
    }
    /* The number becomes that of another core's stream, whose own descriptor takes the lower. */
    int low = dup(0), first = connected(0);
    close(low);
    close(first);
    int second = connected(1);
    CHECK(second == first);
    EXPECT(NRT_CLOSED, publish(0, 1));
    OK(publish(1, 2));
    CHECK(read_number(second) == 2);
    first = connected(0);
    CHECK(dup2(second, first) == first);
    OK(publish(1, 3));
    read_refused(NRT_INVALID, first);
    CHECK(read_number(second) == 3);
    close(first);
    first = connected(0);
    /* Another eventfd under the number is distinguished, too. */
    int event = eventfd(9, EFD_NONBLOCK);
    CHECK(dup2(event, first) == first);
    read_refused(NRT_INVALID, first);
    eventfd_t value;
    CHECK(eventfd_read(first, &value) == 0 && value == 9);
    close(first);
    close(event);
    nrt_debug_client_connect_close(second);
}

/* While events keep coming, a number that became another's is noticed within 64 reads. */
static void reused_while_events_wait(void) {
    ndebug_stream_event_header_t header;
    void *payload;
    int fd = connected(0), reads = 0;
    for (uint32_t number = 0; number < 200; number++) OK(publish(0, number));
    CHECK(read_number(fd) == 0);
    close(fd);
    CHECK(open("/dev/null", O_RDONLY) == fd);
    while (nrt_debug_client_read_one_event(fd, &header, &payload) == NRT_SUCCESS) {
        free(payload);
        reads++;
    }
    CHECK(payload == NULL && reads < 64);
    read_refused(NRT_INVALID, fd);
    close(fd);
}

static void in_a_child(void) {
    int fd = connected(0), status;
    OK(publish(0, 1));
    EXPECT(NRT_CLOSED, publish(1, 1));
    pid_t child = fork();
    if (child == 0) {
        int none = -2;
        uint32_t cores;
        telltale_debug_counts_s counts;
        read_refused(NRT_INVALID, fd);
        EXPECT(NRT_INVALID, nrt_debug_client_connect(1, &none));
        CHECK(none == -1);
        /* Whether the parent had a reader, or was known to have none. */
        EXPECT(NRT_INVALID, publish(0, 2));
        EXPECT(NRT_INVALID, publish(1, 2));
        EXPECT(NRT_INVALID, telltale_debug_counts(0, &counts));
        EXPECT(NRT_INVALID, nrt_get_visible_nc_count(&cores));
        EXPECT(NRT_INVALID, nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""));
        nrt_debug_client_connect_close(fd);
        nrt_close();
        CHECK(fcntl(fd, F_GETFD) != -1);
        exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(is_readable(fd) && read_number(fd) == 1);
    OK(publish(0, 3));
    CHECK(read_number(fd) == 3);
    nrt_debug_client_connect_close(fd);
}

static void *read_what_comes(void *fd) {
    ndebug_stream_event_header_t header;
    void *payload;
    uintptr_t got = 0;
    while (nrt_debug_client_read_one_event(*(int *)fd, &header, &payload) == NRT_SUCCESS) {
        free(payload);
        got++;
    }
    return (void *)got;
}

/* Several threads at one stream, which the document does not promise, get each event once. */
static void threads_at_one_stream(void) {
    pthread_t threads[4];
    int fd = connected(0);
    uintptr_t sum = 0;
    for (uint32_t number = 0; number < 20000; number++) OK(publish(0, number));
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, read_what_comes, &fd) == 0);
    for (int i = 0; i < 4; i++) {
        void *got;
        pthread_join(threads[i], &got);
        sum += (uintptr_t)got;
    }
    CHECK(sum == 20000 && counts(0).waiting == 0);
    nrt_debug_client_connect_close(fd);
}

static int shared_fd;

/* Reads when the thread's own memory of the library may be gone already. */
static void read_at_the_end(void *number) {
    CHECK(read_number(shared_fd) == (uint32_t)(uintptr_t)number);
}

static void *set_key(void *key) {
    CHECK(read_number(shared_fd) == 1);
    CHECK(pthread_setspecific(*(pthread_key_t *)key, (void *)2) == 0);
    return NULL;
}

static void a_thread_that_ends(void) {
    pthread_key_t key;
    pthread_t thread;
    shared_fd = connected(0);
    for (uint32_t number = 1; number <= 2; number++) OK(publish(0, number));
    CHECK(pthread_key_create(&key, read_at_the_end) == 0);
    CHECK(pthread_create(&thread, NULL, set_key, &key) == 0);
    pthread_join(thread, NULL);
    CHECK(counts(0).waiting == 0);
    pthread_key_delete(key);
    nrt_debug_client_connect_close(shared_fd);
}

/* A child that is the first to use the library may. */
static void the_first_user_may_be_a_child(void) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        int fd = connected(0);
        OK(publish(0, 1));
        CHECK(read_number(fd) == 1);
        exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* Without memory or descriptors there is a status, and the next call works. */
static void exhaustion(void) {
    struct rlimit before, tight;
    int fd = connected(0), none = -2;
    size_t large = 192 << 20;
    void *data = calloc(1, large);
    CHECK(data != NULL);
    OK(telltale_debug_publish_tensor(0, "large", 0, "int8", NULL, 0, data, large));
    OK(publish(0, 1));
    /* Over the budget of bytes. */
    EXPECT(NRT_QUEUE_FULL,
           telltale_debug_publish_tensor(0, "large", 0, "int8", NULL, 0, data, large));
    free(data);
    CHECK(getrlimit(RLIMIT_AS, &before) == 0);
    tight = before;
    tight.rlim_cur = 1 << 20;
    CHECK(setrlimit(RLIMIT_AS, &tight) == 0);
    read_refused(NRT_RESOURCE, fd);
    CHECK(setrlimit(RLIMIT_AS, &before) == 0);
    CHECK(counts(0).dropped_memory == 1 && counts(0).dropped_bytes == 1);
    CHECK(read_number(fd) == 1);

    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    tight = before;
    /* Room for none, then for one of the two that a connection takes. */
    for (int room = 0; room < 2; room++) {
        int free_number = dup(0);
        close(free_number);
        tight.rlim_cur = (rlim_t)free_number + (rlim_t)room;
        CHECK(setrlimit(RLIMIT_NOFILE, &tight) == 0);
        EXPECT(NRT_RESOURCE, nrt_debug_client_connect(1, &none));
        CHECK(none == -1);
        CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
    }
    nrt_debug_client_connect_close(connected(1));
    nrt_debug_client_connect_close(fd);
}

int main(void) {
    the_first_user_may_be_a_child();
    null_pointers_and_cores_that_are_not_there();
    foreign_and_duplicated_descriptors();
    closed_descriptors();
    reused_numbers();
    reused_while_events_wait();
    threads_at_one_stream();
    a_thread_that_ends();
    in_a_child();
    exhaustion();
    return 0;
}
