/* A client of the allocation server, in the form of FORM bytes. Reads lines from standard input:
 * a type, a device, a size, a buffer type and a buffer, in decimal, of one message each. Prints
 * "sent" for it, or the fields of the answer. At the end of its input it hangs up. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "message.h"

static int connected(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
    strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
    if (descriptor < 0 || connect(descriptor, (struct sockaddr *)&address, sizeof(address)) != 0)
        return -1;
    return descriptor;
}

static void print(const struct message *answer)
{
    printf("type %d device %d dram %llu l1 %llu l1_small %llu trace %llu", answer->type,
           answer->device_id, (unsigned long long)answer->dram_allocated,
           (unsigned long long)answer->l1_allocated,
           (unsigned long long)answer->l1_small_allocated,
           (unsigned long long)answer->trace_allocated);
#if FORM >= 128
    printf(" cb %llu kernel %llu", (unsigned long long)answer->cb_allocated,
           (unsigned long long)answer->kernel_allocated);
#endif
    printf(" total %llu arch %u channels %u available %u devices %u\n",
           (unsigned long long)answer->total_dram_size, answer->arch_type,
           answer->num_dram_channels, answer->is_available, answer->num_devices);
}

int main(int count, char **arguments)
{
    unsigned type, buffer_type;
    int device, descriptor = count == 2 ? connected(arguments[1]) : -1;
    unsigned long long size, buffer;
    if (descriptor < 0)
        return 1;
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (scanf("%u %d %llu %u %llu", &type, &device, &size, &buffer_type, &buffer) == 5) {
        struct message message;
        memset(&message, 0, sizeof(message));
        message.type = (uint8_t)type;
        message.device_id = device;
        message.size = size;
        message.buffer_type = (uint8_t)buffer_type;
        message.process_id = getpid();
        message.buffer_id = buffer;
        if (send(descriptor, &message, sizeof(message), MSG_NOSIGNAL) != sizeof(message))
            return 2;
        if (type != 3 && type != 6) {
            printf("sent\n");
            continue;
        }
        if (recv(descriptor, &message, sizeof(message), MSG_WAITALL) != sizeof(message))
            return 3;
        print(&message);
    }
    return 0;
}
