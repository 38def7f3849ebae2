#!/usr/bin/env python3
"""Writes a small study into FOLDER: make_study.py FOLDER.

Its data have Fashion-MNIST's shape; each class has bright rows of its own, under noise, and is soon learnt."""

import pathlib
import random
import struct
import sys

CONFIGURATION = """[workload]
dataset = "fashion-mnist"
network = "simple-cnn"
optimizer = "momentum"
goal_error = 0.05
max_steps = 240
evaluate_every = 4

[grid]
batch_sizes = [4, 16]
sparsities = [0, 0.9]
trials = 8

[pruning]
examples = 100

[search]
learning_rate = { min = 1e-4, max = 1e2, scale = "log" }
momentum = { min = 0.5, max = 0.95, scale = "reverse-log" }

[data]
source = "own"

[execution]
race = false
threads = 1
checkpoint_seconds = 1
"""


def write(folder, name, count, numbers):
    labels = bytes(numbers.randrange(10) for _ in range(count))
    images = bytearray()
    for label in labels:
        for row in range(28):
            bright = 100 if row // 2 == label + 2 else 0
            images += bytes(byte // 2 + bright for byte in numbers.randbytes(28))
    (folder / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">4I", 0x803, count, 28, 28) + images)
    (folder / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, count) + labels)


def main():
    folder = pathlib.Path(sys.argv[1])
    data = folder / "data" / "fashion-mnist"
    data.mkdir(parents=True, exist_ok=True)
    numbers = random.Random(5)
    write(data, "train", 600, numbers)
    write(data, "t10k", 90, numbers)
    (folder / "small.toml").write_text(CONFIGURATION)


if __name__ == "__main__":
    main()
