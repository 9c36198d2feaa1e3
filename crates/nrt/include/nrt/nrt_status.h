/*
 * What Neuron calls return, with the names and numbers that AWS publishes. The debug stream uses
 * those with a comment.
 */
#ifndef TELLTALE_NRT_NRT_STATUS_H
#define TELLTALE_NRT_NRT_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    NRT_SUCCESS = 0, /* Done. */
    NRT_FAILURE = 1, /* A defect in this library. */
    NRT_INVALID = 2, /* The call was wrong, or a client is connected already. */
    NRT_INVALID_HANDLE = 3,
    NRT_RESOURCE = 4, /* No memory or no descriptor. */
    NRT_TIMEOUT = 5, /* Not done in time. */
    NRT_HW_ERROR = 6,
    NRT_QUEUE_FULL = 7, /* The stream holds as much as it may. */
    NRT_LOAD_NOT_ENOUGH_NC = 9,
    NRT_UNSUPPORTED_NEFF_VERSION = 10,
    NRT_FAIL_HOST_MEM_ALLOC = 11, /* No longer used. */
    NRT_UNINITIALIZED = 13, /* Not begun. */
    NRT_CLOSED = 14, /* No consumer is connected, or nrt_close was called. */
    NRT_QUEUE_EMPTY = 15, /* No event waits. */
    NRT_EXEC_UNIT_UNRECOVERABLE = 101,
    NRT_EXEC_BAD_INPUT = 1002,
    NRT_EXEC_COMPLETED_WITH_NUM_ERR = 1003,
    NRT_EXEC_COMPLETED_WITH_ERR = 1004,
    NRT_EXEC_NC_BUSY = 1005,
    NRT_EXEC_OOB = 1006,
    NRT_COLL_PENDING = 1100,
    NRT_EXEC_HW_ERR_COLLECTIVES = 1200,
    NRT_EXEC_HW_ERR_HBM_UE = 1201,
    NRT_EXEC_HW_ERR_NC_UE = 1202,
    NRT_EXEC_HW_ERR_DMA_ABORT = 1203,
    NRT_EXEC_SW_NQ_OVERFLOW = 1204,
    NRT_EXEC_HW_ERR_REPAIRABLE_HBM_UE = 1205,
    NRT_NETWORK_PROXY_FAILURE = 1206
} NRT_STATUS;

/* The name of a status as text. Never null, and not to be freed. */
const char *nrt_get_status_as_str(NRT_STATUS status);

#ifdef __cplusplus
}
#endif

#endif
