/*
 * Telltale for C and C++: records the device memory of a process and serves its metrics.
 *
 * Suffixes: _e is an enumeration, _s a structure that the caller owns, _h a handle that the caller
 * owns and gives back once with the function that its comment names. Every function but the two that
 * PyTorch calls returns a status and stores results through pointers. All functions may be called from any thread and,
 * after a fork, in the child; a handle must not be given back while another thread uses it.
 *
 * Telltale never makes the caller fail: what it cannot do it says once on standard error and
 * counts. A status other than TELLTALE_OK means that the call itself was wrong.
 */
#ifndef TELLTALE_H
#define TELLTALE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a call went. */
typedef enum telltale_status_e {
    TELLTALE_OK = 0,               /* It was done, or Telltale is switched off. */
    TELLTALE_NULL_ARGUMENT = 1,    /* A pointer that must point to something is null. */
    TELLTALE_INVALID_ARGUMENT = 2, /* A number, text or structure size is not allowed. */
    TELLTALE_INTERNAL = 3          /* A defect in Telltale; the call may be unrecorded. */
} telltale_status_e;

/* What memory is for. */
typedef enum telltale_memory_kind_e {
    TELLTALE_DRAM = 0,               /* Buffers in the device's DRAM. */
    TELLTALE_L1 = 1,                 /* Buffers in the L1 of worker cores. */
    TELLTALE_L1_SMALL = 2,           /* Buffers in the part of L1 for small ones. */
    TELLTALE_TRACE = 3,              /* Recorded command traces, in DRAM. */
    TELLTALE_CB = 4,                 /* Circular buffers, in L1. */
    TELLTALE_KERNEL_APPLICATION = 5, /* Application kernels, in L1. */
    TELLTALE_KERNEL_FABRIC = 6,      /* Kernels that move data between chips, in L1. */
    TELLTALE_KERNEL_DISPATCH = 7,    /* Kernels that dispatch commands, in L1. */
    TELLTALE_SYSTEM_MEMORY = 8       /* Host memory that the device uses. */
} telltale_memory_kind_e;

/* Where memory is. */
typedef enum telltale_memory_space_e {
    TELLTALE_SPACE_DRAM = 0, /* The chip's DRAM. */
    TELLTALE_SPACE_L1 = 1,   /* The L1 of its cores. */
    TELLTALE_SPACE_HOST = 2  /* Host memory. */
} telltale_memory_space_e;

/* Chip generations. */
typedef enum telltale_architecture_e {
    TELLTALE_GRAYSKULL = 0,   /* Grayskull. */
    TELLTALE_WORMHOLE_B0 = 1, /* Wormhole B0. */
    TELLTALE_BLACKHOLE = 2    /* Blackhole. */
} telltale_architecture_e;

/* Which fields of a telltale_device_s hold something; combine with |. */
typedef enum telltale_known_e {
    TELLTALE_KNOWN_DRIVER_ORDINAL = 1, /* driver_ordinal */
    TELLTALE_KNOWN_PCI = 2,            /* pci_domain, pci_bus, pci_device, pci_function */
    TELLTALE_KNOWN_ASIC_ID = 4,        /* asic_id */
    TELLTALE_KNOWN_BOARD_ID = 8,       /* board_id */
    TELLTALE_KNOWN_GALAXY = 16,        /* galaxy_tray, galaxy_nibble */
    TELLTALE_KNOWN_FACTS = 32          /* architecture and all capacities, of a Tenstorrent chip; the
                                          drivers of other devices report theirs */
} telltale_known_e;

/* One thing that could not be done, as text; called once for each step that fails, 16 times for
 * registering metrics, on the thread that failed. */
typedef void (*telltale_on_problem)(void *context, const char *text);

/* How Telltale is to work. Fill it with telltale_options_init, then change what you want. */
typedef struct telltale_options_s {
    size_t struct_size;             /* sizeof(telltale_options_s) */
    const char *runtime_name;       /* Name and version of the runtime; null for none. */
    const char *directory;          /* Where files go; null lets the environment decide. */
    const char *root;               /* Root of an emulated machine; null for the real one. */
    telltale_on_problem on_problem; /* Null for standard error. */
    void *on_problem_context;       /* Passed to on_problem. */
    uint32_t disabled;              /* Not 0: do nothing at all. */
    uint32_t reserved;              /* 0 */
} telltale_options_s;

/* A device as the runtime knows it. Set everything to 0 first. Any of ASIC id, PCI address, board id
 * with location, Galaxy position and driver's number identifies the chip; with logical_id alone it
 * is a device of its own, unknown:N. */
