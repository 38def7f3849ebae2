"""Second half of `make bench`: what PyTorch and JAX reach on this machine with the same work as dps, in the same minutes.

    peers.py FOLDER [training] [evaluation] [ranks] [cell] [--rounds N] [--turn SECONDS] [--json FILE]

FOLDER has dps-train and the program of `cargo bench --bench training` under the name dps-bench. The contenders of a comparison take turns, a
slice of time each, on the same cores (by affinity), so that whatever else the machine does hits all alike. A rate is the median over the
rounds; a ratio is dps over the best peer, the median over the rounds of that round's ratio, with the range of the middle half.

The same work: 32-bit floats, the network of the paper, batches gathered by random indices from normalised images in memory, softmax
cross-entropy, momentum 0.9. PyTorch runs channels-last: eager, and with the whole step in one torch.compile; JAX jits the whole step.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

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


def ddp_rank(rank, ranks, network, batch, port):
    """The step of one rank of DistributedDataParallel over gloo."""
    import torch
    import torch.distributed as distributed
    import torch.nn.functional as F

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

    return step


def serve(arguments):
    """A peer: says its version, then answers each number of seconds on standard input with its images a second."""
    kind, network, batch, threads = arguments
    batch, threads = int(batch), int(threads)
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
    """A process that works when told to."""

    def __init__(self, cores, *arguments):
        command = [sys.executable, __file__, "--serve", *map(str, arguments)]
        affinity = lambda: os.sched_setaffinity(0, cores)
        environment = {**os.environ, "OMP_NUM_THREADS": str(len(cores)), "JAX_PLATFORMS": "cpu"}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=affinity, env=environment, stderr=subprocess.DEVNULL
        )
        self.version = self.process.stdout.readline().strip()

    def rate(self, seconds):
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Dps:
    """The program of `cargo bench`, on the same cores."""

    def __init__(self, program, cores, network, batch, threads, task):
        self.command = [program, "--json", "--network", network, "--batch", str(batch), "--threads", str(threads), "--sparsity", "0"]
        self.cores, self.task = cores, task

    def rate(self, seconds):
        command = [*self.command, "--rounds", "3", "--turn", str(int(seconds * 1000 / 3))]
        output = subprocess.run(command, check=True, capture_output=True, text=True, preexec_fn=lambda: os.sched_setaffinity(0, self.cores)).stdout
        rows = [json.loads(line) for line in output.splitlines()]
        return next(row["images_per_second"] for row in rows if row["task"] == self.task)


def quartiles(values):
    if len(values) == 1:
        return values * 3
    return statistics.quantiles(values, n=4, method="inclusive")


def compare(title, dps, peers, rounds, turn):
    """Takes turns; prints and returns a row."""
    rates = {name: [] for name in ["dps", *peers]}
    for _ in range(rounds):
        rates["dps"].append(dps.rate(turn))
        for name, peer in peers.items():
            rates[name].append(peer.rate(turn))
    medians = {name: statistics.median(values) for name, values in rates.items()}
    best = max(peers, key=lambda name: medians[name])
    low, middle, high = quartiles([a / b for a, b in zip(rates["dps"], rates[best])])
    cells = "".join(f"{medians[name]:>15,.0f}" for name in rates)
    print(f"{title:<34}{cells}   {middle:.2f}x {best} ({low:.2f} to {high:.2f})", flush=True)
    return {"case": title, "images_per_second": medians, "best_peer": best, "ratio": middle, "low": low, "high": high}


def training(options, cores):
    rows = []
    print(f"\nTraining, images a second\n{'':<34}" + "".join(f"{name:>15}" for name in ["dps", *PEERS]))
    for network in options.network:
        for threads in options.threads:
            for batch in options.batch:
                mine = cores[:threads]
                peers = {}
                for name in PEERS:
                    peer = Peer(mine, name, network, batch, threads)
                    if peer.version:
                        peers[name] = peer
                        options.versions[name] = peer.version
                dps = Dps(options.folder / "dps-bench", mine, network, batch, threads, "train")
                title = f"{network}, {threads} thread{'s' * (threads > 1)}, batch {batch}"
                rows.append(compare(title, dps, peers, options.rounds, options.turn))
                for peer in peers.values():
                    peer.close()
    return rows


def evaluation(options, cores):
    rows = []
    print(f"\nEvaluation of 6,000 images, one thread, images a second (peers by batches of 100)\n{'':<34}{'dps':>15}{'torch':>15}{'jax':>15}")
    for network in options.network:
        peers = {name: Peer(cores[:1], f"evaluate-{name}", network, 100, 1) for name in ["torch", "jax"]}
        dps = Dps(options.folder / "dps-bench", cores[:1], network, 16, 1, "evaluate")
        rows.append(compare(network, dps, peers, options.rounds, options.turn))
        for peer in peers.values():
            peer.close()
    return rows


STUDY = """[workload]
dataset = "fashion-mnist"
network = "simple-cnn"
optimizer = "momentum"
goal_error = {goal}
max_steps = {steps}
evaluate_every = {every}
[grid]
batch_sizes = [{batch}]
sparsities = [{sparsity}]
trials = {trials}
[search]
learning_rate = {rate}
momentum = {momentum}
"""


def study(options, ranks, extra=(), **values):
    """Runs a study; returns its only cell, as `dps-train status` tells it."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "x.toml").write_text(STUDY.format(**values))
        environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        launch = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]
        train = options.folder / "dps-train"
        command = [*launch, train, folder / "x.toml", "--data", options.data, "--output", folder / "x.h5", "--quiet", *extra]
        subprocess.run(list(map(str, command)), check=True, env=environment)
        told = subprocess.run([str(train), "status", "--json", str(folder / "x.h5")], check=True, capture_output=True, text=True).stdout
        return json.loads(told)["finished"][0]


