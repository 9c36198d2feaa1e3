/* Times the C library's malloc and free as the program finds them.
 *
 *   pairs pair|allocate|free|together|leave BYTES COUNT
 *
 * Prints nanoseconds: of a pair; of a malloc or a free where 16 blocks are live at most; of a pair
 * where two threads do COUNT each at once, the mean of both. "leave" does COUNT pairs and is killed, so that
 * what was recorded stays. */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LIVE 16
#define WARM 1000

static size_t bytes, count;
static int arrived;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static double pairs(size_t number) {
    double began = now();
    for (size_t i = 0; i < number; i++)
        free(malloc(bytes));
    return (now() - began) / (double)number;
}

static double batches(int of_frees) {
    void *blocks[LIVE];
    double taken = 0;
    size_t rounds = count / LIVE + 1;
    for (size_t round = 0; round < rounds; round++) {
        double began = now();
        for (int i = 0; i < LIVE; i++)
            blocks[i] = malloc(bytes);
        double between = now();
        for (int i = 0; i < LIVE; i++)
            free(blocks[i]);
        taken += of_frees ? now() - between : between - began;
    }
    return taken / (double)(rounds * LIVE);
}

static void *one_of_two(void *result) {
    pairs(WARM);
    __atomic_add_fetch(&arrived, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&arrived, __ATOMIC_ACQUIRE) < 2) {
    }
    *(double *)result = pairs(count);
    return NULL;
}

static double together(void) {
    pthread_t thread;
    double results[2] = {0, 0};
    if (pthread_create(&thread, NULL, one_of_two, &results[1]) != 0)
        exit(1);
    one_of_two(&results[0]);
    pthread_join(thread, NULL);
    return (results[0] + results[1]) / 2;
}

int main(int arguments, char **argument) {
    if (arguments != 4)
        return 64;
    const char *what = argument[1];
    bytes = strtoul(argument[2], NULL, 10);
    count = strtoul(argument[3], NULL, 10);
    if (strcmp(what, "together") == 0) {
        printf("%f\n", together());
        return 0;
    }
    if (strcmp(what, "leave") == 0) {
        pairs(count);
        raise(SIGKILL);
    }
    pairs(WARM);
    if (strcmp(what, "pair") == 0)
        printf("%f\n", pairs(count));
    else
        printf("%f\n", batches(strcmp(what, "free") == 0));
    return 0;
}
