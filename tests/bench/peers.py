"""Speed of PyTorch and JAX on this machine with the same work as dps, in the same minutes.

    peers.py FOLDER [training] [evaluation] [sparse] [ranks] [cell] [--quick] [--whole] [--rounds N] [--turn SECONDS] [--json FILE]

FOLDER has dps-train and the program of `cargo bench --bench training` under the name dps-bench. The contenders of a comparison take turns, a
slice of time each, on the same cores (by affinity), so that whatever else the machine does hits all alike. A rate is the median over the
rounds; a ratio is dps over the best peer, the median over the rounds of that round's ratio, with the range of the middle half. A peer that
cannot be had is named, and its column stays empty.

The same work: 32-bit floats, the network of the paper, batches gathered by random indices from normalised images in memory, softmax
cross-entropy, momentum 0.9. PyTorch runs channels-last: eager, and with the whole step in one torch.compile; JAX jits the whole step.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from studies import Stepper, Studies, quartiles

IMAGES = 8000
SIDES = {"simple-cnn": (28, 1), "resnet-8": (32, 3)}
MOMENTUM, RATE = 0.9, 1e-4
PEERS = ["torch-eager", "torch-compile", "jax-jit"]


# ---- the peers, each in a process of its own ----------------------------------------------------------------------------------


def shapes(network):
    """Convolutions as (kernel, in, out, stride), and the inputs of the last layer."""
    if network == "simple-cnn":
        return [(5, 1, 32, 1), (5, 32, 64, 1)], 1024
    convolutions = [(3, 3, 16, 1)]
    for before, after, stride in [(16, 16, 1), (16, 32, 2), (32, 64, 2)]:
        convolutions += [(3, before, after, stride), (3, after, after, 1)]
    return convolutions, 64


def torch_forward(network):
    import torch
    import torch.nn.functional as F

    def simple(p, x):
        for i in (0, 2):
            x = F.max_pool2d(F.relu(F.conv2d(x, p[i], p[i + 1])), 2)
        return F.linear(x.flatten(1), p[4], p[5])

    def same(x, w, b, stride):
        # TensorFlow's SAME: for stride 2 on an even size the extra row and column are at the end.
        return F.conv2d(x, w, b, padding=1) if stride == 1 else F.conv2d(F.pad(x, (0, 1, 0, 1)), w, b, stride=2)

    def resnet(p, x):
        x = same(x, p[0], p[1], 1)
        for block, (stride, channels) in enumerate([(1, 16), (2, 32), (2, 64)]):
            i = 2 + 4 * block
            h = same(F.relu(x), p[i], p[i + 1], stride)
            h = same(F.relu(h), p[i + 2], p[i + 3], 1)
            if stride == 2:
                x = F.avg_pool2d(x, 2)
                x = torch.cat([x, torch.zeros_like(x)], dim=1)
            x = x + h
        return F.linear(F.relu(x).mean((2, 3)), p[-2], p[-1])

    return simple if network == "simple-cnn" else resnet


def torch_images(network):
    """Normalised images and their labels."""
    import torch

    side, channels = SIDES[network]
    return torch.randn(IMAGES, channels, side, side).to(memory_format=torch.channels_last), torch.randint(10, (IMAGES,))


def torch_parameters(network):
    """Weights and biases in turns, in forward order."""
    import torch

    convolutions, inputs = shapes(network)
    p = []
    for kernel, before, after, _ in convolutions:
        weight = torch.randn(after, before, kernel, kernel) / (kernel * kernel * before) ** 0.5
        p += [weight.to(memory_format=torch.channels_last), torch.zeros(after)]
    return p + [torch.randn(10, inputs) / inputs**0.5, torch.zeros(10)]


def torch_contender(kind, network, batch, threads):
    import torch
    import torch.nn.functional as F

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    images, labels = torch_images(network)
    p = torch_parameters(network)
    v = [torch.zeros_like(t) for t in p]
    forward = torch_forward(network)

    if kind == "evaluate-torch":
        errors = torch.compile(lambda p, x, y: (forward(p, x).argmax(1) != y).sum())

        def step():
            with torch.no_grad():
                return sum(int(errors(p, images[i : i + batch], labels[i : i + batch])) for i in range(0, 6000, batch))

        return torch.__version__, step, 6000

    if kind == "torch-eager":
        for t in p:
            t.requires_grad_()

        def step():
            index = torch.randint(IMAGES, (batch,))
            gradients = torch.autograd.grad(F.cross_entropy(forward(p, images[index]), labels[index]), p)
            with torch.no_grad():
                torch._foreach_mul_(v, MOMENTUM)
                torch._foreach_add_(v, gradients)
                torch._foreach_add_(p, v, alpha=-RATE)

        return torch.__version__, step, batch

    def whole(p, v, index):
        loss = lambda p: F.cross_entropy(forward(p, images[index]), labels[index])
        gradients = torch.func.grad(loss)(p)
        v = [MOMENTUM * a + g for a, g in zip(v, gradients)]
        return [a - RATE * b for a, b in zip(p, v)], v

    compiled = torch.compile(whole)

    def step():
        nonlocal p, v
        with torch.no_grad():
            p, v = compiled(p, v, torch.randint(IMAGES, (batch,)))

    return torch.__version__, step, batch


def jax_contender(kind, network, batch, _threads):
    import jax
    import jax.numpy as jnp
    import numpy as np

    random = np.random.default_rng(0)
    side, channels = SIDES[network]
    images = jnp.asarray(random.standard_normal((IMAGES, side, side, channels), np.float32))
    labels = jnp.asarray(random.integers(10, size=IMAGES))
    convolutions, inputs = shapes(network)
    p = []
    for kernel, before, after, _ in convolutions:
        p += [random.standard_normal((kernel, kernel, before, after), np.float32) / (kernel * kernel * before) ** 0.5, np.zeros(after, np.float32)]
    p += [random.standard_normal((inputs, 10), np.float32) / inputs**0.5, np.zeros(10, np.float32)]
    p = [jnp.asarray(t) for t in p]
    v = [jnp.zeros_like(t) for t in p]

    def convolution(x, w, b, stride, padding):
        return jax.lax.conv_general_dilated(x, w, (stride, stride), padding, dimension_numbers=("NHWC", "HWIO", "NHWC")) + b

    def simple(p, x):
        for i in (0, 2):
            x = jax.nn.relu(convolution(x, p[i], p[i + 1], 1, "VALID"))
            x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return x.reshape(x.shape[0], -1) @ p[4] + p[5]

    def resnet(p, x):
        x = convolution(x, p[0], p[1], 1, "SAME")
        for block, stride in enumerate([1, 2, 2]):
            i = 2 + 4 * block
            h = convolution(jax.nn.relu(x), p[i], p[i + 1], stride, "SAME")
            h = convolution(jax.nn.relu(h), p[i + 2], p[i + 3], 1, "SAME")
            if stride == 2:
                n, height, width, c = x.shape
                x = x.reshape(n, height // 2, 2, width // 2, 2, c).mean((2, 4))
                x = jnp.concatenate([x, jnp.zeros_like(x)], axis=-1)
            x = x + h
        return jax.nn.relu(x).mean((1, 2)) @ p[-2] + p[-1]

    forward = simple if network == "simple-cnn" else resnet

    if kind == "evaluate-jax":
        errors = jax.jit(lambda p, x, y: (forward(p, x).argmax(1) != y).sum())

        def step():
            return sum(int(errors(p, images[i : i + batch], labels[i : i + batch])) for i in range(0, 6000, batch))

        return jax.__version__, step, 6000

    def loss(p, x, y):
        logits = jax.nn.log_softmax(forward(p, x))
        return -jnp.take_along_axis(logits, y[:, None], axis=1).mean()

    @jax.jit
    def whole(p, v, index):
        gradients = jax.grad(loss)(p, images[index], labels[index])
        v = [MOMENTUM * a + g for a, g in zip(v, gradients)]
        return [a - RATE * b for a, b in zip(p, v)], v

    def step():
        nonlocal p, v
        p, v = whole(p, v, random.integers(IMAGES, size=batch))
        p[0].block_until_ready()

    return jax.__version__, step, batch


def sparse_contender(kind, sparsity, batch, threads):
    """A training step of LeNet-300-100 with a random mask: by SparseLab's layers, which store and multiply the kept weights alone, or by PyTorch's
    dense ones, whose weights are masked after each update."""
    import torch
    import torch.nn.functional as F

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    sides, version = [784, 300, 100, 10], torch.__version__
    if kind == "sparselab":
        import sparselab

        version = importlib.metadata.version("sparselab")
        layers = [sparselab.SparseLinear(before, after, sparsity=sparsity) for before, after in zip(sides, sides[1:])]
        masks = []
    else:
        layers = [torch.nn.Linear(before, after) for before, after in zip(sides, sides[1:])]
        masks = [(torch.rand_like(layer.weight) >= sparsity).float() for layer in layers]
    weights = [layer.weight for layer in layers] if masks else []
    model = torch.nn.Sequential(*(part for layer in layers for part in (layer, torch.nn.ReLU())))[:-1]
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM, foreach=True)
    images, labels = torch.randn(IMAGES, 784), torch.randint(10, (IMAGES,))

    def step():
        index = torch.randint(IMAGES, (batch,))
        optimizer.zero_grad()
        F.cross_entropy(model(images[index]), labels[index]).backward()
        optimizer.step()
        if masks:
            with torch.no_grad():
                torch._foreach_mul_(weights, masks)

    return version, step, batch


def ddp_rank(arguments):
    """One rank of DistributedDataParallel over gloo: answers each number of steps on standard input with the seconds they took."""
    import torch
    import torch.distributed as distributed
    import torch.nn.functional as F

    network = arguments[0]
    rank, ranks, batch, port = map(int, arguments[1:])
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    distributed.init_process_group("gloo", rank=rank, world_size=ranks)
    torch.set_num_threads(1)
    forward = torch_forward(network)

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.p = torch.nn.ParameterList(torch_parameters(network))

        def forward(self, x):
            return forward(list(self.p), x)

    torch.manual_seed(0)
    module = Module()
    model = torch.nn.parallel.DistributedDataParallel(module) if ranks > 1 else module
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    images, labels = torch_images(network)

    def step():
        index = torch.randint(IMAGES, (batch // ranks,))
        optimizer.zero_grad()
        F.cross_entropy(model(images[index]), labels[index]).backward()
        optimizer.step()

    for _ in range(8):
        step()
    print(torch.__version__, flush=True)
    for line in sys.stdin:
        start = time.perf_counter()
        for _ in range(int(line)):
            step()
        print(time.perf_counter() - start, flush=True)


def serve(arguments):
    """A peer: says its version, then answers each number of seconds on standard input with its images a second."""
    kind, network, batch, threads = arguments
    batch, threads = int(batch), int(threads)
    if network.startswith("sparse-"):
        version, step, images = sparse_contender(kind, float(network.removeprefix("sparse-")), batch, threads)
    else:
        version, step, images = (jax_contender if "jax" in kind else torch_contender)(kind, network, batch, threads)
    for _ in range(3):
        step()
    print(version, flush=True)
    for line in sys.stdin:
        start, steps = time.perf_counter(), 0
        while steps == 0 or time.perf_counter() - start < float(line):
            step()
            steps += 1
        print(steps * images / (time.perf_counter() - start), flush=True)


# ---- the comparison ---------------------------------------------------------------------------------------------------------------


class Peer:
    """A process of this file that works when told to. `version` is empty where it cannot, and the reason is printed."""

    def __init__(self, cores, *arguments, mode="--serve"):
        command = [sys.executable, __file__, mode, *map(str, arguments)]
        affinity = lambda: os.sched_setaffinity(0, cores)
        environment = {**os.environ, "OMP_NUM_THREADS": str(len(cores) if mode == "--serve" else 1), "JAX_PLATFORMS": "cpu"}
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=affinity, env=environment, stderr=self.errors
        )
        self.name = " ".join(map(str, arguments))

    @property
    def version(self):
        """Waits until it is ready."""
        if not hasattr(self, "_version"):
            self._version = self.process.stdout.readline().strip()
            if not self._version:
                self.errors.seek(0)
                why = self.errors.read().strip().splitlines()[-1:] or ["no reason given"]
                print(f"Missing: {self.name}: {why[0]}", flush=True)
        return self._version

    def ask(self, words):
        self.process.stdin.write(f"{words}\n")
        self.process.stdin.flush()

    def answer(self):
        return float(self.process.stdout.readline())

    def rate(self, seconds):
        self.ask(seconds)
        return self.answer()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Ddp:
    """Ranks of DistributedDataParallel."""

    def __init__(self, cores, ranks, batch):
        self.batch, self.speed = batch, 2000
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.peers = [Peer(cores, "simple-cnn", rank, ranks, batch, port, mode="--ddp") for rank in range(ranks)]
        self.version = all(peer.version for peer in self.peers) and self.peers[0].version

    def rate(self, seconds):
        steps = max(2, round(self.speed * seconds / self.batch))
        for peer in self.peers:
            peer.ask(steps)
        self.speed = steps * self.batch / max([peer.answer() for peer in self.peers])
        return self.speed

    def close(self):
        for peer in self.peers:
            peer.close()


class Dps:
    """The program of `cargo bench`, on the same cores."""

    def __init__(self, program, cores, network, batch, threads, task, sparsity=0):
        self.command = [program, "--json", "--network", network, "--batch", str(batch), "--threads", str(threads), "--task", task]
        self.command += ["--sparsity", str(sparsity)]
        self.cores = cores

    def rate(self, seconds):
        command = [*self.command, "--rounds", "3", "--turn", str(int(seconds * 1000 / 3))]
        output = subprocess.run(command, check=True, capture_output=True, text=True, preexec_fn=lambda: os.sched_setaffinity(0, self.cores)).stdout
        return json.loads(output)["images_per_second"]


def compare(title, dps, names, peers, options):
    """Takes turns; prints and returns a row."""
    rates = {name: [] for name in ["dps", *peers]}
    for _ in range(options.rounds):
        rates["dps"].append(dps.rate(options.turn))
        for name, peer in peers.items():
            rates[name].append(peer.rate(options.turn))
    medians = {name: statistics.median(values) for name, values in rates.items()}
    row = {"case": title, "images_per_second": medians}
    cells = "".join(f"{medians[name]:>15,.0f}" if name in medians else f"{'missing':>15}" for name in ["dps", *names])
    if peers:
        best = max(peers, key=lambda name: medians[name])
        low, middle, high = quartiles([a / b for a, b in zip(rates["dps"], rates[best])])
        cells += f"   {middle:.2f}x {best} ({low:.2f} to {high:.2f})"
        row |= {"best_peer": best, "ratio": middle, "low": low, "high": high}
    print(f"{title:<34}{cells}", flush=True)
    return row


def ready(peers):
    """Returns the peers that can work; all have started before the first is waited for."""
    return {name: peer for name, peer in peers.items() if peer.version}


def training(options, cores):
    rows = []
    print(f"\nTraining, images a second\n{'':<34}" + "".join(f"{name:>15}" for name in ["dps", *PEERS]))
    for network in options.network:
        for threads in options.threads:
            for batch in options.batch:
                mine = cores[:threads]
                peers = ready({name: Peer(mine, name, network, batch, threads) for name in PEERS})
                dps = Dps(options.folder / "dps-bench", mine, network, batch, threads, "train")
                title = f"{network}, {threads} thread{'s' * (threads > 1)}, batch {batch}"
                rows.append(compare(title, dps, PEERS, peers, options))
                for peer in peers.values():
                    peer.close()
    return rows


def evaluation(options, cores):
    rows, names = [], ["torch", "jax"]
    print(f"\nEvaluation of 6,000 images, one thread, images a second (peers by batches of 100)\n{'':<34}" + "".join(f"{name:>15}" for name in ["dps", *names]))
    for network in options.network:
        peers = ready({name: Peer(cores[:1], f"evaluate-{name}", network, 100, 1) for name in names})
        dps = Dps(options.folder / "dps-bench", cores[:1], network, 16, 1, "evaluate")
        rows.append(compare(network, dps, names, peers, options))
        for peer in peers.values():
            peer.close()
    return rows


def sparse(options, cores):
    """LeNet-300-100, whose layers SparseLab has: convolutions it has none."""
    rows, names = [], ["sparselab", "torch-masked"]
    print(f"\nTraining of LeNet-300-100 by its kept weights, one thread, images a second\n{'':<34}" + "".join(f"{name:>15}" for name in ["dps", *names]))
    for sparsity in (0.9, 0.98):
        for batch in options.batch:
            peers = ready({name: Peer(cores[:1], name, f"sparse-{sparsity}", batch, 1) for name in names})
            dps = Dps(options.folder / "dps-bench", cores[:1], "lenet-300-100", batch, 1, "train", sparsity)
            rows.append(compare(f"sparsity {sparsity}, batch {batch}", dps, names, peers, options))
            for peer in peers.values():
                peer.close()
    return rows


SHARED, GROUPED = ("execution.data_parallel=2",), ("execution.data_parallel=0",)


def ranks(options, cores):
    """One rank against two, a thread each: of dps sharing every batch of one trial, and as it chooses to share eight trials; of PyTorch's
    DistributedDataParallel over gloo. Two programs of dps at once, which share nothing, say what a second core of this machine adds at most."""
    rows = []
    studies = Studies(options.folder, options.data)
    os.sched_setaffinity(0, cores[:2])
    print("\nOne rank against two, a thread each, Simple-CNN: images a second, and how much faster two are")
    print(f"{'':<12}{'':->12} dps, 1 trial {'':->12}  {'':->8} dps, 8 trials {'':->8}  {'':->8} DDP {'':->8}")
    print(f"{'batch':<12}{'1 rank':>8}{'2 ranks':>10}{'':>8}{'2 programs':>12}{'1 rank':>12}{'2, auto':>10}{'':>8}{'1 rank':>12}{'2 ranks':>10}{'':>8}", flush=True)
    for batch in options.batch:
        cases = {
            "one": Stepper(studies, batch=batch),
            "two": Stepper(studies, batch=batch, ranks=2, settings=SHARED),
            "one of 8": Stepper(studies, batch=batch, trials=8),
            "auto of 8": Stepper(studies, batch=batch, trials=8, ranks=2, settings=GROUPED),
        }
        alone = [Stepper(studies, batch=batch) for _ in range(2)]
        peers = {f"ddp {count}": Ddp(cores[:2], count, batch) for count in (1, 2)}
        peers = {name: peer for name, peer in peers.items() if peer.version}
        rates = {name: [] for name in [*cases, "apart", *peers]}
        for _ in range(options.rounds):
            for name, case in cases.items():
                rates[name].append(batch * case.case.get("trials", 1) / case.turn(options.turn))
            under_way = [(stepper, stepper.start(options.turn)) for stepper in alone]
            rates["apart"].append(sum(batch / stepper.finish(run) for stepper, run in under_way))
            for name, peer in peers.items():
                rates[name].append(peer.rate(options.turn))
        m = {name: statistics.median(values) for name, values in rates.items()}
        times = lambda two, one: statistics.median(a / b for a, b in zip(rates[two], rates[one]))
        row = {"batch": batch, "images_per_second": m, "shared": times("two", "one"), "apart": times("apart", "one"), "auto": times("auto of 8", "one of 8")}
        text = f"{batch:<12}{m['one']:>8,.0f}{m['two']:>10,.0f}{row['shared']:>7.2f}x{m['apart']:>12,.0f}{m['one of 8']:>12,.0f}{m['auto of 8']:>10,.0f}{row['auto']:>7.2f}x"
        if len(peers) == 2:
            row["ddp"] = times("ddp 2", "ddp 1")
            text += f"{m['ddp 1']:>12,.0f}{m['ddp 2']:>10,.0f}{row['ddp']:>7.2f}x"
        print(text, flush=True)
        for peer in peers.values():
            peer.close()
        rows.append(row)
    print("Efficiency is half of the first ratio; of what two programs reach that share nothing, two ranks reach " + ", ".join(f"{r['images_per_second']['two'] / r['images_per_second']['apart']:.2f} at {r['batch']}" for r in rows))
    return rows


PART, WHOLE = 2_000, 40_000


def cell(options, cores):
    """A cell to K*, against a loop over its trials in PyTorch: each trial to its own goal, as in the authors' public code, and stopped as dps
    stops."""
    studies = Studies(options.folder, options.data)
    fixed = dict(goal=0.14, every=16, batch=64, sparsity=0.9, trials=16, scored=0, threads=len(cores))
    fixed |= dict(rate='{ min = 1e-4, max = 1.0, scale = "log" }', momentum='{ min = 0.9, max = 0.9999, scale = "reverse-log" }')
    raced = studies.run(**fixed, steps=WHOLE)
    last = WHOLE if options.whole else PART
    part = studies.run(**fixed, steps=last, settings=("execution.race=false",))
    reached, wall = raced.cell["steps_to_result"], raced.wall
    print(
        f"\nA cell: Fashion-MNIST, Simple-CNN, batch 64, sparsity 0.9, 16 trials, goal 0.14, {len(cores)} cores"
        f"\nMeasured: dps found K* = {reached} in {wall:.0f} s, start, data and pruning among them; it computed {raced.work['example-gradients']:,}"
        f" example-gradients and evaluated {raced.work['validation examples']:,} examples."
    )
    # A loop over trials on each core, both at once: what one does to the other's caches and clock is in the rates.
    names = ["torch-compile", "evaluate-torch"]
    peers = [[Peer([core], name, "simple-cnn", 64 if name == names[0] else 100, 1) for name in names] for core in cores]
    if not all(peer.version for pair in peers for peer in pair):
        return [{"k": reached, "seconds": wall}]
    rates = [[], []]
    for _ in range(options.rounds):
        for which in range(2):
            for pair in peers:
                pair[which].ask(options.turn)
            rates[which].append(sum(pair[which].answer() for pair in peers))
    training_rate, evaluation_rate = map(statistics.median, rates)
    for peer in (peer for pair in peers for peer in pair):
        peer.close()
    # Every trial's score takes the gradient of all 54,000 training examples once.
    scoring = 16 * 54_000 / training_rate
    seconds = lambda gradients, evaluated: scoring + gradients / training_rate + evaluated / evaluation_rate
    ours = seconds(raced.work["example-gradients"], raced.work["validation examples"])
    steps = part.work["example-gradients"] // 64
    late, complete = part.cell["incomplete"], part.cell["complete"]
    by_rule = {name: seconds(64 * count, count // 16 * 6_000) for name, count in {"least": steps, "most": steps + late * (WHOLE - last)}.items()}
    least, most = by_rule["least"], by_rule["most"]
    whole = f"each trial to its own goal, the {late} to step {WHOLE:,}, whole evaluations: {most:,.0f} s, {most / wall:.0f}x dps"
    bound = f"\n    and were they all to reach the goal at step {last:,}: {least:,.0f} s, {least / wall:.1f}x" if last < WHOLE else ""
    print(
        f"Measured: PyTorch, compiled, a process a core, trains {training_rate:,.0f} images/s and evaluates {evaluation_rate:,.0f} on all cores together (medians of {options.rounds} turns)."
        f"\nMeasured: each trial to its own end, but to step {last:,} at most: {complete} complete, {part.cell['infeasible']} infeasible, {late} neither; {steps:,} steps."
        f"\nExtrapolated from these: a loop over the trials in PyTorch, its pruning among it ({scoring:.0f} s),"
        f"\n  by the rule of the authors' public code, {whole}{bound}"
        f"\n  stopped as dps stops, step by step the same gradients and evaluated examples: {ours:,.0f} s, {ours / wall:.1f}x",
        flush=True,
    )
    return [{"k": reached, "seconds": wall, "public_code_rule": by_rule, "our_rule": ours, "training": training_rate, "evaluation": evaluation_rate}]


def spent(cores):
    """Seconds that all programs have kept the cores busy, that the host of a virtual machine gave to others, and that this program's own took."""
    numbers = {}
    for line in Path("/proc/stat").read_text().splitlines():
        name, *ticks = line.split()
        numbers[name] = [int(tick) / os.sysconf("SC_CLK_TCK") for tick in ticks]
    # user, nice, system, idle, iowait, irq, softirq, steal
    of_cores = [sum(column) for column in zip(*(numbers[f"cpu{core}"][:8] for core in cores))]
    busy = sum(of_cores[:3]) + of_cores[5] + of_cores[6]
    own = sum(use.ru_utime + use.ru_stime for use in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))
    return busy, of_cores[7], own


