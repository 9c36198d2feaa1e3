/* Takes and gives back known amounts, for the recorder's tests. Sizes are chosen so that each
 * says where it comes from; the test knows them. */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
#define ROUNDS 50

static void check(int fine, const char *what) {
    if (!fine) {
        fprintf(stderr, "workload: %s\n", what);
        exit(1);
    }
}

static void *use(void *block, size_t bytes) {
    check(block != NULL, "no memory");
    memset(block, 0x5a, bytes);
    return block;
}

/* One of each kind; leaves nothing. */
static void *churn(void *argument) {
    size_t extra = (size_t)(uintptr_t)argument; /* thread 0 to 3: sizes differ by it */
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
        plain = realloc(plain, 500000 + extra);
        check(plain != NULL && ((char *)plain)[99999] == 0x5a, "realloc loses bytes");
        void *small = malloc(100); /* below the threshold */
        small = realloc(small, 600000 + extra);
        small = realloc(small, 50); /* and below again */
        free(small);
        free(NULL);
        free(zeroed);
        free(aligned);
        free(posix);
        free(old);
        free(plain);
    }
    return NULL;
}

static void in_threads(void) {
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        check(pthread_create(&threads[i], NULL, churn, (void *)i) == 0, "no thread");
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "";
    if (strcmp(what, "threads") == 0) {
        in_threads();
        void *left = use(malloc(7000000), 1); /* live at the end */
        check(realloc(left, SIZE_MAX / 4) == NULL, "an absurd realloc succeeds");
    } else if (strcmp(what, "fork") == 0) {
        void *before = use(malloc(1000000), 1000000);
        pid_t child = fork();
        if (child == 0) {
            free(before); /* the parent's block lives on */
            free(use(malloc(2000000), 2000000));
            if (count > 2)
                execl(arguments[0], arguments[0], "once", (char *)NULL);
            _exit(0);
        }
        int status = 1;
        waitpid(child, &status, 0);
        check(status == 0, "the child fails");
        free(before);
    } else if (strcmp(what, "once") == 0) {
        free(use(malloc(3000000), 3000000));
    } else if (strcmp(what, "die") == 0) {
        churn(NULL);
        use(malloc(9000000), 1);
        kill(getpid(), SIGKILL);
    } else {
        return 2;
    }
    puts("done");
    return 0;
}
