/* Takes and gives back known amounts, for the preloaded library's tests. Where a test is to look,
 * the program says so in a line and waits for one. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../../recorder/tests/allocators.h"

/* Tells the test to look, and goes on when it has. */
static void look(const char *what) {
    char line[16];
    char text[64];
    int length = snprintf(text, sizeof text, "%s %d\n", what, (int)getpid());
    check(write(1, text, (size_t)length) == length, "nobody reads");
    check(read(0, line, sizeof line) > 0, "nobody answers");
}

static void in_threads(void) {
    churn_in_threads();
    use(malloc(7000000), 1);
    errno = 0;
    check(malloc(SIZE_MAX / 4) == NULL && errno == ENOMEM, "an absurd malloc succeeds");
    look("sums");
}

static void in_child(char **arguments, int executes) {
    void *before = use(malloc(1000000), 1000000);
    pid_t child = fork();
    if (child == 0) {
        free(before); /* the parent's block lives on */
        use(malloc(2000000), 2000000);
        look("child");
        if (executes)
            execl(arguments[0], arguments[0], "once", (char *)NULL);
        _exit(7);
    }
    int status = 0;
    check(waitpid(child, &status, 0) == child, "no child");
    check(WIFEXITED(status) && WEXITSTATUS(status) == (executes ? 0 : 7), "another status");
    look("parent");
    free(before);
}

static int tasks(void) {
    struct stat found;
    check(stat("/proc/self/task", &found) == 0, "no /proc");
    return (int)found.st_nlink - 2;
}

/* What a program can see of itself is as without the library. */
static void unnoticed(void) {
    errno = 123;
    void *block = malloc(3000000); /* the first one: the ledger is made here */
    check(block != NULL && errno == 123, "errno has changed");
    int descriptor = open("/dev/null", O_RDONLY);
    check(descriptor == 3, "a descriptor is taken");
    close(descriptor);
    check(tasks() == 1, "there is another thread");
    for (int i = 3; i < 1024; i++)
        close(i);
    void *other = use(malloc(2000000), 2000000);
    free(block);
    look("after");
    free(other);
}

static void *early;

__attribute__((constructor)) static void before_main(void) {
    early = malloc(70000000);
}

static void on_signal(int signal) {
    (void)signal;
    use(malloc(5000000), 1);
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "";
    free(early);
    if (strcmp(what, "threads") == 0) {
        in_threads();
    } else if (strcmp(what, "fork") == 0) {
        in_child(arguments, 0);
    } else if (strcmp(what, "exec") == 0) {
        in_child(arguments, 1);
    } else if (strcmp(what, "once") == 0) {
        use(malloc(3000000), 3000000);
        look("once");
    } else if (strcmp(what, "small") == 0) {
        use(malloc(1000), 1000);
        look("small");
    } else if (strcmp(what, "unnoticed") == 0) {
        unnoticed();
    } else if (strcmp(what, "signal") == 0) {
        signal(SIGUSR1, on_signal);
        raise(SIGUSR1);
        look("signal");
    } else if (strcmp(what, "die") == 0) {
        churn(NULL);
        use(malloc(9000000), 1);
        kill(getpid(), SIGKILL);
    } else if (strcmp(what, "leave") == 0) {
        use(malloc(9000000), 1);
        exit(9);
    } else {
        return 2;
    }
    return 0;
}
