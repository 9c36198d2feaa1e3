/* Compiles if NCCL's structures have the sizes and offsets for which the library is written; the
 * test in src/border/description.rs has the same numbers. */
#include "nccl_profiler.h"

#define AT(structure, field, offset)                                                              \
    _Static_assert(offsetof(structure, field) == (offset), #structure "." #field)

#define BOTH(structure)                                                                                \
    _Static_assert(sizeof(structure) == 112 && _Alignof(structure) == 8, "size of " #structure);                 \
    AT(structure, type, 0);                                                                            \
    AT(structure, parentObj, 8);                                                                       \
    AT(structure, rank, 16);                                                                           \
    AT(structure, coll.seqNumber, 24 + 0);                                                             \
    AT(structure, coll.func, 24 + 8);                                                                  \
    AT(structure, coll.count, 24 + 32);                                                                \
    AT(structure, coll.root, 24 + 40);                                                                 \
    AT(structure, coll.datatype, 24 + 48);                                                             \
    AT(structure, coll.nChannels, 24 + 56);                                                            \
    AT(structure, coll.algo, 24 + 64);                                                                 \
    AT(structure, coll.parentGroup, 24 + 80);                                                          \
    AT(structure, p2p.func, 24 + 0);                                                                   \
    AT(structure, p2p.datatype, 24 + 16);                                                              \
    AT(structure, p2p.count, 24 + 24);                                                                 \
    AT(structure, p2p.peer, 24 + 32);                                                                  \
    AT(structure, p2p.nChannels, 24 + 36);                                                             \
    AT(structure, proxyOp.pid, 24 + 0);                                                                \
    AT(structure, proxyOp.channelId, 24 + 4);                                                          \
    AT(structure, proxyOp.peer, 24 + 8);                                                               \
    AT(structure, proxyOp.nSteps, 24 + 12);                                                            \
    AT(structure, proxyOp.chunkSize, 24 + 16);                                                         \
    AT(structure, proxyOp.isSend, 24 + 20);                                                            \
    AT(structure, proxyStep.step, 24 + 0);                                                             \
    AT(structure, kernelCh.pTimer, 24 + 8)

BOTH(ncclProfilerEventDescr_v5_t);
BOTH(ncclProfilerEventDescr_v6_t);
_Static_assert(sizeof(ncclProfilerEventStateArgs_v5_t) == 8, "size of the arguments");

#define TABLE(structure)                                                                               \
    _Static_assert(sizeof(structure) == 48, "size of " #structure);                                         \
    AT(structure, init, 8);                                                                            \
    AT(structure, startEvent, 16);                                                                     \
    AT(structure, stopEvent, 24);                                                                      \
    AT(structure, recordEventState, 32);                                                               \
    AT(structure, finalize, 40)

TABLE(ncclProfiler_v5_t);
TABLE(ncclProfiler_v6_t);

int main(void) { return 0; }
