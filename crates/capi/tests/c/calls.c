/* Every function once as meant and once with null, from C. Prints nothing when all is well. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <telltale.h>

#define EXPECT(expected, call)                                                                    \
    do {                                                                                          \
        telltale_status_e status = (call);                                                        \
        if (status != (expected)) {                                                               \
            fprintf(stderr, "line %d: %s gave %d\n", __LINE__, #call, (int)status);               \
            exit(1);                                                                              \
        }                                                                                         \
    } while (0)
#define OK(call) EXPECT(TELLTALE_OK, call)
#define NO_NULL(call) EXPECT(TELLTALE_NULL_ARGUMENT, call)
#define INVALID(call) EXPECT(TELLTALE_INVALID_ARGUMENT, call)

static int problems;

static void on_problem(void *context, const char *text) {
    *(int *)context += strncmp(text, "telltale: ", 10) == 0;
}

static void metrics(telltale_runtime_h runtime) {
    telltale_label_s label = {"queue", "0"};
    telltale_metric_s metric = {sizeof metric, "steps", "Training steps.", NULL, &label, 1};
    telltale_counter_h counter;
    telltale_gauge_h gauge;
    telltale_histogram_h histogram;
    double bounds[] = {1.0, 2.0};

    OK(telltale_counter_register(runtime, &metric, &counter));
    OK(telltale_counter_add(counter, 2));
    OK(telltale_counter_release(counter));
    metric.name = "loss";
    OK(telltale_gauge_register(runtime, &metric, &gauge));
    OK(telltale_gauge_set(gauge, 1.5));
    OK(telltale_gauge_add(gauge, -0.5));
    OK(telltale_gauge_release(gauge));
    metric.name = "latency_seconds";
    OK(telltale_histogram_register(runtime, &metric, bounds, 2, &histogram));
    OK(telltale_histogram_observe(histogram, 1.5));
    OK(telltale_histogram_release(histogram));
    NO_NULL(telltale_histogram_register(runtime, &metric, NULL, 2, &histogram));
    NO_NULL(telltale_counter_register(runtime, NULL, &counter));
    NO_NULL(telltale_counter_register(runtime, &metric, NULL));
    NO_NULL(telltale_counter_add(NULL, 1));
    NO_NULL(telltale_gauge_set(NULL, 1));
    NO_NULL(telltale_histogram_observe(NULL, 1));
    NO_NULL(telltale_counter_release(NULL));
    metric.name = NULL;
    NO_NULL(telltale_counter_register(runtime, &metric, &counter));
    metric.struct_size = 8;
    INVALID(telltale_counter_register(runtime, &metric, &counter));
    /* What cannot be read has no handle, and no garbage in its place. */
    NO_NULL(telltale_counter_add(counter, 1));
    metric.struct_size = sizeof metric;
    metric.name = "steps";
    static char text[5000];
    memset(text, 'x', sizeof text - 1);
    telltale_label_s longest = {"queue", text};
    metric.labels = &longest;
    counter = (telltale_counter_h)text;
    INVALID(telltale_counter_register(runtime, &metric, &counter));
    NO_NULL(telltale_counter_add(counter, 1));
    gauge = (telltale_gauge_h)text;
    metric.label_count = 257;
    INVALID(telltale_gauge_register(runtime, &metric, &gauge));
    NO_NULL(telltale_gauge_set(gauge, 1));
    metric.labels = &label;
    metric.label_count = 1;
    histogram = (telltale_histogram_h)text;
    INVALID(telltale_histogram_register(runtime, &metric, bounds, 4097, &histogram));
    NO_NULL(telltale_histogram_observe(histogram, 1));
    /* What is shown to no reader is refused, and its handle works all the same. */
    static const char *const bad[] = {"no name", "9x", "telltale_own"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        metric.name = bad[i];
        INVALID(telltale_counter_register(runtime, &metric, &counter));
        OK(telltale_counter_add(counter, 1));
        OK(telltale_counter_release(counter));
    }
    static const double falling[] = {2, 1};
    metric.name = "falling";
    INVALID(telltale_histogram_register(runtime, &metric, falling, 2, &histogram));
    OK(telltale_histogram_observe(histogram, 1));
    OK(telltale_histogram_release(histogram));
    metric.name = "one";
    OK(telltale_gauge_register(runtime, &metric, &gauge));
    INVALID(telltale_counter_register(runtime, &metric, &counter));
    OK(telltale_counter_release(counter));
    OK(telltale_gauge_release(gauge));
}

