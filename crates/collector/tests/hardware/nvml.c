/* A library that stands in for NVIDIA's libnvidia-ml.so.1 in tests.
 *
 * Its GPUs are files below the directory it lies in: `count` has their number, `gpuN/NAME` one value,
 * `gpuN/mig/NAME` and `gpuN/migM/NAME` those of instances. A file that is not there is a call that is
 * not supported; a link to `errno:NAME` one that fails; text that begins with `!` names NVML's error;
 * a FIFO hangs its caller. Structures and codes are those of NVML's public documentation. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6,
       INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9, TIMEOUT = 10, GPU_IS_LOST = 15,
       RESET_REQUIRED = 16, LIB_RM_VERSION_MISMATCH = 18, IN_USE = 19, NO_DATA = 21, UNKNOWN = 999 };

typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; } pci_info;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory_info;
typedef struct { unsigned gpu, memory; } utilization;
typedef struct { unsigned version, fan, speed; } fan_speed;
typedef struct { unsigned pid; unsigned long long used; unsigned gpu_instance, compute_instance; } process;
typedef union { double d; unsigned ui; unsigned long long ull; } value;
typedef struct { unsigned field, scope; long long timestamp, latency; int type, code; value value; } field_value;

static const struct { const char *name; int code; } ERRORS[] = {
    {"EIO", UNKNOWN}, {"EACCES", NO_PERMISSION}, {"ENODEV", GPU_IS_LOST}, {"EAGAIN", IN_USE},
    {"NOT_SUPPORTED", NOT_SUPPORTED}, {"INVALID_ARGUMENT", INVALID_ARGUMENT}, {"NO_PERMISSION", NO_PERMISSION}, {"NOT_FOUND", NOT_FOUND},
    {"DRIVER_NOT_LOADED", DRIVER_NOT_LOADED}, {"TIMEOUT", TIMEOUT}, {"GPU_IS_LOST", GPU_IS_LOST},
    {"RESET_REQUIRED", RESET_REQUIRED}, {"NO_DATA", NO_DATA},
    {"LIB_RM_VERSION_MISMATCH", LIB_RM_VERSION_MISMATCH},
};

static int named(const char *name) {
    for (size_t i = 0; i < sizeof ERRORS / sizeof *ERRORS; i++)
        if (strncmp(name, ERRORS[i].name, strlen(ERRORS[i].name)) == 0) return ERRORS[i].code;
    return UNKNOWN;
}

/* The directory that this library was loaded from. */
static int place(char *path, size_t size) {
    Dl_info info;
    if (!dladdr((void *)place, &info)) return UNKNOWN;
    snprintf(path, size, "%s", info.dli_fname);
    char *slash = strrchr(path, '/');
    if (!slash) return UNKNOWN;
    *slash = 0;
    return SUCCESS;
}

/* A handle is 1 + GPU, or that and 1000 * (1 + instance). */
static int text_of(uintptr_t handle, const char *name, char *text, size_t size) {
    char directory[PATH_MAX], path[PATH_MAX + 128], link[64];
    if (place(directory, sizeof directory)) return UNKNOWN;
    if (handle == 0) snprintf(path, sizeof path, "%s/%s", directory, name);
    else if (handle < 1000)
        snprintf(path, sizeof path, "%s/gpu%u/%s", directory, (unsigned)handle - 1, name);
    else
        snprintf(path, sizeof path, "%s/gpu%u/mig%u/%s", directory, (unsigned)(handle % 1000) - 1,
                 (unsigned)(handle / 1000) - 1, name);
    ssize_t length = readlink(path, link, sizeof link - 1);
    if (length > 6 && strncmp(link, "errno:", 6) == 0) {
        link[length] = 0;
        return named(link + 6);
    }
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return NOT_SUPPORTED;
    length = read(file, text, size - 1);
    close(file);
    if (length <= 0) return UNKNOWN;
    text[length] = 0;
    if (text[0] == '!') return named(text + 1);
    return SUCCESS;
}