typedef struct telltale_device_s {
    size_t struct_size;           /* sizeof(telltale_device_s) */
    uint32_t known;               /* telltale_known_e flags of what is set below */
    uint32_t logical_id;          /* The runtime's own number; always used. */
    uint64_t asic_id;             /* What the chip's firmware reports, or UMD's chip id. Of a remote
                                     chip its gateway's will do; its own wants board_id beside it. */
    uint64_t board_id;            /* The board's serial number; also gives its type. */
    uint32_t driver_ordinal;      /* N of /dev/tenstorrent/N; of a remote chip its gateway's. */
    uint32_t pci_domain;          /* PCI address; of a remote chip its gateway's. */
    uint8_t pci_bus;
    uint8_t pci_device;
    uint8_t pci_function;
    uint8_t location;             /* Place on the board: 0, or 1 for the second chip. */
    uint8_t remote;               /* Not 0: reached through another chip. */
    uint8_t galaxy_tray;          /* 1 to 4 */
    uint8_t galaxy_nibble;        /* 1 to 8 */
    uint8_t reserved;             /* 0 */
    uint32_t architecture;        /* telltale_architecture_e */
    uint32_t dram_channels;       /* Enabled DRAM channels. */
    uint64_t dram_capacity_bytes; /* DRAM of all enabled channels. */
    uint64_t l1_per_core_bytes;   /* L1 of one worker core. */
    uint32_t worker_cores;        /* Enabled worker cores. */
    uint32_t grid_columns;        /* Full grid of worker cores. */
    uint32_t grid_rows;
    uint32_t reserved_end;        /* 0 */
} telltale_device_s;

/* Compiled programs. */
typedef struct telltale_programs_s {
    size_t struct_size;        /* sizeof(telltale_programs_s) */
    uint64_t cached;           /* Programs in the cache. */
    uint64_t hits;             /* Look-ups that found their program. */
    uint64_t misses;           /* Look-ups that did not. */
    const char *const *loaded; /* Names of programs loaded on a device; null if count is 0. */
    size_t loaded_count;       /* How many; only 256 are kept. */
} telltale_programs_s;

/* A label of a metric. */
typedef struct telltale_label_s {
    const char *name;
    const char *value;
} telltale_label_s;

/* Name and meaning of a metric. */
typedef struct telltale_metric_s {
    size_t struct_size;             /* sizeof(telltale_metric_s) */
    const char *name;               /* Letters, digits and underscores. */
    const char *help;               /* One sentence; null for none. */
    const char *unit;               /* Null for none. */
    const telltale_label_s *labels; /* Null if count is 0. */
    size_t label_count;             /* At most 16. */
} telltale_metric_s;

typedef struct telltale_runtime *telltale_runtime_h;     /* telltale_runtime_release */
typedef struct telltale_device *telltale_device_h;       /* telltale_device_close */
typedef struct telltale_counter *telltale_counter_h;     /* telltale_counter_release */
typedef struct telltale_gauge *telltale_gauge_h;         /* telltale_gauge_release */
typedef struct telltale_histogram *telltale_histogram_h; /* telltale_histogram_release */

/* The version of this header. */
#define TELLTALE_VERSION_MAJOR 0
#define TELLTALE_VERSION_MINOR 1
#define TELLTALE_VERSION_PATCH 0
/* The same as one number, for #if: 10203 of 1.2.3. */
#define TELLTALE_VERSION \
    (TELLTALE_VERSION_MAJOR * 10000 + TELLTALE_VERSION_MINOR * 100 + TELLTALE_VERSION_PATCH)

/* The version of the library. */
telltale_status_e telltale_version(uint32_t *major, uint32_t *minor, uint32_t *patch);

/* What a status means; the text is never freed. */
telltale_status_e telltale_status_text(telltale_status_e status, const char **text);

/* Fills options with what the environment says; struct_size and the texts included. */
telltale_status_e telltale_options_init(telltale_options_s *options);

/* Makes Telltale ready. Null options stand for the environment's. Texts are copied. */
telltale_status_e telltale_start(const telltale_options_s *options, telltale_runtime_h *runtime);

/* The runtime that all parts of the program share; give the handle back as any other. */
telltale_status_e telltale_global(telltale_runtime_h *runtime);

/* Gives a runtime's handle back; devices and metrics made from it stay valid. */
telltale_status_e telltale_runtime_release(telltale_runtime_h runtime);

/* Opens a device for recording. The first one starts the ledger and the endpoint. */
telltale_status_e telltale_device_open(telltale_runtime_h runtime,
                                       const telltale_device_s *description,
                                       telltale_device_h *device);

/* Closes a device and gives its handle back. The last one stops the ledger and the endpoint. */
telltale_status_e telltale_device_close(telltale_device_h device);

