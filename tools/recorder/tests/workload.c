/* Takes and gives back known amounts, for the recorder's tests. */
#include <signal.h>
#include <sys/wait.h>

#include "allocators.h"

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "";
    if (strcmp(what, "threads") == 0) {
        churn_in_threads();
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
