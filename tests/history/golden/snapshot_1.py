# SPDX-License-Identifier: Apache-2.0
"""Writes snapshot-1.bin and snapshot-1-unused.bin beside it: snapshots of version 1, after docs/formats.md and not by the
library. The unused numbers of the calibration are 0 in the first one, and those of earlier versions in the second."""

import pathlib
import struct


def checksum(data: bytes) -> int:
    """CRC-64/XZ, a bit at a time."""
    value = 0xFFFFFFFFFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0xC96C5795D7870F42 if value & 1 else 0)  # 0x42f0e1eba9ea3693, its bits reversed
    return value ^ 0xFFFFFFFFFFFFFFFF


def section(kind: int, contents: bytes) -> bytes:
    header = struct.pack("<IQQ", kind, len(contents), checksum(contents))
    return header + struct.pack("<Q", checksum(header)) + contents


def run(sequence: int, words: list[int], use_counts: list[int]) -> bytes:
    return struct.pack(f"<QI{len(words)}I{len(use_counts)}B", sequence, len(words), *words, *use_counts)


assert checksum(b"123456789") == 0x995DC9BBDF1939FA


def calibration(used: int) -> bytes:
    contents = struct.pack(
        "<i7i4i14i28i972ii1024h1024h1024hIQ",
        -1_000_000,
        *(1000 * i - 3000 for i in range(7)),
        *(7 * i for i in range(4)),
        *(used * (500_000 - 90_000 * i) for i in range(14)),
        *(used * (300_000 - 20_000 * i) for i in range(28)),
        *(2_000 * i - 900_000 for i in range(972)),
        used * 77_777,
        *(i * 37 % 40_001 - 20_000 for i in range(1024)),
        *(i * 101 % 40_001 - 20_000 for i in range(1024)),
        *(i * 211 % 40_001 - 20_000 for i in range(1024)),
        40_000,
        123_456_789_012,
    )
    assert len(contents) == 10264
    return contents


output = 1 << 31
runs = run(42, [i * 50_021 | (output if i >= 12 else 0) for i in range(40)], [3, 0])
runs += run(0xFFFFFFFFFFFFFFF0, [0x7FFFFFFE], [255])

for used, name in enumerate(["snapshot-1.bin", "snapshot-1-unused.bin"]):
    sections = section(1, calibration(used)) + section(2, runs) + section(77, b"hello")
    header = bytes.fromhex("93525053" "0d0a1a0a")
    header += struct.pack("<IIIIQQ", 0x01020304, 1, 4, 3, 0x0123456789ABCDEF, 48 + len(sections))
    header += struct.pack("<Q", checksum(header))
    pathlib.Path(__file__).with_name(name).write_bytes(header + sections)