def ranks(options, cores):
    """One rank against two, a thread each, of dps and of PyTorch's DistributedDataParallel over gloo."""
    rows = []
    print(f"\nOne rank against two, a thread each, Simple-CNN, images a second\n{'':<14}{'dps 1':>10}{'dps 2':>10}{'efficiency':>12}{'DDP 1':>10}{'DDP 2':>10}{'efficiency':>12}")
    for batch in options.batch:
        steps = max(64, 24_000 // batch)
        rates = {"dps 1": [], "dps 2": [], "DDP 1": [], "DDP 2": []}
        fixed = dict(goal=0.0001, every=10**6, batch=batch, sparsity=0, trials=1, rate=1e-3, momentum=0.9)
        for turn in range(options.rounds):
            for count in (1, 2):
                extra = ["--threads", "1", "--set", "execution.data_parallel=" + str(count)]
                # The difference of two lengths: what both have in common, the last evaluation among it, is not counted.
                times = [study(options, count, extra, **{**fixed, "steps": length, "every": length})["seconds"] for length in (steps, 3 * steps)]
                rates[f"dps {count}"].append(2 * steps * batch / max(times[1] - times[0], 1e-9))
                rates[f"DDP {count}"].append(ddp(count, batch, steps, 29500 + turn, cores))
        m = {name: statistics.median(values) for name, values in rates.items()}
        efficiency = {name: m[f"{name} 2"] / m[f"{name} 1"] / 2 for name in ("dps", "DDP")}
        print(
            f"batch {batch:<8}{m['dps 1']:>10,.0f}{m['dps 2']:>10,.0f}{efficiency['dps']:>12.2f}"
            f"{m['DDP 1']:>10,.0f}{m['DDP 2']:>10,.0f}{efficiency['DDP']:>12.2f}",
            flush=True,
        )
        rows.append({"batch": batch, "images_per_second": m, "efficiency": efficiency})
    return rows


def ddp(count, batch, steps, port, cores):
    commands = [[sys.executable, __file__, "--ddp", str(rank), str(count), "simple-cnn", str(batch), str(steps), str(port)] for rank in range(count)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL) for command in commands]
    return float([process.communicate()[0] for process in processes][0])


def ddp_main(arguments):
    rank, count, network, batch, steps, port = arguments
    rank, count, batch, steps = int(rank), int(count), int(batch), int(steps)
    step = ddp_rank(rank, count, network, batch, int(port))
    for _ in range(8):
        step()
    start = time.perf_counter()
    for _ in range(steps):
        step()
    print(steps * batch / (time.perf_counter() - start))


def cell(options, cores):
    """A cell to K*, against a loop over trials in PyTorch by the paper's rule, and by ours."""
    fixed = dict(goal=0.14, steps=40_000, every=16, batch=64, sparsity=0.9, trials=16)
    searched = dict(rate='{ min = 1e-4, max = 1.0, scale = "log" }', momentum='{ min = 0.9, max = 0.9999, scale = "reverse-log" }')
    start = time.perf_counter()
    found = study(options, len(cores), **fixed, **searched)
    wall = time.perf_counter() - start
    reached = found["steps_to_result"]
    # The loop's parts, measured now, on one core; it has as many of them as dps had.
    train = Peer(cores[:1], "torch-compile", "simple-cnn", 64, 1)
    evaluate = Peer(cores[:1], "evaluate-torch", "simple-cnn", 100, 1)
    rates = [(train.rate(options.turn), evaluate.rate(options.turn)) for _ in range(options.rounds)]
    training_rate, evaluation_rate = (statistics.median(column) for column in zip(*rates))
    seconds = lambda steps: (steps * 64 / training_rate + steps / 16 * 6000 / evaluation_rate) * 16 / len(cores)
    for peer in (train, evaluate):
        peer.close()
    print(
        f"\nA cell: Fashion-MNIST, batch 64, sparsity 0.9, 16 trials, goal 0.14, {len(cores)} cores: dps found K* = {reached} in {wall:.0f} s, start, data and pruning among them."
        f"\nPyTorch (compiled; {training_rate:,.0f} images/s trained, {evaluation_rate:,.0f} evaluated, on each core), extrapolated from {options.rounds} turns of each part:"
        f"\n  every trial to the paper's 40,000 steps: {seconds(40_000):,.0f} s, {seconds(40_000) / wall:.0f}x"
        f"\n  every trial to K*, as if it knew when to stop: {seconds(reached):,.0f} s, {seconds(reached) / wall:.1f}x"
    )
    return [{"k": reached, "seconds": wall, "peer_paper_rule": seconds(40_000), "peer_our_rule": seconds(reached)}]


def main():
    if sys.argv[1:2] == ["--serve"]:
        return serve(sys.argv[2:])
    if sys.argv[1:2] == ["--ddp"]:
        return ddp_main(sys.argv[2:])
    parts = {"training": training, "evaluation": evaluation, "ranks": ranks, "cell": cell}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("parts", nargs="*", choices=[*parts, []], default=list(parts))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--turn", type=float, default=1.0, help="seconds of a turn")
    parser.add_argument("--network", nargs="+", default=list(SIDES))
    parser.add_argument("--batch", nargs="+", type=int, default=[2, 16, 128, 1024])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    options.versions = {}
    cores = sorted(os.sched_getaffinity(0))[: max(options.threads)]
    rows = {name: parts[name](options, cores) for name in options.parts}
    print("\n" + ", ".join(f"{name} {version}" for name, version in options.versions.items()) + f"; Python {platform.python_version()}; {len(cores)} cores")
    if options.json:
        options.json.write_text(json.dumps({"versions": options.versions, **rows}, indent=1))


if __name__ == "__main__":
    main()
