"""tt-metal's memory regions as other programs read and keep them, with Python's struct alone.

    regions.py read DIRECTORY               a line of JSON for each region
    regions.py logger DIRECTORY             what tt-metal's memory_logger reports, which reads version 3
    regions.py keep DIRECTORY ID VERSION BYTES [SOCKET]
                                            has BYTES of DRAM and a row, as tt-metal's own processes
                                            have, tells the allocation server at SOCKET of them, and
                                            prints "kept"; ends as if killed
    regions.py join DIRECTORY ID VERSION BYTES
                                            the same without a row, as with statistics off: a
                                            reference and BYTES in the totals; maps the region
"""

import glob
import json
import mmap
import os
import socket
import struct
import sys
import time

CHIPS, ROWS, READY = 16, 64, 0x52454459
UNUSED = 0xFFFFFFFF
KINDS = ["dram", "l1", "l1_small", "trace", "cb", "kernel"]
SIZES = {1: 9280, 2: 8576, 3: 8576, 4: 8576}


class Region:
    def __init__(self, data):
        self.data = bytearray(data)
        self.version, self.processes = struct.unpack_from("<II", data, 0)
        self.kinds = 6 if self.version == 1 else 5
        self.chips_at = 48 + 8 * self.kinds
        self.rows_at = self.chips_at + CHIPS * (8 + 8 * self.kinds)
        self.row_bytes = 16 + 8 * self.kinds + 64

    def counters(self, at):
        return dict(zip(KINDS, struct.unpack_from(f"<{self.kinds}Q", self.data, at)))

    def chips(self):
        for index in range(CHIPS):
            at = self.chips_at + index * (8 + 8 * self.kinds)
            chip, remote = struct.unpack_from("<II", self.data, at)
            if chip != UNUSED and (chip or index == 0):
                yield {"chip": chip, "remote": remote, **self.counters(at + 8)}

    def rows(self):
        for index in range(ROWS):
            at = self.rows_at + index * self.row_bytes
            (pid,) = struct.unpack_from("<i", self.data, at)
            if pid:
                stamp_at = at + 8 + 8 * self.kinds
                (stamp,) = struct.unpack_from("<Q", self.data, stamp_at)
                name = self.data[stamp_at + 8 : stamp_at + 72].split(b"\0")[0].decode()
                yield {"pid": pid, "name": name, "stamp": stamp, **self.counters(at + 8)}

    def tell(self):
        stamp, references = struct.unpack_from("<QI", self.data, 8)
        board_serial, asic_id = struct.unpack_from("<QQ", self.data, 24)
        told = {"version": self.version, "size": len(self.data), "references": references}
        told |= {"processes": self.processes, "board_serial": board_serial, "asic_id": asic_id}
        told |= {"stamp": stamp, "total": self.counters(48)}
        if self.version == 4:
            told["init_state"] = struct.unpack_from("<I", self.data, 8536)[0]
        return told | {"chips": list(self.chips()), "rows": list(self.rows())}


def regions(directory):
    for path in sorted(glob.glob(f"{directory}/tt_device_*_memory")):
        with open(path, "rb") as file:
            yield path, file.read()


def read(directory):
    for path, data in regions(directory):
        mode = os.stat(path).st_mode & 0o777
        print(json.dumps({"name": os.path.basename(path), "mode": mode, **Region(data).tell()}))


def logger(directory):
    used = []
    for _, data in regions(directory):
        if len(data) >= SIZES[3] and struct.unpack_from("<I", data)[0] == 3:
            used.append(sum(chip["dram"] for chip in Region(data).chips()))
    print(json.dumps({"chip_count": len(used), "total_dram_bytes": sum(used)}))


def made(directory, name_id, version):
    """The path of the region, made if there is none."""
    path = f"{directory}/tt_device_{name_id}_memory"
    if not os.path.exists(path):
        blank = Region(struct.pack("<I", version) + bytes(SIZES[version] - 4))
        struct.pack_into("<QQ", blank.data, 24, int(name_id) >> 8 if version == 1 else 0, 5)
        for index in range(1, CHIPS if version > 1 else 0):
            struct.pack_into("<I", blank.data, blank.chips_at + index * (8 + 8 * blank.kinds), UNUSED)
        if version == 4:
            struct.pack_into("<I", blank.data, 8536, READY)
        with open(os.open(path, os.O_CREAT | os.O_RDWR, 0o600), "wb") as file:
            file.write(blank.data)
    return path


def join(directory, name_id, version, dram):
    with open(made(directory, name_id, int(version)), "r+b") as file:
        shared = mmap.mmap(file.fileno(), 0)
    for at, kind, more in [(16, "<I", 1), (48, "<Q", int(dram))]:
        (before,) = struct.unpack_from(kind, shared, at)
        struct.pack_into(kind, shared, at, before + more)
    print("kept", flush=True)
    sys.stdin.read()


def keep(directory, name_id, version, dram, server=None):
    version, dram = int(version), int(dram)
    path = made(directory, name_id, version)
    with open(path, "r+b") as file:
        region = Region(file.read())
        taken = len(list(region.rows()))
        row = region.rows_at + taken * region.row_bytes
        stamp_at = row + 8 + 8 * region.kinds
        struct.pack_into("<i4xQ", region.data, row, os.getpid(), dram)
        # Version 1 has the time since boot, as the writer's time namespace counts it.
        stamp = time.monotonic_ns() if version == 1 else time.time_ns()
        struct.pack_into("<Q64s", region.data, stamp_at, stamp, b"trainer")
        for at in (48, region.chips_at + 8):
            (held,) = struct.unpack_from("<Q", region.data, at)
            struct.pack_into("<Q", region.data, at, held + dram)
        struct.pack_into("<I", region.data, 4, taken + 1)
        (references,) = struct.unpack_from("<I", region.data, 16)
        struct.pack_into("<I", region.data, 16, references + 1)
        file.seek(0)
        file.write(region.data)
    with open("/proc/self/comm", "w") as comm:
        comm.write("trainer")
    if server:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(server)
        # An allocation in the first form: 112 bytes.
        connection.sendall(struct.pack("<B3xiQB3xiQQ", 1, 0, dram, 0, os.getpid(), 64, 0) + bytes(72))
    print("kept", flush=True)
    sys.stdin.read()


{"read": read, "logger": logger, "keep": keep, "join": join}[sys.argv[1]](*sys.argv[2:])
