// What the kernel and malloc say about processes, where Rust's standard library does not ask them.
#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdint>

extern "C" {

// What malloc has handed out in this process, its own headers included.
uint64_t seed_heap_bytes() {
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

// Waits for a child and gives its raw wait status and its peak resident memory. False on error.
bool seed_wait_with_peak(int pid, int* status, uint64_t* peak_bytes) {
    struct rusage usage {};
    pid_t waited;
    do {
        waited = wait4(pid, status, 0, &usage);
    } while (waited < 0 && errno == EINTR);
    *peak_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
    return waited == pid;
}

}  // extern "C"
