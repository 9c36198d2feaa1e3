"""Becomes the program given behind a file's name, on a terminal of its own. Ctrl-C is pressed there
whenever the file appears."""

import fcntl
import os
import signal
import sys
import termios
import time

press = sys.argv[1]
keyboard, terminal = os.openpty()
os.setsid()
fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
if os.fork() == 0:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.close(terminal)
    program = os.getppid()
    while os.getppid() == program:
        if os.path.exists(press):
            os.remove(press)
            os.write(keyboard, b"\x03")
        time.sleep(0.05)
    os._exit(0)
os.close(keyboard)
os.dup2(terminal, 0)
os.execvp(sys.argv[2], sys.argv[2:])