def others(before, after, seconds):
    """Cores that other programs kept busy meanwhile, and cores that the host gave to others."""
    busy, stolen, own = (end - start for start, end in zip(before, after))
    return max(0, busy - own) / seconds, stolen / seconds


def main():
    if sys.argv[1:2] == ["--serve"]:
        return serve(sys.argv[2:])
    if sys.argv[1:2] == ["--ddp"]:
        return ddp_rank(sys.argv[2:])
    parts = {"training": training, "evaluation": evaluation, "sparse": sparse, "ranks": ranks, "cell": cell}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("parts", nargs="*", choices=[*parts, []], default=list(parts))
    parser.add_argument("--quick", action="store_true", help="three rounds of short turns: to see that it works")
    parser.add_argument("--whole", action="store_true", help=f"of the cell, run every trial to its own end, at most {WHOLE:,} steps, not {PART:,}: 20 minutes on two cores")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turn", type=float, default=0.8, help="seconds of a turn")
    parser.add_argument("--network", nargs="+", default=list(SIDES))
    parser.add_argument("--batch", nargs="+", type=int, default=[2, 16, 128, 1024])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("DPS_DATA", "data")))
    parser.add_argument("--json", type=Path)
    options = parser.parse_intermixed_args()
    if options.quick:
        options.rounds, options.turn = 3, 0.3
    cores = sorted(os.sched_getaffinity(0))[: max(options.threads)]
    versions = []
    for name in ["torch", "jax", "sparselab"]:
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            versions.append(f"{name} missing: it is not installed")
    print("Peers: " + ", ".join(versions) + f"; Python {platform.python_version()}; {len(cores)} core{'s' * (len(cores) > 1)}")
    rows, load, failed = {}, {}, []
    for name in options.parts:
        start, before = time.perf_counter(), spent(cores)
        try:
            rows[name] = parts[name](options, cores)
        except (OSError, RuntimeError, ValueError, subprocess.SubprocessError) as error:
            failed.append(name)
            print(f"{name} failed: {error}", flush=True)
        seconds = time.perf_counter() - start
        load[name] = dict(zip(["others", "host"], others(before, spent(cores), seconds)))
        print(f"({name}: {seconds:.0f} s; other programs took {load[name]['others']:.2f} cores of {len(cores)}, the machine's host {load[name]['host']:.2f})", flush=True)
    if options.json:
        options.json.write_text(json.dumps({"versions": versions, "load": load, **rows}, indent=1))
    return f"Failed: {', '.join(failed)}" if failed else None


if __name__ == "__main__":
    sys.exit(main())
