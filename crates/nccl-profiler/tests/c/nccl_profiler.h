/* What NCCL and a profiler plugin agree on in versions 5 and 6, as far as a plugin meets it.
 *
 * Written for these tests after src/include/plugin/profiler/profiler_v5.h and profiler_v6.h and
 * src/include/plugin/nccl_profiler.h of NVIDIA/nccl (2.28 to 2.30); names and order of the fields are
 * NCCL's, since they are the interface. */
#ifndef NCCL_PROFILER_H
#define NCCL_PROFILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef int ncclResult_t; /* an enum there; 0 is success */

enum {
    ncclProfileGroup = 1 << 0,
    ncclProfileColl = 1 << 1,
    ncclProfileP2p = 1 << 2,
    ncclProfileProxyOp = 1 << 3,
    ncclProfileProxyStep = 1 << 4,
    ncclProfileProxyCtrl = 1 << 5,
    ncclProfileKernelCh = 1 << 6,
    ncclProfileNetPlugin = 1 << 7,
    ncclProfileGroupApi = 1 << 8,
    ncclProfileCollApi = 1 << 9,
    ncclProfileP2pApi = 1 << 10,
    ncclProfileKernelLaunch = 1 << 11,
    ncclProfileCeColl = 1 << 12
};

typedef enum {
    ncclProfilerProxyStepSendGPUWait = 8,
    ncclProfilerProxyStepSendWait = 9,
    ncclProfilerProxyStepRecvWait = 10,
    ncclProfilerProxyStepRecvFlushWait = 11,
    ncclProfilerProxyStepRecvGPUWait = 12,
    ncclProfilerProxyOpInProgress_v4 = 19,
    ncclProfilerProxyStepSendPeerWait_v4 = 20,
    ncclProfilerKernelChStop = 22
} ncclProfilerEventState_t;

typedef void (*ncclDebugLogger_t)(int level, unsigned long flags, const char *file, int line,
                                  const char *format, ...);

/* The members that both versions have. */
#define NCCL_PROFILER_V5_KINDS                                                                    \
    struct { bool graphCaptured; int groupDepth; } groupApi;                                      \
    struct {                                                                                      \
        const char *func; size_t count; const char *datatype; int root; void *stream;             \
        bool graphCaptured;                                                                       \
    } collApi;                                                                                    \
    struct {                                                                                      \
        const char *func; size_t count; const char *datatype; void *stream; bool graphCaptured;   \
    } p2pApi;                                                                                     \
    struct { void *stream; } kernelLaunch;                                                        \
    struct {                                                                                      \
        uint64_t seqNumber; const char *func; void const *sendBuff; void *recvBuff; size_t count; \
        int root; const char *datatype; uint8_t nChannels; uint8_t nWarps; const char *algo;      \
        const char *proto; void *parentGroup;                                                     \
    } coll;                                                                                       \
    struct {                                                                                      \
        const char *func; void *buff; const char *datatype; size_t count; int peer;               \
        uint8_t nChannels; void *parentGroup;                                                     \
    } p2p;                                                                                        \
    struct {                                                                                      \
        pid_t pid; uint8_t channelId; int peer; int nSteps; int chunkSize; int isSend;            \
    } proxyOp;                                                                                    \
    struct { int step; } proxyStep;                                                               \
    struct { uint8_t channelId; uint64_t pTimer; } kernelCh;                                      \
    struct { int64_t id; void *data; } netPlugin;

typedef struct {
    uint64_t type;
    void *parentObj;
    int rank;
    union { NCCL_PROFILER_V5_KINDS };
} ncclProfilerEventDescr_v5_t;

typedef struct {
    uint64_t type;
    void *parentObj;
    int rank;
    union {
        NCCL_PROFILER_V5_KINDS
        /* Not in the first releases of version 6. */
        struct {
            uint8_t channelId; uint8_t isSend; uint8_t peer; uint32_t step; uint32_t size;
            uint64_t startTs; uint64_t readyTs;
        } kernelStep;
        struct {
            uint64_t seqNumber; const char *func; void const *sendBuff; void *recvBuff;
            size_t count; int root; const char *datatype; const char *syncStrategy;
            bool intraBatchSync; uint32_t batchSize; uint32_t numBatches; uint32_t ceSeqNum;
            void *stream;
        } ceColl;
        struct { bool isComplete; int nRanks; } ceCollSync;
        struct { int numOps; size_t totalBytes; bool useIntraSync; } ceCollBatch;
    };
} ncclProfilerEventDescr_v6_t;

typedef union {
    struct { size_t transSize; } proxyStep;
    struct { int appendedProxyOps; } proxyCtrl;
    struct { void *data; } netPlugin;
    struct { uint64_t pTimer; } kernelCh;
} ncclProfilerEventStateArgs_v5_t;

typedef ncclProfilerEventStateArgs_v5_t ncclProfilerEventStateArgs_v6_t;

#define NCCL_PROFILER_TABLE(version)                                                              \
    typedef struct {                                                                              \
        const char *name;                                                                         \
        ncclResult_t (*init)(void **context, uint64_t commId, int *eActivationMask,               \
                             const char *commName, int nNodes, int nranks, int rank,              \
                             ncclDebugLogger_t logfn);                                            \
        ncclResult_t (*startEvent)(void *context, void **eHandle,                                 \
                                   ncclProfilerEventDescr_##version##_t *eDescr);                 \
        ncclResult_t (*stopEvent)(void *eHandle);                                                 \
        ncclResult_t (*recordEventState)(void *eHandle, ncclProfilerEventState_t eState,          \
                                         ncclProfilerEventStateArgs_##version##_t *eStateArgs);   \
        ncclResult_t (*finalize)(void *context);                                                  \
    } ncclProfiler_##version##_t

NCCL_PROFILER_TABLE(v5);
NCCL_PROFILER_TABLE(v6);

#endif
