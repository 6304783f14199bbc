#!/usr/bin/env python3
"""What Nsight Compute saw, as tables: kernels by the time they lose.

Usage: gpu-check-kernels.py RATE FILE...  RATE: the memory's, in GB/s.  A FILE is what ncu --csv --print-units base wrote
of the metrics gpu__time_duration.sum and dram__bytes.sum.  For each, a Markdown table of its launches, those of the same
kernel, grid and block together: how many, the time and bytes of one, the least time for these bytes, which part of its
time that is, and how much all of them take longer than that.  A kernel that computes much loses without being bad.
"""
import csv
import os
import re
import sys

SHOWN, WIDTH = 30, 72


def launches(path):
    """{(kernel, grid, block): [(nanoseconds, bytes) of each]}"""
    with open(path, newline="") as file:
        lines = [line for line in file if line.startswith('"')]
    single = {}
    for row in csv.DictReader(lines):
        try:
            value = float(row["Metric Value"].replace(",", ""))
        except ValueError:
            continue  # not measured
        name = re.sub(r"^void |\(anonymous namespace\)::|<unnamed>::|\(.*\)$", "", row["Kernel Name"])
        launch = single.setdefault(row["ID"], {"which": (name, row["Grid Size"], row["Block Size"])})
        launch[row["Metric Name"]] = value
    found = {}
    for launch in single.values():
        if "gpu__time_duration.sum" in launch:
            pair = launch["gpu__time_duration.sum"], launch.get("dram__bytes.sum", 0.0)
            found.setdefault(launch["which"], []).append(pair)
    return found


def rows(found, rate):
    for (name, grid, block), all_of_it in found.items():
        n = len(all_of_it)
        time, size = (sum(pair[i] for pair in all_of_it) / n for i in range(2))
        least = size / rate  # GB/s are bytes a nanosecond
        yield n * (time - least), n, time, size, least, f"{name[:WIDTH]} {grid} × {block}"


def table(path, rate):
    found = launches(path)
    total = sum(pair[0] for group in found.values() for pair in group)
    count = sum(map(len, found.values()))
    print(f"\n### Kernels of {os.path.basename(path).removesuffix('.csv')}: {count} launches, {total / 1e3:.0f} µs\n")
    print("| lost, µs | of all | launches | µs each | KB each | least, µs | of floor | kernel, grid, block |")
    print("|---|---|---|---|---|---|---|---|")
    for lost, n, time, size, least, what in sorted(rows(found, rate), reverse=True)[:SHOWN]:
        print(f"| {lost / 1e3:.1f} | {100 * lost / total:.1f} % | {n} | {time / 1e3:.1f} | {size / 1e3:.0f} | "
              f"{least / 1e3:.1f} | {least / time:.2f} | {what.replace('|', '/')} |")


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    for path in sys.argv[2:]:
        if os.path.getsize(path):
            table(path, float(sys.argv[1]))


if __name__ == "__main__":
    main()
