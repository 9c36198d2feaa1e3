// The seed's collector: for each device, read the driver's pid list, then check and query every
// process in turn over a new connection.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "protocol.hpp"

namespace seed {
namespace {

std::vector<pid_t> read_kmd_pids(const std::string& driver, int device_id) {
    std::vector<pid_t> pids;
    std::ifstream file(driver + "/" + std::to_string(device_id) + "/pids");
    std::string line;
    while (std::getline(file, line)) {
        if (!line.empty()) pids.push_back(static_cast<pid_t>(std::strtol(line.c_str(), nullptr, 10)));
    }
    return pids;
}

bool verify_socket_ownership(const std::string& socket_path, pid_t pid) {
    struct stat process {};
    if (stat(("/proc/" + std::to_string(pid)).c_str(), &process) < 0) return false;
    struct stat socket {};
    if (stat(socket_path.c_str(), &socket) < 0) return false;
    return socket.st_uid == process.st_uid;
}

bool query_process_socket(const std::string& socket_path, int device_id, MetricsResponse* response) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return false;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    strncpy(address.sun_path, socket_path.c_str(), sizeof(address.sun_path) - 1);
    MetricsQuery query{};
    query.type = kMemory;
    query.device_id = device_id;
    bool answered = connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
                    send(fd, &query, sizeof query, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof query) &&
                    recv(fd, response, sizeof *response, 0) == static_cast<ssize_t>(sizeof *response);
    close(fd);
    return answered;
}

}  // namespace
}  // namespace seed

// One sweep of `devices` devices. Adds to `dram[device]`; returns how many queries were answered.
extern "C" uint64_t seed_collect(const char* driver, const char* directory, uint32_t devices, uint64_t* dram) {
    uint64_t answered = 0;
    for (uint32_t device = 0; device < devices; ++device) {
        for (pid_t pid : seed::read_kmd_pids(driver, static_cast<int>(device))) {
            std::string path = std::string(directory) + "/metrics_" + std::to_string(pid) + ".sock";
            if (access(path.c_str(), F_OK) != 0 || !seed::verify_socket_ownership(path, pid)) continue;
            seed::MetricsResponse response{};
            if (!seed::query_process_socket(path, static_cast<int>(device), &response)) continue;
            dram[device] += response.dram_allocated;
            ++answered;
        }
    }
    return answered;
}
