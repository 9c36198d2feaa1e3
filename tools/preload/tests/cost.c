/* What a pair of malloc and free costs, in nanoseconds: `cost BYTES`. With the library and without
 * it, the difference is the library's (docs/run.md). */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PAIRS 1000
#define ROUNDS 2000

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

int main(int count, char **arguments) {
    size_t bytes = count > 1 ? strtoul(arguments[1], NULL, 10) : 100;
    double best = 1e18;
    for (int round = 0; round < ROUNDS; round++) {
        double began = now();
        for (int pair = 0; pair < PAIRS; pair++)
            free(malloc(bytes));
        double each = (now() - began) / PAIRS;
        if (each < best)
            best = each;
    }
    printf("%zu bytes: %.2f ns a pair\n", bytes, best);
    return 0;
}
