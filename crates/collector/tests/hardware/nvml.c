/* A library that stands in for NVIDIA's libnvidia-ml.so.1 in tests.
 *
 * Its GPUs are files below the directory it lies in: `count` has their number, `gpuN/NAME` one value,
 * `gpuN/mig/NAME` and `gpuN/migM/NAME` those of instances. A file that is not there is a call that is
 * not supported; a link to `errno:NAME` one that fails; text that begins with `!` names NVML's error;
 * a FIFO hangs its caller. Structures and codes are those of NVML's public documentation. Compiled with
 * `OLD` it is the library of a driver that lacks what came later. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CORRECTED = 0, VOLATILE = 0, SRAM = 7, ALL_LINKS = -1, XID_ERROR = 8 };
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
/* As pynvml starts it. */
int nvmlInitWithFlags(unsigned flags) { return flags ? INVALID_ARGUMENT : nvmlInit_v2(); }
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
    if (counter == VOLATILE) return number_of(handle, kind == CORRECTED ? "corrected" : "uncorrected", count);
    return number_of(handle, kind == CORRECTED ? "corrected_lifetime" : "uncorrected_lifetime", count);
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
/* The file of a field (`NVML_FI_DEV_...` of nvml.h). Those that are of links need the scope of one or of
 * all; the recoveries of each link are as many on each. */
static const char *name_of(const field_value *field) {
    int all = field->scope == (unsigned)ALL_LINKS;
    switch (field->field) {
    case 29: return "retired_corrected";
    case 30: return "retired_uncorrected";
    case 31: return "retired_pending";
    case 38: return "nvlink_crc";
    case 52: return "nvlink_replays";
    case 59: return "nvlink_recoveries";
    case 91: return "nvlink_links";
    case 138: return all ? "nvlink_tx" : NULL;
    case 139: return all ? "nvlink_rx" : NULL;
    case 161: return all ? NULL : "nvlink_replays_of_each";
    case 162: return all ? NULL : "nvlink_relinks_of_each";
    case 163: return all ? NULL : "nvlink_crc_of_each";
    case 197: return "pcie_tx";
    case 198: return "pcie_rx";
    case 215: return all ? NULL : "nvlink_recoveries_of_each";
    default: return NULL;
    }
}
int nvmlDeviceGetFieldValues(uintptr_t handle, int count, field_value *fields) {
    char text[64];
    int code = text_of(handle, "fields", text, sizeof text);
    if (code && code != NOT_SUPPORTED) return code;
    for (int i = 0; i < count; i++) {
        const char *name = name_of(&fields[i]);
        fields[i].code = name ? counter_of(handle, name, &fields[i]) : INVALID_ARGUMENT;
    }
    return SUCCESS;
}

#ifndef OLD
/* `corrected uncorrected pending failed` */
int nvmlDeviceGetRemappedRows(uintptr_t handle, unsigned *corrected, unsigned *uncorrected,
                              unsigned *pending, unsigned *failed) {
    char text[8192];
    int code = text_of(handle, "remapped_rows", text, sizeof text);
    if (code) return code;
    return sscanf(text, "%u %u %u %u", corrected, uncorrected, pending, failed) == 4 ? SUCCESS : UNKNOWN;
}
int nvmlDeviceGetMemoryErrorCounter(uintptr_t handle, int kind, int counter, int location,
                                    unsigned long long *count) {
    if (kind == CORRECTED || location != SRAM) return INVALID_ARGUMENT;
    return number_of(handle, counter == VOLATILE ? "sram_uncorrected" : "sram_uncorrected_lifetime", count);
}
int nvmlDeviceGetPcieReplayCounter(uintptr_t handle, unsigned *count) {
    return whole(handle, "pcie_replays", count);
}
int nvmlDeviceGetTotalEnergyConsumption(uintptr_t handle, unsigned long long *millijoules) {
    return number_of(handle, "energy", millijoules);
}
int nvmlDeviceGetPowerManagementDefaultLimit(uintptr_t handle, unsigned *milliwatts) {
    return whole(handle, "power_default", milliwatts);
}
/* `min max`, in milliwatts. */
int nvmlDeviceGetPowerManagementLimitConstraints(uintptr_t handle, unsigned *min, unsigned *max) {
    char text[8192];
    int code = text_of(handle, "power_range", text, sizeof text);
    if (code) return code;
    return sscanf(text, "%u %u", min, max) == 2 ? SUCCESS : UNKNOWN;
}
int nvmlDeviceGetEncoderUtilization(uintptr_t handle, unsigned *percent, unsigned *period_us) {
    *period_us = 167000;
    return whole(handle, "encoder", percent);
}
int nvmlDeviceGetDecoderUtilization(uintptr_t handle, unsigned *percent, unsigned *period_us) {
    *period_us = 167000;
    return whole(handle, "decoder", percent);
}
int nvmlDeviceGetPerformanceState(uintptr_t handle, unsigned *state) {
    return whole(handle, "pstate", state);
}
typedef struct { unsigned pid; unsigned long long at_us; unsigned sm, memory, encoder, decoder; } process_sample;
/* Lines of `pid percent age`, of samples so many microseconds newer than asked for: an age that is not
 * positive is an old one. */