static int number_of(uintptr_t handle, const char *name, unsigned long long *number) {
    char text[8192], *end;
    int code = text_of(handle, name, text, sizeof text);
    if (code) return code;
    *number = strtoull(text, &end, 10);
    return end == text ? UNKNOWN : SUCCESS;
}

static int whole(uintptr_t handle, const char *name, unsigned *number) {
    unsigned long long value = 0;
    int code = number_of(handle, name, &value);
    *number = (unsigned)value;
    return code;
}

static int line_of(uintptr_t handle, const char *name, char *text, unsigned size) {
    int code = text_of(handle, name, text, size);
    if (code == SUCCESS) text[strcspn(text, "\n")] = 0;
    return code;
}

int nvmlInit_v2(void) {
    unsigned ignored;
    int code = whole(0, "init", &ignored);
    return code == NOT_SUPPORTED ? SUCCESS : code;
}
int nvmlShutdown(void) { return SUCCESS; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) {
    return line_of(0, "driver_version", text, size);
}
int nvmlDeviceGetCount_v2(unsigned *count) { return whole(0, "count", count); }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, uintptr_t *handle) {
    char text[64];
    if (index >= 900) return INVALID_ARGUMENT;
    *handle = index + 1;
    int code = text_of(*handle, "handle", text, sizeof text);
    return code == NOT_SUPPORTED ? INVALID_ARGUMENT : code;
}

int nvmlDeviceGetPciInfo_v3(uintptr_t handle, pci_info *info) {
    return line_of(handle, "pci", info->bus_id, sizeof info->bus_id);
}
int nvmlDeviceGetName(uintptr_t handle, char *text, unsigned size) {
    return line_of(handle, "name", text, size);
}
int nvmlDeviceGetUUID(uintptr_t handle, char *text, unsigned size) {
    return line_of(handle, "uuid", text, size);
}
int nvmlDeviceGetSerial(uintptr_t handle, char *text, unsigned size) {
    return line_of(handle, "serial", text, size);
}
int nvmlDeviceGetVbiosVersion(uintptr_t handle, char *text, unsigned size) {
    return line_of(handle, "vbios", text, size);
}

/* `used total`, in bytes. */
int nvmlDeviceGetMemoryInfo_v2(uintptr_t handle, memory_info *info) {
    char text[8192];
    if (info->version != (sizeof *info | 2u << 24)) return INVALID_ARGUMENT;
    int code = text_of(handle, "memory", text, sizeof text);
    if (code) return code;
    if (sscanf(text, "%llu %llu", &info->used, &info->total) < 1) return UNKNOWN;
    info->reserved = 0;
    info->free = info->total - info->used;
    return SUCCESS;
}

/* `gpu memory`, in percent. */
int nvmlDeviceGetUtilizationRates(uintptr_t handle, utilization *rates) {
    char text[8192];
    int code = text_of(handle, "utilization", text, sizeof text);
    if (code) return code;
    return sscanf(text, "%u %u", &rates->gpu, &rates->memory) == 2 ? SUCCESS : UNKNOWN;
}