static void recording(telltale_device_h device) {
    OK(telltale_allocate(device, TELLTALE_DRAM, 64, 4096));
    OK(telltale_free(device, TELLTALE_DRAM, 64));
    OK(telltale_allocate_sized(device, TELLTALE_CB, 100));
    OK(telltale_free_sized(device, TELLTALE_CB, 100));
    OK(telltale_allocation_failed(device, TELLTALE_L1));
    OK(telltale_count_operations(device, 3));
    OK(telltale_count_traffic(device, 1, 2));
    OK(telltale_report_ring_buffer(device, 100, 50, 1));
    OK(telltale_report_quota(device, TELLTALE_SPACE_DRAM, 1000));
    OK(telltale_report_throttled(device, 1));
    NO_NULL(telltale_allocate(NULL, TELLTALE_DRAM, 0, 1));
    NO_NULL(telltale_free(NULL, TELLTALE_DRAM, 0));
    NO_NULL(telltale_device_close(NULL));
    INVALID(telltale_allocate(device, (telltale_memory_kind_e)9, 0, 1));
    INVALID(telltale_free_sized(device, (telltale_memory_kind_e)-1, 1));
    INVALID(telltale_report_quota(device, (telltale_memory_space_e)3, 1));
}

int main(int count, char **arguments) {
    telltale_options_s options;
    telltale_device_s description;
    telltale_runtime_h runtime, shared;
    telltale_device_h device;
    const char *names[] = {"matmul", "softmax"};
    telltale_programs_s programs = {sizeof programs, 2, 1, 1, names, 2};
    const char *text;
    uint32_t version[3];

    if (count != 2) {
        return 64;
    }
    OK(telltale_version(&version[0], &version[1], &version[2]));
    NO_NULL(telltale_version(&version[0], NULL, &version[2]));
    OK(telltale_status_text(TELLTALE_INTERNAL, &text));
    INVALID(telltale_status_text((telltale_status_e)77, &text));
    NO_NULL(telltale_options_init(NULL));
    OK(telltale_options_init(&options));
    options.directory = arguments[1];
    options.on_problem = on_problem;
    options.on_problem_context = &problems;
    NO_NULL(telltale_start(&options, NULL));
    OK(telltale_start(&options, &runtime));
    OK(telltale_global(&shared));
    OK(telltale_runtime_release(shared));
    NO_NULL(telltale_runtime_release(NULL));

    memset(&description, 0, sizeof description);
    INVALID(telltale_device_open(runtime, &description, &device));
    description.struct_size = sizeof description;
    NO_NULL(telltale_device_open(NULL, &description, &device));
    NO_NULL(telltale_device_open(runtime, NULL, &device));
    NO_NULL(telltale_device_open(runtime, &description, NULL));
    description.known = TELLTALE_KNOWN_GALAXY;
    INVALID(telltale_device_open(runtime, &description, &device));
    description.galaxy_tray = 1;
    description.galaxy_nibble = 8;
    OK(telltale_device_open(runtime, &description, &device));
    recording(device);
    OK(telltale_report_programs(runtime, &programs));
    NO_NULL(telltale_report_programs(runtime, NULL));
    OK(telltale_report_kernel_cache(runtime, 1, 2));
    metrics(runtime);
    OK(telltale_device_close(device));
    OK(telltale_runtime_release(runtime));
    /* One for each metric that is shown to no reader. */
    if (problems != 5) {
        fprintf(stderr, "%d problems\n", problems);
        return 1;
    }
    return 0;
}
