// A consumer as programs for Neuron are written: every visible core in one epoll set, one event for
// each that is ready, on a thread of its own. Prints what it gets.
//
//   consumer EVENTS    events that are published for each core
#include <sys/epoll.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include <nrt/ndebug_stream.h>
#include <nrt/nrt.h>
#include <telltale_debug.h>

static bool failed(NRT_STATUS status, const char *what) {
    if (status == NRT_SUCCESS) return false;
    std::fprintf(stderr, "%s: %s\n", what, nrt_get_status_as_str(status));
    return true;
}

int main(int argc, char **argv) {
    const unsigned events = argc == 2 ? std::atoi(argv[1]) : 0;
    uint32_t cores = 0;
    if (failed(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), "init")) return 1;
    if (failed(nrt_get_visible_nc_count(&cores), "cores")) return 1;
    const int set = epoll_create1(EPOLL_CLOEXEC);
    std::map<int, uint32_t> seen;
    for (uint32_t core = 0; core < cores; core++) {
        int fd = -1;
        if (failed(nrt_debug_client_connect(static_cast<int>(core), &fd), "connect")) return 1;
        epoll_event interest{};
        interest.events = EPOLLIN;
        interest.data.fd = fd;
        if (epoll_ctl(set, EPOLL_CTL_ADD, fd, &interest) != 0) return 1;
        seen[fd] = 0;
    }
    std::thread publisher([=] {
        for (uint32_t number = 0; number < events; number++) {
            for (uint32_t core = 0; core < cores; core++) {
                telltale_debug_publish_tensor(static_cast<int>(core), "step", 0, "uint32", nullptr,
                                              0, &number, sizeof number);
            }
        }
    });
    for (uint32_t left = events * cores; left > 0;) {
        epoll_event ready[16];
        const int found = epoll_wait(set, ready, 16, 60000);
        if (found <= 0) return 1;
        for (int i = 0; i < found; i++) {
            ndebug_stream_event_header_t header;
            void *payload = nullptr;
            const int fd = ready[i].data.fd;
            const NRT_STATUS status = nrt_debug_client_read_one_event(fd, &header, &payload);
            if (failed(status, "read")) return 1;
            std::unique_ptr<void, decltype(&std::free)> owned(payload, &std::free);
            auto *tensor = static_cast<ndebug_stream_payload_debug_tensor_read_t *>(payload);
            uint32_t number;
            __builtin_memcpy(&number, tensor->tensor_data, sizeof number);
            if (std::string(tensor->prefix) != "step" || number != seen[fd]++) return 1;
            left--;
        }
    }
    publisher.join();
    for (const auto &[fd, count] : seen) {
        std::printf("%u\n", count);
        nrt_debug_client_connect_close(fd);
    }
    close(set);
    nrt_close();
    return 0;
}
