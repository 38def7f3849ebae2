#!/usr/bin/env python3
"""Predicts, without a GPU, how long training steps take on one: counts the instructions of its kernels in their machine code.

cost.py FOLDER NVDISASM [--page FILE [--write]]

FOLDER holds NETWORK-PRODUCTS.cu and .cubin, which `cargo test --test kernels_compile` writes: kernels for compute capability 9.0 as NVRTC compiles
them. NVDISASM is NVIDIA's disassembler (PyPI: nvidia-cuda-nvdisasm). `make gpu-cost` runs both.

How it counts. A kernel made for a layer has one loop that holds most of its multiply-adds; it runs once for each slab of terms, and its trips follow
from the layer's numbers and the batch. In a data gradient's loop a part runs once a tap, which has several slabs. All other instructions are counted
once a warp, or once a slab, on both sides of a condition: an upper bound but for short loops, and near to what is executed. A pooled layer's forward
pass ends in one of two ways, of which a training step has the one and an evaluation the other. Counts are the same for every machine with this
compiler. The kernels that are no layer's are counted by the shortest way through a turn of their loop that does what the
kernel is for: the update of the weights, the gathering of images, the mean over positions, the logits with their loss or margins, and the gradients
of these and of pooled sums. None of a step's or an evaluation's is left out.

How it predicts. A multiprocessor has four schedulers, each of which issues one instruction a cycle at most; tensor cores take 4 cycles (NVIDIA's
peak) for each of the products here, and about 6.4 in published measurements of this kind of instruction. So a kernel's time is that of its
instructions, of its tensor cores or of its bytes, whichever is longest, with a range: 60 to 90 % of the issue slots, 4 to 6.4 cycles, 60 to 90 % of
the memory's rate. That is a prediction. No GPU was asked.

It does not know conflicts in shared memory, misses of caches and what else only a GPU tells.

Several GPUs share trials or batches by the rule in src/backend/cuda/sharing.rs, whose numbers are read from there.

--page compares the tables with those of a page, between two comments that name this command, and --write puts them there. Ends with 0; with 1 where
a kernel has more instructions an image than its ceiling, or the page has tables whose numbers differ by more than 3 %.
"""

import argparse
import collections
import functools
import heapq
import itertools
import math
import pathlib
import re
import subprocess
import sys

# One H100 SXM: multiprocessors, clock under load [Hz], memory [bytes/s]; schedulers of a multiprocessor (NVIDIA's data sheet and whitepaper; the
# clock is that of the data sheet's peaks).
MULTIPROCESSORS, CLOCK, MEMORY, SCHEDULERS = 132, 1.755e9, 3.35e12, 4
SHARE = (0.9, 0.6)
TENSOR_CYCLES = (4.0, 6.4)
# Instructions a cycle of one warp alone, which waits for its own results.
ALONE = (0.7, 0.4)
# Registers, bytes of shared memory, blocks and warps of a multiprocessor (NVIDIA's CUDA programming guide, compute capability 9.0).
REGISTERS, SHARED, BLOCKS, WARPS = 65536, 233_472, 32, 64
LANES = 100
# Warp instructions of all kernels but the update an image, at most.
CEILINGS = {
    ("listed-residual", "fused"): {"training": 1_173_000, "evaluation": 327_500},
    ("listed-residual", "split"): {"training": 585_100, "evaluation": 149_000},
    ("listed-residual", "pairs"): {"training": 467_000, "evaluation": 111_500},
    ("simple-cnn", "fused"): {"training": 414_200, "evaluation": 137_600},
    ("simple-cnn", "split"): {"training": 147_000, "evaluation": 47_200},
    ("simple-cnn", "pairs"): {"training": 98_500, "evaluation": 30_850},
    ("resnet-8", "fused"): {"training": 1_609_500, "evaluation": 495_500},
    ("resnet-8", "split"): {"training": 718_500, "evaluation": 211_500},
    ("resnet-8", "pairs"): {"training": 549_500, "evaluation": 157_000},
}
# Slabs whose products in pairs are summed apart from the others.
SLABS_LATE = int(re.search(r"#define SLABS_LATE (\d+)", (pathlib.Path(__file__).parents[2] / "kernels/product.cuh").read_text())[1])
# Leaves of a batch of 64, and the most instructions by which a warp updates 32 parameters from so many.
LEAVES, UPDATE = 8, 187


# Kinds of instructions. The rest is addresses, conditions, loops, pools and rounding.
KINDS = {
    "multiply-adds": re.compile(r"\bFFMA\b"),
    "products of tensor cores": re.compile(r"\bHMMA\b"),
    "loads from shared memory": re.compile(r"\bLDS\b"),
    "copies": re.compile(r"\b(LDGSTS|LDG|STG|STS)\b"),
}
REST = "rest"


def kinds(lines):
    """How many of some instructions are of each kind. Behind the last one the code is filled up."""
    kind = lambda line: next((kind for kind, pattern in KINDS.items() if pattern.search(line)), REST)
    return collections.Counter(kind(line) for line in lines if not line.startswith("NOP"))


