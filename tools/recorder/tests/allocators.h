/* Every way to a block of the C library, for the tests of the two preloaded libraries. Sizes are
 * chosen so that each says where it comes from; the tests know them. */
#ifndef TELLTALE_ALLOCATORS_H
#define TELLTALE_ALLOCATORS_H

#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS 4
#define ROUNDS 50

static void check(int fine, const char *what) {
    if (!fine) {
        fprintf(stderr, "workload: %s\n", what);
        _exit(1);
    }
}

static void *use(void *block, size_t bytes) {
    check(block != NULL, "no memory");
    memset(block, 0x5a, bytes);
    return block;
}

/* One block of each kind a round, and one each by realloc and reallocarray from one that was there;
 * leaves nothing. Sizes grow by the argument, which is the number of the thread. */
static void *churn(void *argument) {
    size_t extra = (size_t)(uintptr_t)argument;
    for (int round = 0; round < ROUNDS; round++) {
        void *plain = use(malloc(100000 + extra), 100000 + extra);
        void *zeroed = calloc(10, 20000 + extra);
        check(zeroed != NULL && ((char *)zeroed)[150000] == 0, "calloc is not zero");
        void *aligned = use(aligned_alloc(4096, 4096 * (40 + extra)), 4096 * (40 + extra));
        check((uintptr_t)aligned % 4096 == 0, "aligned_alloc does not align");
        void *posix = NULL;
        check(posix_memalign(&posix, 64, 300000 + extra) == 0, "posix_memalign fails");
        check((uintptr_t)posix % 64 == 0, "posix_memalign does not align");
        void *old = use(memalign(256, 400000 + extra), 400000 + extra);
        void *page = use(valloc(450000 + extra), 450000 + extra);
        plain = realloc(plain, 500000 + extra);
        check(plain != NULL && ((char *)plain)[99999] == 0x5a, "realloc loses bytes");
        void *small = malloc(100); /* below the threshold */
        small = reallocarray(small, 6, 100000 + extra);
        small = realloc(small, 50); /* and below again */
        free(small);
        free(NULL);
        free(zeroed);
        free(aligned);
        free(posix);
        free(old);
        free(page);
        free(plain);
    }
    return NULL;
}

/* In as many threads at once. */
static void churn_in_threads(void) {
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        check(pthread_create(&threads[i], NULL, churn, (void *)i) == 0, "no thread");
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

#endif
