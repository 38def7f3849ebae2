#!/usr/bin/env python3
"""Steps to a goal error where products are in pairs of bfloat16 (execution.products = "pairs"), beside products in 32 bits.

rounding.py FOLDER [--seeds N] [--write FILE]

Trains Simple-CNN on MNIST, whose four files FOLDER has, by PyTorch on the CPU, twice for each seed, from the same weights and with the same batches:
once in 32 bits; once with every map, every map's gradient and the convolutions' parameters rounded as kernels/common.cuh stores them, and without the
products that kernels/product.cuh leaves out, those of two lower halves. How tensor cores round their sums is not imitated, and both are evaluated in
32 bits. Prints the geometric mean of both numbers of steps and their ratio, with an interval by Student's t over the seeds; `--write` puts the
numbers into a file of JSON. Needs PyTorch, NumPy and SciPy; takes some two minutes a seed on one processor.
"""

import argparse
import gzip
import json
import pathlib

import numpy
import scipy.stats
import torch
from torch.nn import functional

# Batch size, momentum, learning rate, goal error, validation examples, steps between evaluations, and most steps.
BATCH, MOMENTUM, RATE, GOAL, VALIDATION, EVERY, MOST = 64, 0.9, 0.02, 0.03, 2_000, 16, 4_000


def images(folder, name, head, shape):
    for file in (folder / name, folder / f"{name}.gz"):
        if file.exists():
            data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
            return numpy.frombuffer(data, numpy.uint8, offset=head).reshape(shape)
    raise SystemExit(f"expected {name} or {name}.gz in {folder}, found neither; run: dps-train data fetch mnist --data FOLDER")


def lower(x):
    """The lower half of each number's pair."""
    return (x - x.bfloat16().float()).bfloat16().float()


def stored(x):
    """Each number as its pair holds it."""
    return x.bfloat16().float() + lower(x)


class Stored(torch.autograd.Function):
    """A map as it is stored, and its gradient."""

    @staticmethod
    def forward(context, x):
        return stored(x)

    @staticmethod
    def backward(context, gradient):
        return stored(gradient)


class StoredGradient(torch.autograd.Function):
    """Logits, which are not stored; their gradient is."""

    @staticmethod
    def forward(context, x):
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        return stored(gradient)


class Convolution(torch.autograd.Function):
    """A convolution of stored numbers without the products of lower halves, and so its gradients."""

    @staticmethod
    def forward(context, x, w):
        context.save_for_backward(x, w)
        return functional.conv2d(x, stored(w)) - functional.conv2d(lower(x), lower(w))

    @staticmethod
    def backward(context, gradient):
        x, w = context.saved_tensors
        own, of_x = torch.nn.grad, None
        if context.needs_input_grad[0]:
            of_x = own.conv2d_input(x.shape, stored(w), gradient) - own.conv2d_input(x.shape, lower(w), lower(gradient))
        return of_x, own.conv2d_weight(x, w.shape, gradient) - own.conv2d_weight(lower(x), w.shape, lower(gradient))


class Last(torch.autograd.Function):
    """The logits, in 32 bits, and the gradients of the features, in 32 bits, and of the weights, without the products of lower halves."""

    @staticmethod
    def forward(context, x, w):
        context.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(context, gradient):
        x, w = context.saved_tensors
        return gradient @ w.T, x.T @ gradient - lower(x).T @ lower(gradient)


def logits(parameters, x, pairs):
    first, bias1, second, bias2, last, bias3 = parameters
    same = lambda x: x
    store, store_gradient = (Stored.apply, StoredGradient.apply) if pairs else (same, same)
    convolve, multiply = (Convolution.apply, Last.apply) if pairs else (functional.conv2d, torch.matmul)
    x = store(x)
    for w, bias in ((first, bias1), (second, bias2)):
        # A bias is stored, too; its gradient is a sum in 32 bits.
        off = (stored(bias) - bias).detach() if pairs else 0.0
        # Backward, ReLU and pool move numbers, so that the gradient of the convolution's sum is one that was stored.
        x = store(functional.max_pool2d(functional.relu(convolve(x, w) + (bias + off)[:, None, None]), 2))
    return store_gradient(multiply(x.flatten(1), last) + bias3)


def reaches_goal(parameters, images, labels):
    """Whether at most GOAL of the examples are wrong, in 32 bits."""
    return (logits(parameters, images, False).argmax(1) != labels).sum().item() <= GOAL * len(labels)


def steps_to_goal(seed, pairs, training, validation):
    draws = numpy.random.default_rng(seed)
    shapes = [((32, 1, 5, 5), 25), ((32,), 0), ((64, 32, 5, 5), 800), ((64,), 0), ((1024, 10), 1024), ((10,), 0)]
    parameters = []
    for shape, inputs in shapes:
        normal = scipy.stats.truncnorm.rvs(-2, 2, size=shape, random_state=draws) if inputs else numpy.zeros(shape)
        parameters.append(torch.tensor(normal / max(inputs, 1) ** 0.5, dtype=torch.float32, requires_grad=True))
    velocities = [torch.zeros_like(parameter) for parameter in parameters]
    order = numpy.empty(0, int)
    for step in range(1, MOST + 1):
        if len(order) < BATCH:
            order = draws.permutation(len(training[1]))
        batch, order = torch.from_numpy(order[:BATCH]), order[BATCH:]
        loss = functional.cross_entropy(logits(parameters, training[0][batch], pairs), training[1][batch])
        gradients = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            for parameter, velocity, gradient in zip(parameters, velocities, gradients):
                velocity.mul_(MOMENTUM).add_(gradient)
                parameter.sub_(RATE * velocity)
            if step % EVERY == 0 and reaches_goal(parameters, *validation):
                return step
    return MOST


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE")
    arguments = parser.parse_args()
    pixels = images(arguments.folder, "train-images-idx3-ubyte", 16, (60_000, 1, 28, 28)) / numpy.float32(255)
    labels = images(arguments.folder, "train-labels-idx1-ubyte", 8, (60_000,)).astype(int)
    pixels = torch.from_numpy((pixels - pixels.mean()) / pixels.std())
    labels, order = torch.from_numpy(labels), torch.from_numpy(numpy.random.default_rng(0).permutation(60_000))
    sets = [(pixels[part], labels[part]) for part in (order[VALIDATION:], order[:VALIDATION])]
    steps = {"in 32 bits": [], "in pairs": []}
    for seed in range(arguments.seeds):
        for pairs, of in enumerate(steps.values()):
            of.append(steps_to_goal(seed, bool(pairs), *sets))
        print(f"seed {seed}: {', '.join(f'{of[-1]} {name}' for name, of in steps.items())}", flush=True)
    single, pairs = (numpy.log(of) for of in steps.values())
    off = pairs - single
    half = scipy.stats.t.ppf(0.975, len(off) - 1) * off.std(ddof=1) / len(off) ** 0.5 if len(off) > 1 else numpy.inf
    ratio = [float(f"{number:.3f}") for number in numpy.exp([off.mean(), off.mean() - half, off.mean() + half])]
    means = [round(float(numpy.exp(of.mean())), 1) for of in (single, pairs)]
    print(f"geometric means: {means[0]} steps in 32 bits, {means[1]} in pairs; their ratio {ratio[0]} ({ratio[1]} to {ratio[2]})")
    if arguments.write:
        found = {"steps": steps, "geometric means": means, "ratio": ratio[0], "interval": ratio[1:], "torch": torch.__version__}
        arguments.write.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