def shortest(lines, labels, start, end, loads=None, stores=None):
    """The instructions of the shortest way from one to another, both included; of those with so many loads from memory and stores to it, where that
    is said. A way through a function that is called is none: those are for rare numbers. Nothing where there is no way."""
    before, ways = {}, [(1, start, 0, 0, None)]
    while ways:
        count, *at_once, last = heapq.heappop(ways)
        at, loaded, stored = way = tuple(at_once)
        if way in before:
            continue
        before[way], line = last, lines[at]
        loaded += loads is not None and bool(re.search(r"\bLDG\b", line))
        stored += stores is not None and bool(re.search(r"\bSTG\b", line))
        if loaded > (loads or 0) or stored > (stores or 0):
            continue
        if at == end:
            if (loaded, stored) == (loads or 0, stores or 0):
                found = []
                while way:
                    found.append(lines[way[0]])
                    way = before[way]
                return found[::-1]
            continue
        if re.search(r"\b(CALL|RET)\b", line):
            continue
        next = [labels[label] for label in re.findall(r"\.L_\w+", line)] if re.search(r"\b(BRA|BRX)\b", line) else []
        # One without a condition is always taken.
        if not re.match(r"(BRA(\.U)? `|BRX|EXIT)", line):
            next.append(at + 1)
        for to in next:
            heapq.heappush(ways, (count + 1, to, loaded, stored, way))
    return None


def loops(lines, labels):
    """Where loops begin and end, the longest first."""
    jumps = [(labels[label], at) for at, line in enumerate(lines) for label in re.findall(r"BRA.*?(\.L_\w+)", line) if label in labels]
    return sorted((jump for jump in jumps if jump[0] < jump[1]), key=lambda jump: jump[0] - jump[1])


def sides(lines, labels, start):
    """The instructions that only one answer of a condition leads to, for each of its two answers: of the condition from `start` on that has the most
    of them on both sides."""
    def follows(at):
        targets = [labels[label] for label in re.findall(r"\.L_\w+", lines[at])] if re.search(r"\bBRA\b", lines[at]) else []
        return targets + ([] if re.match(r"(BRA(\.U)? `|EXIT)", lines[at]) else [at + 1])

    def reached(at):
        seen, ways = set(), [at]
        while ways:
            at = ways.pop()
            if at < len(lines) and at not in seen:
                seen.add(at)
                ways += follows(at)
        return seen

    best = set(), set()
    for at in range(start, len(lines)):
        if len(to := follows(at)) == 2:
            one, other = map(reached, to)
            best = max(best, (one - other, other - one), key=lambda pair: min(map(len, pair)))
    return [[lines[at] for at in sorted(side)] for side in best]


def update(lines, labels, leaves):
    """Instructions by which a warp updates 32 parameters from a batch of so many leaves, by an optimizer that keeps one number beside a weight."""
    # The loop over parameters, which a thread goes through once, is the longest.
    start, end = loops(lines, labels)[0]
    # A weight, what is kept beside it, and the number of the parameter where not all are kept.
    once, loop = shortest(lines, labels, 0, start), shortest(lines, labels, start, end, leaves + 3, 2)
    if loop is None:
        sys.exit(f"expected a way through update that loads {leaves + 3} numbers and stores 2, found none; see update in {sys.argv[0]}")
    return len(once) + len(loop)


# Kernels of no layer that a step or an evaluation has, but for the update, and one that has no loop.
OTHERS = ["gather", "global_mean", "global_mean_backward", "dense_forward", "dense_backward", "unpool_1", "unpool_4", "store"]