int nvmlDeviceGetTemperature(uintptr_t handle, int sensor, unsigned *celsius) {
    return sensor == 0 ? whole(handle, "temperature", celsius) : INVALID_ARGUMENT;
}
int nvmlDeviceGetTemperatureThreshold(uintptr_t handle, int which, unsigned *celsius) {
    return which == 1 ? whole(handle, "slowdown", celsius)
         : which == 3 ? whole(handle, "gpu_max", celsius) : INVALID_ARGUMENT;
}
int nvmlDeviceGetPowerUsage(uintptr_t handle, unsigned *milliwatts) {
    return whole(handle, "power", milliwatts);
}
int nvmlDeviceGetEnforcedPowerLimit(uintptr_t handle, unsigned *milliwatts) {
    return whole(handle, "power_limit", milliwatts);
}
int nvmlDeviceGetClockInfo(uintptr_t handle, int which, unsigned *megahertz) {
    return which == 1 ? whole(handle, "sm_clock", megahertz)
         : which == 2 ? whole(handle, "memory_clock", megahertz) : INVALID_ARGUMENT;
}
int nvmlDeviceGetFanSpeedRPM(uintptr_t handle, fan_speed *fan) {
    return fan->fan == 0 ? whole(handle, "fan", &fan->speed) : INVALID_ARGUMENT;
}
int nvmlDeviceGetFanSpeed_v2(uintptr_t handle, unsigned fan, unsigned *percent) {
    return fan == 0 ? whole(handle, "fan_percent", percent) : INVALID_ARGUMENT;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(uintptr_t handle, unsigned long long *reasons) {
    return number_of(handle, "throttled_by", reasons);
}

int nvmlDeviceGetTotalEccErrors(uintptr_t handle, int kind, int counter, unsigned long long *count) {
    if (counter != 0) return INVALID_ARGUMENT;
    return number_of(handle, kind == 0 ? "corrected" : "uncorrected", count);
}

/* `bytes`, or `bytes type` where NVML's type of the value is not 64 bits without a sign. Without files
 * it is the library of a driver before R550, which knows neither field. */
static int counter_of(uintptr_t handle, const char *name, field_value *field) {
    char text[8192];
    unsigned long long bytes;
    int code = text_of(handle, name, text, sizeof text);
    if (code) return code;
    field->type = 3;
    if (sscanf(text, "%llu %d", &bytes, &field->type) < 1) return UNKNOWN;
    memset(&field->value, 0xA5, sizeof field->value);
    switch (field->type) {
    case 0: field->value.d = (double)bytes; break;
    case 1: field->value.ui = (unsigned)bytes; break;
    default: field->value.ull = bytes;
    }
    return SUCCESS;
}
int nvmlDeviceGetFieldValues(uintptr_t handle, int count, field_value *fields) {
    char text[64];
    int code = text_of(handle, "fields", text, sizeof text);
    if (code && code != NOT_SUPPORTED) return code;
    for (int i = 0; i < count; i++)
        fields[i].code = fields[i].field == 197 ? counter_of(handle, "pcie_tx", &fields[i])
                       : fields[i].field == 198 ? counter_of(handle, "pcie_rx", &fields[i])
                                                : INVALID_ARGUMENT;
    return SUCCESS;
}

/* Lines of `pid bytes`, or `pid bytes instance`. */
static int processes_of(uintptr_t handle, const char *name, unsigned *count, process *list) {
    char text[8192], *line, *rest = text;
    int code = text_of(handle, name, text, sizeof text);
    if (code) return code;
    unsigned room = list ? *count : 0, found = 0;
    while ((line = strsep(&rest, "\n"))) {
        process one = {0, 0, 0xFFFFFFFF, 0xFFFFFFFF};
        if (sscanf(line, "%u %llu %u", &one.pid, &one.used, &one.gpu_instance) < 2) continue;
        if (found < room) list[found] = one;
        found++;
    }
    *count = found;
    return found > room ? INSUFFICIENT_SIZE : SUCCESS;
}
int nvmlDeviceGetComputeRunningProcesses_v3(uintptr_t handle, unsigned *count, process *list) {
    return processes_of(handle, "compute", count, list);
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(uintptr_t handle, unsigned *count, process *list) {
    return processes_of(handle, "graphics", count, list);
}
int nvmlDeviceGetMPSComputeRunningProcesses_v3(uintptr_t handle, unsigned *count, process *list) {
    return processes_of(handle, "mps", count, list);
}

int nvmlDeviceGetMigMode(uintptr_t handle, unsigned *current, unsigned *pending) {
    int code = whole(handle, "mig_mode", current);
    *pending = *current;
    return code;
}
int nvmlDeviceGetMaxMigDeviceCount(uintptr_t handle, unsigned *count) {
    return whole(handle, "mig_most", count);
}
int nvmlDeviceGetMigDeviceHandleByIndex(uintptr_t handle, unsigned index, uintptr_t *instance) {
    char text[64];
    *instance = handle + 1000 * (index + 1);
    int code = text_of(*instance, "instance", text, sizeof text);
    return code == NOT_SUPPORTED ? NOT_FOUND : code;
}
int nvmlDeviceGetGpuInstanceId(uintptr_t handle, unsigned *id) {
    return whole(handle, "instance", id);
}