/* bytes were allocated at address. */
telltale_status_e telltale_allocate(telltale_device_h device, telltale_memory_kind_e kind,
                                    uint64_t address, uint64_t bytes);

/* What is at address was freed; kind may be any kind of the same memory. */
telltale_status_e telltale_free(telltale_device_h device, telltale_memory_kind_e kind,
                                uint64_t address);

/* bytes were allocated, and will be freed with telltale_free_sized. */
telltale_status_e telltale_allocate_sized(telltale_device_h device, telltale_memory_kind_e kind,
                                          uint64_t bytes);

/* An allocation made with telltale_allocate_sized was freed. */
telltale_status_e telltale_free_sized(telltale_device_h device, telltale_memory_kind_e kind,
                                      uint64_t bytes);

/* The allocator refused an allocation. */
telltale_status_e telltale_allocation_failed(telltale_device_h device,
                                             telltale_memory_kind_e kind);

/* Operations were executed. */
telltale_status_e telltale_count_operations(telltale_device_h device, uint64_t operations);

/* Bytes were moved. */
telltale_status_e telltale_count_traffic(telltale_device_h device, uint64_t host_to_device_bytes,
                                         uint64_t device_to_host_bytes);

/* How full the kernels' ring buffer in L1 is. */
telltale_status_e telltale_report_ring_buffer(telltale_device_h device, uint64_t total_bytes,
                                            uint64_t used_bytes, uint64_t programs);

/* The limit on the memory of one space. */
telltale_status_e telltale_report_quota(telltale_device_h device, telltale_memory_space_e space,
                                      uint64_t limit_bytes);

/* Whether the device is being held back now: 0 or not. */
telltale_status_e telltale_report_throttled(telltale_device_h device, uint32_t active);

/* The compiled programs now. Texts are copied. */
telltale_status_e telltale_report_programs(telltale_runtime_h runtime,
                                         const telltale_programs_s *programs);

/* The compiled kernels now: their bytes, and how many were pushed out so far. */
telltale_status_e telltale_report_kernel_cache(telltale_runtime_h runtime, uint64_t bytes,
                                             uint64_t evictions);

/*
 * A count that only grows. The same name and labels give the same counter. Where a name, label, unit or bounds are not
 * allowed, another metric has the name, or there are too many, registering returns TELLTALE_INVALID_ARGUMENT and
 * reports why, the first 16 times, as any problem. The handle works all the same, and its metric is shown to no
 * reader. With a null argument, a wrong structure size, a text over 4096 bytes, or more than 256 labels or 4096
 * bounds, the handle is null, which all functions take.
 */
telltale_status_e telltale_counter_register(telltale_runtime_h runtime,
                                            const telltale_metric_s *metric,
                                            telltale_counter_h *counter);
telltale_status_e telltale_counter_add(telltale_counter_h counter, uint64_t count);
telltale_status_e telltale_counter_release(telltale_counter_h counter);

/* A value that goes up and down. */
telltale_status_e telltale_gauge_register(telltale_runtime_h runtime,
                                          const telltale_metric_s *metric,
                                          telltale_gauge_h *gauge);
telltale_status_e telltale_gauge_set(telltale_gauge_h gauge, double value);
telltale_status_e telltale_gauge_add(telltale_gauge_h gauge, double change);
telltale_status_e telltale_gauge_release(telltale_gauge_h gauge);

/* Counts of observations up to each of ascending bounds, at most 64. */
telltale_status_e telltale_histogram_register(telltale_runtime_h runtime,
                                              const telltale_metric_s *metric,
                                              const double *bounds, size_t bound_count,
                                              telltale_histogram_h *histogram);
telltale_status_e telltale_histogram_observe(telltale_histogram_h histogram, double value);
telltale_status_e telltale_histogram_release(telltale_histogram_h histogram);

/* For PyTorch's CUDAPluggableAllocator, which calls the next two and nothing else of this header;
 * docs/integrate.md shows how. PyTorch's ssize_t is a ptrdiff_t here, and its cudaStream_t a void *. */

/* Allocates memory of the CUDA device with this number in the device's primary context, and records
 * it for the runtime of telltale_global by the device's PCI address. The stream is not checked: the
 * block may be used at once in any. Null for a size that is not above 0, where there is no driver
 * or no such device, and where the driver refuses. */
void *telltale_torch_alloc(ptrdiff_t size, int device, void *stream);

/* Frees such a block, once the device is done with it; null is ignored. */
void telltale_torch_free(void *block, ptrdiff_t size, int device, void *stream);

#ifdef __cplusplus
}
#endif

#endif /* TELLTALE_H */