class Turns:
    """The kernels of no layer: the instructions of what they repeat, by kind."""

    def __init__(self, lines, labels):
        self.lines, self.labels = lines, labels
        # Until its loop begins.
        self.once = {name: kinds(shortest(lines[name], labels[name], 0, loops(lines[name], labels[name])[0][0]) or []) for name in OTHERS}

    def turn(self, name, loads, stores, elements=1):
        """The instructions by which a thread computes an element: the shortest turn with so many loads and stores an element, of an innermost loop,
        which is for so many elements at most."""
        every = loops(self.lines[name], self.labels[name])
        inner = [loop for loop in every if not any(loop != other and loop[0] <= other[0] and other[1] <= loop[1] for other in every)]
        ways = [(many, shortest(self.lines[name], self.labels[name], *loop, many * loads, many * stores))
                for loop in inner for many in range(1, elements + 1)]
        found = [(len(way) / many, many, way) for many, way in ways if way]
        if not found:
            sys.exit(f"expected a loop of {name} with {loads} loads and {stores} stores an element, found none; see Turns in {sys.argv[0]}")
        _, many, way = min(found, key=lambda of: of[0])
        return scaled(kinds(way), 1 / many)

    def gather(self, size):
        """Of eight images of so many numbers, a warp's in the mean: one of eight warps finds out which images they are, and all copy."""
        lines, labels = self.lines["gather"], self.labels["gather"]
        groups, *within = loops(lines, labels)
        copies = [loop for loop in within if any("STG" in line for line in lines[loop[0] : loop[1] + 1])]
        search = [loop for loop in within if loop not in copies]
        # A number that the permutation puts behind the last example is permuted again: twice in the mean of eight side by side, about.
        one = kinds(lines[groups[0] : groups[1] + 1]) - sum((kinds(lines[a : b + 1]) for a, b in copies), collections.Counter())
        one += sum((kinds(lines[a : b + 1]) for a, b in search), collections.Counter())
        others = kinds(shortest(lines, labels, *groups))
        turns = math.ceil(8 * size / 256)
        return scaled(one, 1 / 8) + scaled(others, 7 / 8) + scaled(self.turn("gather", 2, 1), turns)

    def logits(self, inputs, classes, training):
        """Of an image, by a warp: the products, and the loss with its gradient or the margin."""
        lines, labels = self.lines["dense_forward"], self.labels["dense_forward"]
        inside = [loop for loop in loops(lines, labels) if any("FFMA" in line for line in lines[loop[0] : loop[1] + 1])]
        # The innermost loop multiplies, for some inputs a thread at a time; the one around it goes through a warp's images.
        start, end = inside[-1]
        products = kinds(lines[start : end + 1])
        image = min((loop for loop in inside if loop[0] < start and end < loop[1]), key=lambda loop: loop[1] - loop[0])
        rest = shortest(lines, labels, *image, None, classes if training else 1)
        if rest is None:
            sys.exit(f"expected a way through dense_forward that stores {classes if training else 1} numbers, found none; see Turns in {sys.argv[0]}")
        return kinds(rest) + scaled(products, inputs / 32 * classes / products["multiply-adds"])

    def mean(self, height, width):
        """Of the mean over positions of a channel: each row in turn."""
        lines, labels = self.lines["global_mean"], self.labels["global_mean"]
        rows = [shortest(lines, labels, *loop, width, 0) for loop in loops(lines, labels)]
        row = min((row for row in rows if row), key=len, default=None)
        if row is None:
            sys.exit(f"expected a loop of global_mean that loads {width} numbers, found none; see Turns in {sys.argv[0]}")
        around = shortest(lines, labels, *loops(lines, labels)[0], 0, 1)
        return kinds(around) + scaled(kinds(row), height)


def scaled(counts, by):
    return collections.Counter({kind: count * by for kind, count in counts.items()})


