/* A program that opens the devices that its arguments describe, the first argument being the runtime
 * directory: "asic=0x251732099,board=0x0100014511732099,location=1,remote=1", or "" where the program
 * knows its own number of it alone. Device N gets 2^N MiB of DRAM, or what "bytes" says, and counts
 * N + 1 operations; each of 100 waits of half a second is observed. Ends with its standard input. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <telltale.h>

static int describe(char *text, telltale_device_s *device, uint64_t *bytes) {
    for (char *one = strtok(text, ","); one; one = strtok(NULL, ",")) {
        char *sign = strchr(one, '=');
        if (!sign)
            return 1;
        *sign = 0;
        uint64_t value = strtoull(sign + 1, NULL, 0);
        if (!strcmp(one, "asic")) {
            device->asic_id = value;
            device->known |= TELLTALE_KNOWN_ASIC_ID;
        } else if (!strcmp(one, "board")) {
            device->board_id = value;
            device->known |= TELLTALE_KNOWN_BOARD_ID;
        } else if (!strcmp(one, "ordinal")) {
            device->driver_ordinal = (uint32_t)value;
            device->known |= TELLTALE_KNOWN_DRIVER_ORDINAL;
        } else if (!strcmp(one, "bus")) {
            device->pci_bus = (uint8_t)value;
            device->known |= TELLTALE_KNOWN_PCI;
        } else if (!strcmp(one, "location")) {
            device->location = (uint8_t)value;
        } else if (!strcmp(one, "remote")) {
            device->remote = (uint8_t)value;
        } else if (!strcmp(one, "bytes")) {
            *bytes = value;
        } else {
            return 1;
        }
    }
    return 0;
}

int main(int count, char **arguments) {
    telltale_options_s options;
    telltale_options_init(&options);
    options.directory = arguments[1];
    telltale_runtime_h runtime;
    if (telltale_start(&options, &runtime))
        return 1;
    for (int number = 0; number + 2 < count; number++) {
        telltale_device_s device;
        memset(&device, 0, sizeof device);
        device.struct_size = sizeof device;
        device.logical_id = (uint32_t)number;
        uint64_t bytes = (uint64_t)1 << (20 + number);
        telltale_device_h opened;
        if (describe(arguments[number + 2], &device, &bytes)
            || telltale_device_open(runtime, &device, &opened)
            || telltale_allocate(opened, TELLTALE_DRAM, 0x1000, bytes)
            || telltale_count_operations(opened, (uint64_t)number + 1))
            return 2;
    }
    telltale_metric_s metric = {sizeof metric, "wait_seconds", NULL, NULL, NULL, 0};
    double bounds[] = {1.0};
    telltale_histogram_h waits;
    if (telltale_histogram_register(runtime, &metric, bounds, 1, &waits))
        return 3;
    for (int wait = 0; wait < 100; wait++)
        telltale_histogram_observe(waits, 0.5);
    puts("recording");
    fflush(stdout);
    getchar();
    return 0;
}
