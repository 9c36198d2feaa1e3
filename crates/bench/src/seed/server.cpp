// The seed's per-process metrics server: one thread, one query per connection.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "protocol.hpp"

namespace seed {
namespace {

class ProcessMetricsServer {
public:
    explicit ProcessMetricsServer(const std::string& directory, uint64_t base)
        : path_(directory + "/metrics_" + std::to_string(getpid()) + ".sock") {
        for (int device = 0; device < kDevices; ++device) dram_[device] = base + device;
    }

    ~ProcessMetricsServer() {
        stopping_ = true;
        // Wakes the blocked accept(), which then fails.
        if (listener_ >= 0) shutdown(listener_, SHUT_RDWR);
        if (thread_.joinable()) thread_.join();
        if (listener_ >= 0) {
            close(listener_);
            unlink(path_.c_str());
        }
    }

    bool start() {
        unlink(path_.c_str());
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0) return false;
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        strncpy(address.sun_path, path_.c_str(), sizeof(address.sun_path) - 1);
        if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) < 0 ||
            chmod(path_.c_str(), 0600) < 0 || listen(fd, 5) < 0) {
            close(fd);
            return false;
        }
        listener_ = fd;
        thread_ = std::thread([this] { handle_clients(); });
        return true;
    }

private:
    void handle_clients() {
        while (!stopping_) {
            int client = accept(listener_, nullptr, nullptr);
            if (client >= 0) handle_client(client);
        }
    }

    void handle_client(int client) {
        ucred credentials{};
        socklen_t length = sizeof credentials;
        getsockopt(client, SOL_SOCKET, SO_PEERCRED, &credentials, &length);
        if (credentials.uid == 0 || credentials.uid == getuid()) {
            MetricsQuery query{};
            if (recv(client, &query, sizeof query, 0) == static_cast<ssize_t>(sizeof query)) {
                MetricsResponse response = collect_metrics(query);
                send(client, &response, sizeof response, MSG_NOSIGNAL);
            }
        }
        close(client);
    }

    MetricsResponse collect_metrics(const MetricsQuery& query) {
        MetricsResponse response{};
        if (query.type == kMemory || query.type == kAll) {
            for (int device = 0; device < kDevices; ++device) {
                if (query.device_id != -1 && query.device_id != device) continue;
                response.dram_allocated += dram_[device].load();
            }
        }
        if (query.type == kUptime || query.type == kAll) {
            response.uptime_seconds = std::chrono::duration_cast<std::chrono::seconds>(
                                          std::chrono::steady_clock::now() - started_)
                                          .count();
        }
        return response;
    }

    std::string path_;
    int listener_ = -1;
    std::thread thread_;
    std::atomic<bool> stopping_{false};
    std::array<std::atomic<uint64_t>, kDevices> dram_{};
    std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

}  // namespace
}  // namespace seed

extern "C" {

// Serves `base + device` bytes of DRAM for each device. Null when the socket cannot be bound.
void* seed_server_start(const char* directory, uint64_t base) {
    auto* server = new seed::ProcessMetricsServer(directory, base);
    if (server->start()) return server;
    delete server;
    return nullptr;
}

void seed_server_stop(void* server) { delete static_cast<seed::ProcessMetricsServer*>(server); }

}  // extern "C"