class Kernel:
    """A layer's kernel: its instructions a warp, by kind: those outside the loop over slabs, those inside, those inside that a data gradient goes
    through once a tap, and those by which sums of several slabs are added up; and its registers a thread and bytes of shared memory a block."""

    def __init__(self, lines, labels, registers, shared):
        self.registers, self.shared = registers, shared
        loops, jumps = {}, []
        for at, line in enumerate(lines):
            target = re.search(r"BRA.*?(\.L_\w+)", line)
            to = labels.get(target.group(1), at) if target else at
            if to < at:
                loops[to] = max(loops.get(to, 0), at)
            elif to > at:
                jumps.append((at, to))
        work = re.compile(r"\bHMMA\b" if any("HMMA" in line for line in lines) else r"\bFFMA\b")
        products = lambda start, end: sum(bool(work.search(line)) for line in lines[start : end + 1])
        start, end = max(loops.items(), key=lambda loop: products(*loop), default=(0, -1))
        # A kernel whose terms all fit one slab has no such loop.
        if 2 * products(start, end) < products(0, len(lines) - 1):
            start, end = 0, -1
        self.once, self.slab, self.tap = kinds(lines[:start] + lines[end + 1 :]), kinds(lines[start : end + 1]), collections.Counter()
        for search, last in loops.items():
            if start < search and last < end:
                # The search for the next tap is a loop. The first jump over it is taken when nothing is left to copy, the second while a tap has
                # slabs left; unless that leaves out the search alone, which is then not what is looked for here.
                over = [jump for jump in jumps if start <= jump[0] < search and last < jump[1] <= end]
                if len(over) > 1 and over[1][1] > last + 1:
                    self.tap = kinds(lines[over[1][0] + 1 : over[1][1]])
        # Nothing but sums lies between a jump that leaves them out and where it goes.
        other = re.compile(r"\b(HMMA|LDS|LDGSTS|BAR|BRA)\b")
        sums = [lines[at + 1 : to] for at, to in jumps if start <= at and to <= end and not any(other.search(line) for line in lines[at + 1 : to])]
        late = max(sums, key=lambda part: sum("FADD" in line for line in part), default=[])
        self.late = kinds(late) if sum("FADD" in line for line in late) >= 8 else collections.Counter()
        self.slab -= self.tap + self.late
        self.ends = functools.cache(lambda: sides(lines, labels, end + 1))

    def left_out(self, name, training):
        """The instructions of one of the two ways in which a pooled layer's forward pass ends: the other one's in training, or in an evaluation. The
        way of a training step stores what the pool chooses too, in at most four bytes at a time."""
        stores = lambda side: sum(bool(re.search(r"\bSTG\b", line)) for line in side)
        of_evaluation, of_training = sorted(self.ends(), key=stores)
        words = lambda side: sum(bool(re.search(r"\bSTG\.E(\.U8|\.U16)? ", line)) for line in side)
        if not 0 < stores(of_evaluation) < stores(of_training) or words(of_training) <= words(of_evaluation):
            sys.exit(f"expected two ends of {name}, one of which stores what the pool chooses, found none; see Kernel in {sys.argv[0]}")
        return kinds(of_evaluation if training else of_training)

    def warp(self, slabs, taps, left_out=collections.Counter()):
        once = self.once - left_out
        parts = [(once, 1), (self.slab, slabs), (self.tap, taps), (self.late, slabs // SLABS_LATE)]
        return {kind: sum(part[kind] * times for part, times in parts) for kind in [*KINDS, REST]}

    def resident(self, warps):
        """Warps that a multiprocessor has room for, in blocks of so many."""
        registers = math.ceil(self.registers / 8) * 8 * 32 * warps
        return warps * min(REGISTERS // registers, SHARED // max(self.shared, 1), BLOCKS, WARPS // warps)


def disassembled(nvdisasm, cubin):
    text = subprocess.run([nvdisasm, cubin], capture_output=True, text=True, check=True).stdout
    kernels, labels, name = {}, {}, None
    for line in text.splitlines():
        if section := re.match(r"\.text\.(\w+):", line):
            name = section.group(1)
            kernels[name], labels[name] = [], {}
        elif name and (label := re.match(r"(\.L_\w+):", line)):
            labels[name][label.group(1)] = len(kernels[name])
        elif name and (instruction := re.match(r"\s+/\*[0-9a-f]+\*/\s+(.*?);", line)):
            kernels[name].append(instruction.group(1).strip())
    registers = dict(re.findall(r"EIATTR_REGCOUNT.*?index@\((\w+)\).*?\.word\s+(0x[0-9a-f]+)", text, re.S))
    shared = dict(re.findall(r"^\.nv\.shared\.(\w+):\s+\.zero\s+(\d+)", text, re.M))
    found = {name: Kernel(lines, labels[name], int(registers[name], 16), int(shared.get(name, 0))) for name, lines in kernels.items()}
    return found, Turns(kernels, labels), {2**power: update(kernels["update"], labels["update"], 2**power) for power in range(6)}


def layers(source):
    """Layer number -> its numbers; (layer number, kernel) -> its tile; and -> the most images of a lane that it is for, where that is limited."""
    found = {}
    for number, text in re.findall(r"struct Layer(\d+) \{\s*static constexpr int (.*?);", source):
        found[int(number)] = {name: int(value) for name, value in re.findall(r"(\w+) = (-?\d+)", text)}
    tiles = {}
    pattern = r"__launch_bounds__\((\d+), (\d+)\) (\w+)_(\d+)\(\w+\) \{\s*__shared__ __align__\(16\) float space\[\w+<Layer\d+, Tile<(\d+), (\d+), (\d+), (\d+), (\d+)>>"
    for threads, blocks, kernel, number, *tile in re.findall(pattern, source):
        rows, columns, down, across, along = map(int, tile)
        tiles[int(number), kernel] = {"threads": int(threads), "blocks": int(blocks), "rows": rows * down, "columns": columns * across, "along": along}
    few = re.findall(r"// (\w+)_(\d+) is for at most (\d+) images of a lane", source)
    return found, tiles, {(int(number), kernel): int(images) for kernel, number, images in few}


def all_kinds(counts):
    return {kind: counts[kind] for kind in [*KINDS, REST]}


def leaf(batch):
    """Images of a leaf of the batch: `BatchPartition::new` of src/backend/cuda/partition.rs."""
    return max(min(max(batch // 8, 1), 32), math.ceil(batch / 32))


def forward(layer, tile, images):
    terms = layer["kernel"] * layer["run"]
    slabs = math.ceil(terms / 16)
    return math.ceil(images * layer["height"] * layer["width"] / tile["rows"]) * math.ceil(layer["out"] / tile["columns"]), slabs


def filter_gradient(layer, tile, images):
    """Blocks, and slabs of a block."""
    rows, length = layer["kernel"] * layer["run"] + 1, leaf(images)
    tiles = math.ceil(rows / tile["rows"]) * math.ceil(layer["out"] / tile["columns"])
    return tiles * math.ceil(images / length), math.ceil(min(length, images) * layer["height"] * layer["width"] / (16 * tile["along"]))


def data_gradient(layer, tile, images):
    """Blocks, and slabs of a block in the mean: as kernels/data_gradient.cu goes through taps."""
    stride, kernel = layer["stride"], layer["kernel"]
    width, height = layer["in_width"] // stride, layer["in_height"] // stride
    rows = images * width * height
    blocks = slabs = 0

    def taps(low, high, size):
        return sum((low - k) % stride == 0 and high >= k and math.floor((low - k) / stride) < size for k in range(kernel))

    seen = collections.Counter()
    for start in range(0, rows, tile["rows"]):
        seen[start // images, (min(start + tile["rows"], rows) - 1) // images] += 1
    for (one, other), count in seen.items():
        for y in range(stride):
            for x in range(stride):
                line = one // width == other // width
                place = lambda at, of: at * stride + of + layer["in_before"]
                down = taps(place(one // width, y), place(other // width, y), layer["height"])
                right = taps(place(one % width if line else 0, x), place(other % width if line else width - 1, x), layer["width"])
                blocks += count
                slabs += count * down * right * math.ceil(layer["out"] / 16)
    return blocks * math.ceil(layer["in_channels"] / tile["columns"]), slabs / blocks


SHAPES = {"forward": forward, "data_gradient": data_gradient, "filter_gradient": filter_gradient}


class Program:
    def __init__(self, folder, nvdisasm, name):
        self.kernels, self.turns, self.updates = disassembled(nvdisasm, folder / f"{name}.cubin")
        self.layers, self.tiles, self.few = layers((folder / f"{name}.cu").read_text())
        # Instructions by which a warp stores 32 weights anew, where products read them in another form.
        self.store = sum((self.turns.once["store"] + self.turns.turn("store", 1, 1)).values()) if name.endswith("-pairs") else 0

    def rows(self, images, training, low=True):
        """For each kernel of a layer: its name, blocks a lane, warps of a block, and instructions of a warp by kind; without those of low tiles, or
        with them where they are used."""
        for (number, kernel), tile in sorted(self.tiles.items()):
            # A kernel with low tiles takes the other's place where a lane has few images.
            if kernel.startswith("low_"):
                continue
            name, twin = f"{kernel}_{number}", (number, f"low_{kernel}")
            if low and images <= self.few.get(twin, 0):
                name, tile = f"low_{name}", self.tiles[twin]
            if kernel == "forward" or training:
                layer, code = self.layers[number], self.kernels[name]
                blocks, slabs = SHAPES[kernel](layer, tile, images)
                slabs_a_tap = math.ceil(layer["out"] / 16) if kernel == "data_gradient" else 1
                if slabs_a_tap > 1 and not code.tap:
                    sys.exit(f"expected a part of {name} that is gone through once a tap, found none; see Kernel in {sys.argv[0]}")
                left_out = code.left_out(name, training) if kernel == "forward" and layer["pooled"] else collections.Counter()
                yield name, blocks, tile["threads"] // 32, code.warp(slabs, slabs / slabs_a_tap, left_out)
        yield from self.others(images, training)

    def others(self, images, training):
        """Rows as those of `rows`, of the kernels of no layer, but for the update, whose blocks have 8 warps."""
        turns, (*_, last) = self.turns, [self.layers[number] for number in sorted(self.layers)]

        def each(name, threads, counts):
            # A thread takes an element, and a block 256.
            return name, math.ceil(images * threads / 256), 8, all_kinds(turns.once[name] + counts)

        yield "gather", math.ceil(images / 8), 8, all_kinds(turns.once["gather"] + turns.gather(self.image()))
        groups = math.ceil(images / leaf(images))
        image, length = turns.logits(last["run"], last["out"], training), math.ceil(min(leaf(images), images) / 8)
        yield "dense_forward", groups, 8, all_kinds(turns.once["dense_forward"] + scaled(image, length))
        if mean := self.mean():
            yield each("global_mean", mean["out"], turns.mean(mean["height"], mean["width"]))
        if not training:
            return
        yield "clock_step", 1 / LANES, 1, all_kinds(kinds(turns.lines["clock_step"]))
        yield self.backward(images, last, rectified=not mean and not self.layers[max(self.layers) - 1]["pooled"])
        if mean:
            yield each("global_mean_backward", mean["height"] * mean["width"] * mean["out"], turns.turn("global_mean_backward", 2, 1, 4))
        for number, layer in self.layers.items():
            if layer["pooled"] and (number, "data_gradient") in self.tiles:
                channels = 4 if layer["out"] % 4 == 0 else 1
                name = f"unpool_{channels}"
                yield each(name, layer["height"] * layer["width"] * layer["out"] // 4 // channels, turns.turn(name, 2, 4))

    def backward(self, images, last, rectified):
        """The row of the gradient of the last layer's inputs, of which a thread takes one of eight images. All of a block's threads are counted as
        if they loaded the gradients of the logits, which half of them do."""
        turn = self.turns.turn("dense_backward", 1 + last["out"] + 8 * rectified, 8)
        blocks = math.ceil(images / 8) * math.ceil(last["run"] / 256)
        return "dense_backward", blocks, 8, all_kinds(self.turns.once["dense_backward"] + turn)

    def image(self):
        """Numbers of an image."""
        first = self.layers[min(self.layers)]
        return first["in_height"] * first["in_width"] * first["in_channels"]

    def mean(self):
        """The last convolution, where the last layer's inputs are the means of its channels; else None."""
        *_, before, last = [self.layers[number] for number in sorted(self.layers)]
        return before if last["run"] == before["out"] and before["height"] * before["width"] > 1 else None

    def instructions(self, images, training):
        """Warp instructions and tensor products an image."""
        rows = [(blocks * warps / images, warp) for _, blocks, warps, warp in self.rows(images, training)]
        return sum(times * sum(warp.values()) for times, warp in rows), sum(times * warp["products of tensor cores"] for times, warp in rows)

    def bytes(self, training):
        """Bytes an image that go through memory: each map and gradient written once and read once by each kernel."""
        # The gathered images; the map of a mean, read, and its gradient, of which the map is read again.
        total = self.image() + 4 * self.layers[min(self.layers)]["in_len"]
        if mean := self.mean():
            total += (12 if training else 4) * mean["height"] * mean["width"] * mean["out"]
        for number, layer in self.layers.items():
            if (number, "forward") not in self.tiles:
                total += (8 if training else 4) * layer["run"]
                continue
            pooled = 4 if layer["pooled"] else 1
            sums = layer["height"] * layer["width"] * layer["out"]
            total += 4 * (layer["in_len"] + layer["to_len"])
            if training:
                total += sums // 4 if pooled == 4 else 0
                total += 4 * layer["in_len"] + 8 * sums / pooled
                if (number, "data_gradient") in self.tiles:
                    total += 4 * layer["in_len"] + (12 if pooled == 4 else 4) * sums
        return total

    def other_bytes(self):
        """Bytes a training image: of patches, written and read for each product, where cuBLAS multiplies; and of the gradients of pooled
        sums, written once and read by two kernels, where the gradient of the layer's input is needed too."""
        patches = unpooled = 0
        for number, layer in self.layers.items():
            if (number, "forward") in self.tiles:
                passes = [(number, kernel) in self.tiles for kernel in SHAPES]
                patches += 8 * sum(passes) * layer["height"] * layer["width"] * layer["kernel"] * layer["run"]
                if layer["pooled"] and (number, "data_gradient") in self.tiles:
                    unpooled += 12 * layer["height"] * layer["width"] * layer["out"]
        return patches, unpooled

    def parameters(self):
        return sum((layer["kernel"] * layer["run"] + 1) * layer["out"] for layer in self.layers.values())

    def seconds(self, images, lanes, training, low=True):
        """The range of a step's time, or of an evaluation's, and what bounds its longest kernel."""
        ranges, longest = [0.0, 0.0], (0.0, "")
        rows = [(blocks, warps, sum(warp.values()), warp["products of tensor cores"]) for _, blocks, warps, warp in self.rows(images, training, low)]
        leaves = math.ceil(images / leaf(images))
        if training:
            rows.append((math.ceil(self.parameters() / 256), 8, self.updates[leaves], 0))
        if self.store:
            rows.append((math.ceil(self.parameters() / 256), 8, self.store, 0))
        for blocks, warps, instructions, tensor in rows:
            # Blocks of the busiest multiprocessor.
            each = math.ceil(blocks * lanes / MULTIPROCESSORS)
            for end in range(2):
                issue = each * warps * instructions / SCHEDULERS / SHARE[end]
                products = each * warps * tensor * TENSOR_CYCLES[end] / SCHEDULERS
                alone = instructions / ALONE[end]
                cycles = max(issue, products, alone)
                ranges[end] += cycles / CLOCK
                bound = "waiting" if cycles == alone else "tensor cores" if cycles == products else "instructions"
                longest = max(longest, (cycles, bound))
        for end in range(2):
            memory = self.bytes(training) * images * lanes / MEMORY / SHARE[end]
            if training:
                memory += 4 * (2 * leaves + 4) * self.parameters() * lanes / MEMORY / SHARE[end]
            memory += 8 * bool(self.store) * self.parameters() * lanes / MEMORY / SHARE[end]
            if memory > ranges[end]:
                longest = (memory, "memory")
            ranges[end] = max(ranges[end], memory)
        return ranges, longest[1]

    def flop(self, training):
        total = 0
        for number, layer in self.layers.items():
            one = 2 * layer["height"] * layer["width"] * layer["kernel"] * layer["run"] * layer["out"]
            total += one * (1 + training * (1 + ((number, "data_gradient") in self.tiles or (number, "forward") not in self.tiles)))
        return total


def shown(seconds):
    low, high = seconds
    unit, scale = ("s", 1) if low >= 1 else ("ms", 1e3) if low >= 1e-3 else ("µs", 1e6)
    return " to ".join(f"{float(f'{value * scale:.3g}'):,g}" for value in seconds) + f" {unit}"


# The page that has the steps-to-result of the cells measured so far of figure 1b of the paper.
MEASURED = "docs/experiments/paper.md"
BATCH_SIZES = [2**power for power in range(1, 15)]
# A cell's steps, its evaluations and the race of configs/mnist-simple-cnn-momentum.toml.
MAX_STEPS, EVALUATE_EVERY, RACE = 40_000, 16, 3
# Validation images that a trial of an evaluation looks at until it is decided: src/training/evaluation.rs stops where the goal is missed.
EVALUATED = 200


# GPUs of a host with several, and the numbers of the rule by which they share a batch: `sharing.rs` has them.
GPUS = 8
# Products -> the constant of `sharing.rs` that has their rate.
RATES = {"fused": "IN_32_BITS", "split": "SPLIT", "pairs": "PAIRS"}
WORDS = {"fused": "fused products", "split": "split products", "pairs": "products in pairs"}


def sharing_rule(file):
    """Constant -> its value."""
    return {name: float(value) for name, value in re.findall(r"^const (\w+): f64 = ([\d.e]+);", file.read_text(), re.MULTILINE)}


def shared(program, products, rule, batch):
    """GPUs that share a batch where the program chooses: `Sharing::ranks_a_batch` of src/backend/sharing.rs."""
    rate = rule[RATES[products]]
    examples = 4 * program.parameters() / rule["LINKED"] / rule["PART"] * rate / program.flop(True)
    return max(size for size in (1, 2, 4, 8) if size == 1 or batch // size >= 1 + examples * (size - 1))


def on_several(program, rule, batch, size):
    """The range of a step's time on GPUS GPUs, of which each group of `size` shares its batches, and the groups the trials."""
    lanes = math.ceil(LANES * size / GPUS)
    exchange = lanes * 4 * program.parameters() * (size - 1) / rule["LINKED"]
    return [end + exchange for end in program.seconds(math.ceil(batch / size), lanes, True)[0]]


def steps_to_result(page):
    """Sparsity -> the steps-to-result at each of BATCH_SIZES, by the page's first table of them. Where a cell is not measured, its steps are taken to
    be those of the next smaller batch size that is."""
    lines = iter(page.split("### Steps-to-result", 1)[1].strip().splitlines())
    heads = [float(cell) for cell in re.findall(r"sparsity ([\d.]+)", next(lines))]
    next(lines)
    found = {sparsity: [] for sparsity in heads}
    for batch, line in zip(BATCH_SIZES, lines):
        cells = [cell.strip().replace(",", "") for cell in line.strip("| ").split("|")]
        if cells[0] != str(batch):
            break
        for steps, cell in zip(found.values(), cells[1:], strict=True):
            steps.append(int(cell) if cell.isdigit() else steps[-1])
    return {sparsity: steps + steps[-1:] * (len(BATCH_SIZES) - len(steps)) for sparsity, steps in found.items()}


def figure_1b(program, measured, race, step_of=None):
    """The range of the minutes of figure 1b's cells with 100 trials, each cell going on to `race` times its steps-to-result `measured`, on one GPU,
    or on several of which `step_of` says the range of a step's time."""
    minutes = [0.0, 0.0]
    evaluation = program.seconds(EVALUATED, math.ceil(LANES / GPUS) if step_of else LANES, False)[0]
    for number, batch in enumerate(BATCH_SIZES):
        step = step_of(batch) if step_of else program.seconds(batch, LANES, True)[0]
        for steps in measured.values():
            steps = min(race * steps[number], MAX_STEPS)
            for end in range(2):
                minutes[end] += steps * (step[end] + evaluation[end] / EVALUATE_EVERY) / 60
    return minutes


def tables(programs, rule, measured):
    """The tables, and whether an image costs more than its ceiling."""
    lines = ["| network | products | an image of | warp instructions | of these on tensor cores | multiply-adds needed, / 32 | ceiling | bytes to and from memory |",
             "|---|---|---|---|---|---|---|---|"]
    failed = False
    for (network, products), program in programs.items():
        for training in (True, False):
            instructions, tensor = program.instructions(1024, training)
            kind = "training" if training else "evaluation"
            ceiling = CEILINGS[network, products][kind]
            failed |= instructions > ceiling
            useful = program.flop(training) / 2 / 32
            lines.append(f"| {network} | {products} | {kind} | {instructions:,.0f} | {tensor:,.0f} | {useful:,.0f} | {ceiling:,} | "
                         f"{program.bytes(training):,.0f} |")
    # The update's kernel is the same in all of them, but for the whims of the compiler.
    instructions = max(program.updates[LEAVES] for program in programs.values())
    failed |= instructions > UPDATE
    lines.append(f"| all | all | 32 parameters' update from {LEAVES} leaves | {instructions} | 0 | · | {UPDATE} | {32 * 4 * (2 * LEAVES + 4):,} |")
    lines += ["", f"| network | products | kernel | {' | '.join([*KINDS, REST])} | registers | shared memory | warps a multiprocessor |",
              "|---|---|---|" + "---|" * (len(KINDS) + 4)]
    for (network, products), program in programs.items():
        if network == "simple-cnn":
            for name, blocks, warps, counts in program.rows(1024, True):
                # One warp, whatever the batch.
                if name == "clock_step":
                    continue
                code, cells = program.kernels[name], [f"{count * blocks * warps / 1024:,.0f}" for count in counts.values()]
                lines.append(f"| {network} | {products} | `{name}` | {' | '.join(cells)} | {code.registers} | {code.shared:,} B | {code.resident(warps)} |")
    lines += ["", "| network | products | case | predicted time | bound by | predicted million images a second | share of the 32-bit peak |",
              "|---|---|---|---|---|---|---|"]
    peak = MULTIPROCESSORS * SCHEDULERS * 32 * 2 * CLOCK
    for (network, products), program in programs.items():
        cases = [(f"a step of batch size {batch:,} × {LANES} trials", batch, True, True) for batch in (2, 16, 64, 1024, 16384)]
        cases.insert(1, (f"{cases[0][0]}, with high tiles alone", 2, True, False))
        cases.insert(3, (f"{cases[2][0]}, with high tiles alone", 16, True, False))
        if network == "listed-residual":
            cases = [case for case in cases if case[1] == 64]
        for case, images, training, low in [*cases, (f"{EVALUATED} images of an evaluation × {LANES} trials", EVALUATED, False, True)]:
            seconds, bound = program.seconds(images, LANES, training, low)
            rates = [LANES * images / end for end in reversed(seconds)]
            share = [rate * program.flop(training) / peak for rate in rates]
            lines.append(f"| {network} | {products} | {case} | {shown(seconds)} | {bound} | {rates[0] / 1e6:.2f} to {rates[1] / 1e6:.2f} | "
                         f"{share[0]:.0%} to {share[1]:.0%} |")
    simple = programs["simple-cnn", "fused"]
    patches, unpooled = simple.other_bytes()
    full = lambda size: f"{1e9 * size / MEMORY:.0f} ns"
    each = ["{:.0f} to {:.0f} ns".format(*(1e9 * end / 1024 / LANES for end in programs["simple-cnn", products].seconds(1024, LANES, True)[0]))
            for products in RATES]
    lines += ["", f"A training image of Simple-CNN takes {each[0]} with fused products, {each[1]} with split ones, {each[2]} with pairs. Its {simple.bytes(True):,.0f} bytes take "
              f"{full(simple.bytes(True))} of the memory at its full rate; {unpooled:,.0f} of them, {full(unpooled)}, are the second convolution's gradient, unpooled. "
              f"Patches for cuBLAS are {patches:,.0f} bytes more, {full(patches)}.", ""]
    for products in RATES:
        (low, high), shipped = (figure_1b(programs["simple-cnn", products], measured, race) for race in (1, RACE))
        lines.append(f"Figure 1b of the paper (MNIST, Momentum, 14 batch sizes, 4 sparsities, 100 trials) with {WORDS[products]}: {shipped[0]:.0f} to {shipped[1]:.0f} minutes as configured, "
                     f"with `race = {RACE}`; {low:.1f} to {high:.1f}, in the middle {(low + high) / 2:.1f}, with `race = true`. Predicted, without scores of connections.")
    several = []
    lines += ["", f"| products | batch size | a step on {GPUS} GPUs that share the trials | that share the batch | the program chooses |", "|---|---|---|---|---|"]
    for products in RATES:
        program = programs["simple-cnn", products]
        size_of = lambda batch: shared(program, products, rule, batch)
        for batch in (128, 1024, 4096, 16384):
            alone, all_of_them = (shown(on_several(program, rule, batch, size)) for size in (1, GPUS))
            lines.append(f"| {products} | {batch:,} | {alone} | {all_of_them} | {size_of(batch)} a batch |")
        low, high = figure_1b(program, measured, RACE, lambda batch: on_several(program, rule, batch, size_of(batch)))
        several.append(f"{low:.0f} to {high:.0f} minutes with {WORDS[products]}")
    lines += ["", f"Figure 1b as configured on {GPUS} GPUs: {', '.join(several)}. Predicted, without scores of connections."]
    return "\n".join(lines) + "\n", failed


NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def agree(one, other):
    """Whether two lines differ in nothing but numbers, and in these by at most 3 % or a unit of the last digit shown: NVRTC does not always make the
    same code of a source. In 40 compilations a kernel's instructions differed by up to 1.5 %, those of a whole network by 0.02 %."""
    if NUMBER.sub("0", one) != NUMBER.sub("0", other):
        return False
    for a, b in zip(NUMBER.findall(one), NUMBER.findall(other)):
        digits = max(len(text.partition(".")[2]) for text in (a, b))
        a, b = (float(text.replace(",", "")) for text in (a, b))
        if abs(a - b) > max(0.03 * max(a, b), 1.001 * 10**-digits):
            return False
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("nvdisasm")
    parser.add_argument("--page", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    programs = {tuple(file.stem.rsplit("-", 1)): Program(arguments.folder, arguments.nvdisasm, file.stem) for file in sorted(arguments.folder.glob("*.cubin"))}
    if set(programs) != set(CEILINGS):
        sys.exit(f"expected the kernels of {sorted(CEILINGS)} in {arguments.folder}, found {sorted(programs)}; run: cargo test --test gpu kernels_compile")
    root = pathlib.Path(__file__).parents[2]
    text, failed = tables(programs, sharing_rule(root / "src/backend/cuda/sharing.rs"), steps_to_result((root / MEASURED).read_text()))
    print(text, end="")
    if failed:
        sys.exit("expected at most as many instructions an image as the ceilings say, found more (above); make the kernels shorter, or say why they grew and "
                 "raise the ceiling in tests/gpu/cost.py")
    if arguments.page:
        page = arguments.page.read_text()
        begin, end = "<!-- made by make gpu-cost -->\n", "<!-- end of what make gpu-cost made -->"
        before, rest = page.split(begin)
        there, after = rest.split(end)
        if arguments.write:
            arguments.page.write_text(f"{before}{begin}{text}{end}{after}")
            return
        # A line that only one of them has is compared with nothing, and differs.
        pairs = itertools.zip_longest(there.splitlines(), text.splitlines(), fillvalue="(no line)")
        differ = [f"page: {old}\nmade: {new}" for old, new in pairs if not agree(old, new)]
        if differ:
            sys.exit("\n".join([*differ, f"expected these tables in {arguments.page}, found others (above); run: make gpu-cost WRITE=1"]))


if __name__ == "__main__":
    main()