int nvmlDeviceGetProcessUtilization(uintptr_t handle, process_sample *list, unsigned *count,
                                    unsigned long long since_us) {
    char text[8192], *line, *rest = text;
    int code = text_of(handle, "process_use", text, sizeof text);
    if (code) return code;
    unsigned room = list ? *count : 0, found = 0;
    while ((line = strsep(&rest, "\n"))) {
        process_sample one = {0};
        long long newer;
        if (sscanf(line, "%u %u %lld", &one.pid, &one.sm, &newer) != 3) continue;
        one.at_us = since_us + newer;
        if (found < room) list[found] = one;
        found++;
    }
    *count = found;
    return found == 0 ? NOT_FOUND : found > room ? INSUFFICIENT_SIZE : SUCCESS;
}
/* So many links are up, the first ones; the rest of them lead nowhere. */
int nvmlDeviceGetNvLinkState(uintptr_t handle, unsigned link, unsigned *is_up) {
    unsigned up = 0;
    int code = whole(handle, "nvlink_up", &up);
    *is_up = link < up;
    return code;
}

/* A set has the events of one GPU: each line of `xid` is one, by its number, that came after the set was
 * made. `events` is there where the GPU has events. */
typedef struct { uintptr_t handle; size_t seen; } event_set;
typedef struct { uintptr_t device; unsigned long long type, data; unsigned gpu_instance, compute_instance; } event;
static size_t lines_of(char *text, size_t skipped, char **line) {
    size_t count = 0;
    *line = NULL;
    for (char *next = strtok(text, "\n"); next; next = strtok(NULL, "\n"))
        if (count++ == skipped) *line = next;
    return count;
}
int nvmlEventSetCreate(event_set **set) {
    *set = calloc(1, sizeof **set);
    return *set ? SUCCESS : UNKNOWN;
}
int nvmlEventSetFree(event_set *set) {
    free(set);
    return SUCCESS;
}
int nvmlDeviceRegisterEvents(uintptr_t handle, unsigned long long types, event_set *set) {
    char text[8192], *line;
    int code = text_of(handle, "events", text, sizeof text);
    if (code) return code;
    if (types != XID_ERROR) return INVALID_ARGUMENT;
    set->handle = handle;
    code = text_of(handle, "xid", text, sizeof text);
    set->seen = code ? 0 : lines_of(text, 0, &line);
    return SUCCESS;
}
int nvmlEventSetWait_v2(event_set *set, event *data, unsigned timeout_ms) {
    char text[8192], *line = NULL;
    int code = text_of(set->handle, "xid", text, sizeof text);
    if (code && code != NOT_SUPPORTED) return code;
    if (!code) lines_of(text, set->seen, &line);
    if (!line) {
        usleep(timeout_ms * 1000);
        return TIMEOUT;
    }
    set->seen++;
    *data = (event){set->handle, XID_ERROR, strtoull(line, NULL, 10), 0xFFFFFFFF, 0xFFFFFFFF};
    return SUCCESS;
}
#endif

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
