"""A machine with two GPUs of a library that stands in for NVML, a process on them, a history, and what a kernel printed.

A program enters it by a mount namespace of its own, in which ``/proc/driver`` is the machine's.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

TELLTALE = os.environ["TELLTALE"]
_NVML = Path(__file__).parents[3] / "collector" / "tests" / "hardware" / "nvml.c"

#: The tasks of tools that need a Neuron device.
NOT_RUN = {("a first kernel", "nkipy"), ("a first kernel", "NKI")}
#: Bytes of the process on each GPU.
HELD = 600 << 20
PEAK = 64 << 20

_VALUES = {"name": "NVIDIA H200", "utilization": "37 5", "temperature": "41", "power": "119500", "mig_mode": "0"}
_ADDRESSES = ("00000000:41:00.0", "00000000:C1:00.0")
_MEMORY = ("1073741824 85899345920", "805306368 85899345920")
_CHILD_ENDS = 10.0

_PRINTS = """
import numpy as np
from telltale import operations as ops

KERNEL = '''KERNEL_MAIN {
  cb_reserve_back(0, 1);
  noc_read_bytes(get_arg_val(0), 0, 512, get_write_ptr(0));
  cb_push_back(0, 1);
  cb_wait_front(0, 1);
  device_print_tile("x", 0, float32, .width = 32, .rows = 4);
  device_print_text("other", "no tensor");
  cb_pop_front(0, 1);
}'''

@ops.operation
def show(a: ops.Spec) -> ops.Program:
    return ops.Program([ops.Kernel(KERNEL, arguments=[a])], [ops.CircularBuffer(0, 512)])

with ops.Chip() as chip:
    for number in range(12):
        show(chip.tensor(np.full((4, 32), number, np.float32)))
    chip.finish()
"""

#: What stands before the blocks: what the page calls known.
BEFORE = {
    "watch until an exit": """
import os
import subprocess
import threading

# At its end it takes itself from the list of the library.
held = f"{os.environ['GPUS']}/gpu0/compute"
process = subprocess.Popen(["sh", "-c", f"sleep 1.5; echo > {held}"])
threading.Thread(target=process.wait, daemon=True).start()
pid = process.pid
with open(held, "w") as file:
    file.write(f"{pid} 629145600\\n")
""",
    "peak of a block": """
import os
import time
import telltale

def hold(size):
    # At once, so that no reader finds the file empty.
    held = f"{os.environ['GPUS']}/gpu0/compute"
    with open(f"{held}.new", "w") as file:
        file.write(f"{os.getpid()} {size}\\n")
    os.replace(f"{held}.new", held)

def work():
    begin = time.perf_counter()
    device.allocate(64 << 20, address=0x1000)
    hold(64 << 20)
    time.sleep(0.5)
    device.free(0x1000)
    hold(1 << 20)
    global worked
    worked = time.perf_counter() - begin

runtime = telltale.Runtime("engine 1")
device = runtime.open_device(0)
hold(1 << 20)
""",
}


class Machine:
    """The machine, whose files are in a directory."""

    def __init__(self, place: Path) -> None:
        place.chmod(0o700)
        self.place = place
        self.library = place / "nvml"
        for number, (address, memory) in enumerate(zip(_ADDRESSES, _MEMORY)):
            gpu = self.library / f"gpu{number}"
            gpu.mkdir(parents=True)
            of_this = {"handle": f"{number + 1}", "pci": address, "memory": memory, "uuid": self.uuid(number)}
            for name, text in {**_VALUES, **of_this}.items():
                (gpu / name).write_text(f"{text}\n")
        (self.library / "count").write_text("2\n")
        (self.library / "driver_version").write_text("580.95.05\n")
        compiler = shlex.split(os.environ.get("CC") or "cc")
        flags = ["-shared", "-fPIC", "-O1", "-o", str(self.library / "libnvidia-ml.so.1"), "-ldl"]
        subprocess.run([*compiler, str(_NVML), *flags], check=True, timeout=120)
        driver = place / "driver"
        (driver / "nvidia").mkdir(parents=True)
        (driver / "nvidia" / "version").write_text("NVRM version: NVIDIA UNIX 580.95.05\n")
        self._entry = place / "enter.sh"
        self._entry.write_text(
            f"set -e\nmount --bind {driver} /proc/driver\nexport LD_LIBRARY_PATH={self.library} GPUS={self.library}\n"
            f"export XDG_RUNTIME_DIR={place} TT_METRICS_SOCKET_DIR={place} TELLTALE_STATE_DIR={place}/state\n"
            f'export TELLTALE_KERNEL_CACHE={place}/kernels\ncd {place}\nexec "$@"\n'
        )
        self._process = subprocess.Popen(["sleep", "3600"])
        self.hold()

    def __enter__(self) -> Machine:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(_CHILD_ENDS)

    @property
    def pid(self) -> int:
        """The process that has memory on both GPUs."""
        return self._process.pid

    @staticmethod
    def uuid(number: int) -> str:
        return f"GPU-6f4d1a0e-0000-4000-8000-00000000000{number}"

    def hold(self) -> None:
        """Lists the process on both GPUs."""
        for number in range(2):
            (self.library / f"gpu{number}" / "compute").write_text(f"{self.pid} {HELD}\n")

    def command(self, *command: str) -> list[str]:
        """A command that becomes this one on the machine."""
        return ["unshare", "--mount", "sh", str(self._entry), *command]

    def run(self, program: str, given: str = "", **environment: str) -> str:
        """What a program in Python prints on the machine."""
        command = self.command(sys.executable, "-c", program)
        run = subprocess.run(
            command,
            input=given,
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, **environment},
        )
        assert run.returncode == 0, f"{program}\n{run.stderr}"
        return run.stdout

    def record_history(self, seconds: float) -> None:
        """Lets the node service run for so long."""
        arguments = ["serve", "--interval", "0.2", "--http", "off"]
        service = subprocess.Popen(self.command(TELLTALE, *arguments), stderr=subprocess.PIPE, text=True)
        try:
            time.sleep(seconds)
            assert service.poll() is None, service.communicate()[1]
        finally:
            service.terminate()
            errors = service.communicate(timeout=_CHILD_ENDS)[1]
        assert service.returncode == 0, errors

    def print_tensors(self) -> None:
        """A kernel prints 12 tensors, which the runtime writes."""
        self.run(_PRINTS, NEURON_RT_DEBUG_OUTPUT_DIR=str(self.place / "dumps"))
