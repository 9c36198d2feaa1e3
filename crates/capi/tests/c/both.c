/* Uses libtelltale and libtelltale_nrt in one process: both DIRECTORY. Publishes three events, reads
 * one, says so, and waits for the end of its input. */
#include <stdio.h>
#include <stdlib.h>

#include <nrt/ndebug_stream.h>
#include <nrt/nrt.h>
#include <telltale.h>
#include <telltale_debug.h>

#define CHECK(condition)                                                                          \
    do {                                                                                          \
        if (!(condition)) {                                                                       \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);               \
            exit(1);                                                                              \
        }                                                                                         \
    } while (0)

int main(int argc, char **argv) {
    telltale_options_s options;
    telltale_runtime_h runtime = NULL;
    telltale_device_h device = NULL;
    telltale_device_s description = {0};
    description.struct_size = sizeof description;
    CHECK(argc == 2 && telltale_options_init(&options) == 0);
    options.directory = argv[1];
    CHECK(telltale_start(&options, &runtime) == 0);
    CHECK(telltale_device_open(runtime, &description, &device) == 0);

    int stream;
    void *payload;
    ndebug_stream_event_header_t header;
    CHECK(nrt_debug_client_connect(1, &stream) == NRT_SUCCESS);
    for (int number = 0; number < 3; number++)
        CHECK(telltale_debug_publish_tensor(1, "x", 0, "int32", NULL, 0, &number, sizeof number) ==
              NRT_SUCCESS);
    CHECK(nrt_debug_client_read_one_event(stream, &header, &payload) == NRT_SUCCESS);
    free(payload);

    puts("ready");
    fflush(stdout);
    getchar();
    CHECK(telltale_device_close(device) == 0 && telltale_runtime_release(runtime) == 0);
    return 0;
}
