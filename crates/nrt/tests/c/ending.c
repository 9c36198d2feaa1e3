/* Publishes events and ends in the given way: ending EVENTS WAY [SIGNAL [PREFIX]].
 *
 * What handlers of its own say goes to standard error, where the default consumer says nothing. */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static int is(const char *way, const char *other) { return strcmp(way, other) == 0; }

static void say(const char *text) { CHECK(write(2, text, strlen(text)) == (ssize_t)strlen(text)); }

static void plain(int number) {
    (void)number;
    say("plain\n");
}

static void detailed(int number, siginfo_t *info, void *context) {
    CHECK(info->si_signo == number && context != NULL);
    say(info->si_pid == getpid() ? "detailed, from ourselves\n" : "detailed\n");
    signal(number, SIG_DFL);
    raise(number);
}

/* Not all compilers keep a plain write to nowhere. */
static int *volatile nowhere;
static void *fault(void *unused) {
    *nowhere = 1;
    return unused;
}

static void *keep_publishing(void *unused) {
    for (uint32_t number = 0;; number++)
        publish(0, number);
    return unused;
}

int main(int argc, char **argv) {
    CHECK(argc >= 3);
    uint32_t events = (uint32_t)atoi(argv[1]);
    const char *way = argv[2];
    int number = argc > 3 ? atoi(argv[3]) : 0;
    pthread_t thread;

    if (is(way, "plain") || is(way, "once") || is(way, "detailed")) {
        struct sigaction action = {0};
        if (is(way, "detailed"))
            action.sa_sigaction = detailed;
        else
            action.sa_handler = plain;
        action.sa_flags = is(way, "detailed") ? SA_SIGINFO : is(way, "once") ? SA_RESETHAND : 0;
        CHECK(sigaction(number, &action, NULL) == 0);
    } else if (is(way, "ignored")) {
        signal(number, SIG_IGN);
    } else if (number) {
        // The runner of the tests may ignore it, as a shell does with SIGINT for what it runs behind.
        signal(number, SIG_DFL);
    }
    if (is(way, "prefix")) {
        CHECK(argc == 5);
        for (uint32_t event = 0; event < events; event++)
            OK(telltale_debug_publish_tensor(0, argv[4], 1, "uint32", NULL, 0, &event, 4));
        return 0;
    }
    for (uint32_t event = 0; event < events; event++)
        OK(publish(0, event));

    if (is(way, "return"))
        return 7;
    if (is(way, "exit"))
        exit(8);
    if (is(way, "_exit"))
        _exit(9);
    if (is(way, "abort"))
        abort();
    if (is(way, "fault"))
        fault(NULL);
    if (is(way, "bad tensor")) {
        /* Faults inside the library, after it has reserved the event's place. */
        telltale_debug_publish_tensor(0, "number", 0, "uint32", NULL, 0, (void *)8, 4096);
        return 3;
    }
    if (is(way, "fault in a thread")) {
        pthread_create(&thread, NULL, fault, NULL);
        pthread_join(thread, NULL);
    }
    if (is(way, "close")) {
        nrt_close();
        EXPECT(NRT_CLOSED, publish(0, 0));
        _exit(0);
    }
    if (is(way, "close and begin")) {
        nrt_close();
        OK(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, NULL, NULL));
        OK(publish(0, 0));
        return 0;
    }
    if (is(way, "drain")) {
        OK(telltale_debug_drain(60000));
        _exit(0);
    }
    if (is(way, "endless"))
        keep_publishing(NULL);
    if (is(way, "busy")) {
        pthread_create(&thread, NULL, keep_publishing, NULL);
        raise(number);
    }
    if (is(way, "client")) {
        int fd = connected(0);
        CHECK(!is_readable(fd));
        OK(publish(0, 77));
        EXPECT(NRT_TIMEOUT, telltale_debug_drain(20));
        CHECK(read_number(fd) == 77);
        OK(telltale_debug_drain(60000));
        nrt_debug_client_connect_close(fd);
        /* The default consumer comes back. */
        while (publish(0, 78) == NRT_CLOSED)
            usleep(100);
        return 0;
    }
    if (is(way, "fork")) {
        pid_t child = fork();
        if (child == 0) {
            EXPECT(NRT_INVALID, publish(0, 0));
            raise(SIGTERM);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
        CHECK(WTERMSIG(status) == SIGTERM);
        return 0;
    }
    if (is(way, "late")) {
        signal(number, plain);
        raise(number);
        _exit(3);
    }
    if (number != 0)
        raise(number);
    if (is(way, "once"))
        raise(number);
    /* Whatever was to end it did not. */
    return 3;
}
