/* Forks children while a thread records, and lets each child record on its own.
 *
 *   forks DIRECTORY CHILDREN
 *
 * Prints "ready" once all have recorded, and ends when standard input ends. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <telltale.h>
#include <unistd.h>

#define CHECK(condition)                                                                          \
    do {                                                                                          \
        if (!(condition)) {                                                                       \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                               \
            exit(1);                                                                              \
        }                                                                                         \
    } while (0)

static telltale_runtime_h runtime;
static telltale_device_h device;
static telltale_counter_h jobs;
static telltale_gauge_h loss;
static telltale_histogram_h seconds;
static int stop;

static void *churn(void *unused) {
    uint64_t address = 1 << 20;
    (void)unused;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        CHECK(telltale_allocate(device, TELLTALE_DRAM, address, 64) == TELLTALE_OK);
        CHECK(telltale_free(device, TELLTALE_DRAM, address) == TELLTALE_OK);
        address += 64;
    }
    return NULL;
}

static void wait_for_end(int descriptor) {
    char byte;
    while (read(descriptor, &byte, 1) > 0) {
    }
}

static void count_jobs(int times) {
    for (; times > 0; --times) {
        CHECK(telltale_count_operations(device, 3) == TELLTALE_OK);
        CHECK(telltale_count_traffic(device, 100, 10) == TELLTALE_OK);
        CHECK(telltale_counter_add(jobs, 1) == TELLTALE_OK);
        CHECK(telltale_histogram_observe(seconds, 0.5) == TELLTALE_OK);
    }
}

static void count_in_the_parent(void) {
    const double bounds[] = {1.0};
    telltale_metric_s metric = {sizeof metric, "jobs", NULL, NULL, NULL, 0};
    telltale_programs_s programs = {sizeof programs, 2, 10, 2, NULL, 0};
    CHECK(telltale_counter_register(runtime, &metric, &jobs) == TELLTALE_OK);
    metric.name = "loss";
    CHECK(telltale_gauge_register(runtime, &metric, &loss) == TELLTALE_OK);
    CHECK(telltale_gauge_set(loss, 2.5) == TELLTALE_OK);
    metric.name = "job_seconds";
    CHECK(telltale_histogram_register(runtime, &metric, bounds, 1, &seconds) == TELLTALE_OK);
    metric.name = "not a name";
    CHECK(telltale_gauge_register(runtime, &metric, &loss) == TELLTALE_INVALID_ARGUMENT);
    CHECK(telltale_report_programs(runtime, &programs) == TELLTALE_OK);
    CHECK(telltale_report_throttled(device, 1) == TELLTALE_OK);
    count_jobs(1000);
}

static void child(int number, int ready, int go) {
    /* The parent's buffer: the parent's to free. */
    CHECK(telltale_free(device, TELLTALE_DRAM, 0) == TELLTALE_OK);
    CHECK(telltale_allocate(device, TELLTALE_DRAM, 0, 100 * (uint64_t)number + 7) == TELLTALE_OK);
    CHECK(telltale_allocate(device, TELLTALE_L1, 0, 5) == TELLTALE_OK);
    CHECK(telltale_free(device, TELLTALE_L1, 0) == TELLTALE_OK);
    count_jobs(number);
    CHECK(write(ready, "r", 1) == 1);
    wait_for_end(go);
    /* Every second child leaves without closing. */
    if (number % 2 == 0) {
        CHECK(telltale_device_close(device) == TELLTALE_OK);
    }
    exit(0);
}

int main(int count, char **arguments) {
    telltale_options_s options;
    telltale_device_s description;
    pthread_t thread;
    int ready[2], go[2], number, children;
    char byte;

    CHECK(count == 3);
    children = atoi(arguments[2]);
    CHECK(telltale_options_init(&options) == TELLTALE_OK);
    options.directory = arguments[1];
    CHECK(telltale_start(&options, &runtime) == TELLTALE_OK);
    memset(&description, 0, sizeof description);
    description.struct_size = sizeof description;
    CHECK(telltale_device_open(runtime, &description, &device) == TELLTALE_OK);
    CHECK(telltale_allocate(device, TELLTALE_DRAM, 0, 1000) == TELLTALE_OK);
    count_in_the_parent();
    CHECK(pipe(ready) == 0 && pipe(go) == 0);
    CHECK(pthread_create(&thread, NULL, churn, NULL) == 0);
    for (number = 0; number < children; ++number) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            close(go[1]);
            child(number, ready[1], go[0]);
        }
    }
    for (number = 0; number < children; ++number) {
        CHECK(read(ready[0], &byte, 1) == 1);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    CHECK(pthread_join(thread, NULL) == 0);
    puts("ready");
    fflush(stdout);
    wait_for_end(STDIN_FILENO);
    close(go[1]);
    for (number = 0; number < children; ++number) {
        int status;
        CHECK(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    CHECK(telltale_device_close(device) == TELLTALE_OK);
    CHECK(telltale_runtime_release(runtime) == TELLTALE_OK);
    return 0;
}
