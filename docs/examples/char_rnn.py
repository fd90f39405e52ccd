# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Train a character-level recurrent network on graphc's own documentation, and let it write.

The network of J. L. Elman (Cognitive Science 14, 1990) reads a batch of texts character by character: one
`graphc.scan` over time, its gradient one loop backwards. Adam (D. P. Kingma and J. Ba, 2015) updates the
parameters, which are shared variables, inside the compiled function. A second scan writes new text: its state
is the hidden vector and the character written last. The exit status is 1 if the network does not predict
better than the frequencies of the characters.

    python docs/examples/char_rnn.py [--mode MODE] [--show-ir] [--plot FILE.png] [--updates N] [--hidden N]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import _report as report
import numpy as np

import graphc
import graphc.tensor as pt

BATCH, LENGTH = 16, 48
RATE, DECAY, SQUARE_DECAY = 4e-3, 0.9, 0.999
TEMPERATURE = 0.6


class Text(NamedTuple):
    """The corpus as numbers, the characters they stand for, and the loss of guessing by frequency (nats)."""

    codes: Any
    alphabet: str
    by_frequency: float


class Network(NamedTuple):
    """The compiled functions: one update, returning the loss, and the characters written from noise."""

    update: Any
    write: Any


def load() -> Text:
    """All Markdown pages of docs/."""
    pages = sorted(Path(__file__).resolve().parents[1].rglob("*.md"))
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    alphabet = "".join(sorted(set(text)))
    codes = np.searchsorted(np.array(list(alphabet)), np.array(list(text))).astype("int64")
    share = np.bincount(codes) / len(codes)
    return Text(codes, alphabet, float(-(share * np.log(share)).sum()))


def parameters(letters: int, hidden: int) -> dict[str, Any]:
    """Shared variables: what a character adds to the hidden vector, its recurrence, and the readout."""
    rng = np.random.default_rng(0)
    start = {
        "embedding": 0.1 * rng.standard_normal((letters, hidden)),
        "recurrence": np.linalg.qr(rng.standard_normal((hidden, hidden)))[0],
        "bias": np.zeros(hidden),
        "readout": 0.1 * rng.standard_normal((hidden, letters)),
        "offset": np.zeros(letters),
    }
    return {name: graphc.shared(value, name=name) for name, value in start.items()}


def mean_loss(p: dict[str, Any], read: Any, following: Any) -> Any:
    """Mean of -log p(next character), in nats.

    Args:
        p: the parameters.
        read: characters, `(LENGTH, BATCH)`.
        following: those that come next, of the same shape.
    """

    def step(row: Any, h: Any) -> Any:
        return pt.tanh(row + pt.dot(h, p["recurrence"]))

    rows = p["embedding"][read] + p["bias"]
    start = pt.zeros((read.shape[1], p["bias"].shape[0]))
    hidden = graphc.scan(step, sequences=[rows], outputs_info=[start], name="rnn", return_updates=False)
    logits = pt.dot(hidden, p["readout"]) + p["offset"]
    flat = logits.reshape((-1, logits.shape[2]))
    scores = pt.log_softmax(flat, axis=1)
    return -scores[pt.arange(flat.shape[0]), following.reshape((-1,))].mean()


def adam(loss: Any, variables: list[Any]) -> dict[Any, Any]:
    """The updates of one step of Adam; its moments are shared variables too."""
    count = graphc.shared(0.0, name="count")
    updates = {count: count + 1}
    size = RATE * pt.sqrt(1 - SQUARE_DECAY ** (count + 1)) / (1 - DECAY ** (count + 1))
    for variable, slope in zip(variables, graphc.grad(loss, variables), strict=True):
        zeros = np.zeros_like(variable.get_value())
        mean, square = graphc.shared(zeros), graphc.shared(zeros)
        updates[mean] = DECAY * mean + (1 - DECAY) * slope
        updates[square] = SQUARE_DECAY * square + (1 - SQUARE_DECAY) * slope**2
        updates[variable] = variable - size * updates[mean] / (pt.sqrt(updates[square]) + 1e-8)
    return updates


def written(p: dict[str, Any], first: Any, noise: Any) -> Any:
    """Characters drawn one by one: where logits plus Gumbel noise are largest is a draw from the softmax."""

    def step(noise_t: Any, letter: Any, h: Any) -> Any:
        h = pt.tanh(p["embedding"][letter] + pt.dot(h, p["recurrence"]) + p["bias"])
        logits = pt.dot(h, p["readout"]) + p["offset"]
        return pt.argmax(logits / TEMPERATURE + noise_t), h

    letters, _ = graphc.scan(
        step,
        sequences=[noise],
        outputs_info=[first, pt.zeros(p["bias"].shape)],
        name="write",
        return_updates=False,
    )
    return letters


def build(letters: int, hidden: int, mode: str | None) -> Network:
    """Write the network as graphs and compile them."""
    p = parameters(letters, hidden)
    read, following = pt.matrix("read", dtype="int64"), pt.matrix("following", dtype="int64")
    loss = mean_loss(p, read, following)
    start = time.perf_counter()
    update = graphc.function(
        [read, following], loss, updates=adam(loss, list(p.values())), mode=mode, name="update"
    )
    print(f"compiled {'update':<18} {1e3 * (time.perf_counter() - start):8.1f} ms")
    first, noise = pt.scalar("first", dtype="int64"), pt.matrix("noise")
    return Network(update, report.compile_timed("write", [first, noise], written(p, first, noise), mode))


def train(network: Network, text: Text, updates: int) -> list[float]:
    """Feed random passages; returns the losses."""
    rng = np.random.default_rng(1)
    losses: list[float] = []
    start, bar = time.perf_counter(), report.Bar("training", updates)
    for count in range(updates):
        places = rng.integers(0, len(text.codes) - LENGTH - 1, BATCH)
        passages = text.codes[places + np.arange(LENGTH + 1)[:, None]]
        losses.append(float(network.update(passages[:-1], passages[1:])))
        bar.show(count + 1, f"loss {np.mean(losses[-50:]):.3f}")
    each = (time.perf_counter() - start) / updates
    print(f"{updates} updates of {BATCH} x {LENGTH} characters, {1e3 * each:.2f} ms each")
    return losses


def plot(losses: list[float], text: Text, path: Any) -> None:
    """The loss of each update and its running mean."""
    drawing, axes = report.figure(1, height=3.8)
    width = max(1, len(losses) // 20)
    mean = np.convolve(losses, np.full(width, 1 / width), mode="valid")
    axes.plot(losses, color=report.BLUE, alpha=0.3, linewidth=0.8)
    axes.plot(np.arange(len(mean)) + width - 1, mean, color=report.BLUE, label=f"mean of {width} updates")
    axes.axhline(text.by_frequency, color=report.ORANGE, linewidth=1.2, label="frequencies of characters")
    axes.set(title="Reading the documentation", xlabel="update", ylabel="nats a character")
    axes.legend()
    report.save(drawing, path)


def main() -> int:
    """Run the example; returns the exit status."""
    parser = report.options(__doc__.splitlines()[0], "char_rnn.png")
    parser.add_argument("--updates", type=int, default=1500, help="steps of Adam")
    parser.add_argument("--hidden", type=int, default=96, help="size of the hidden vector")
    arguments = parser.parse_args()
    report.require("matplotlib")

    text = load()
    letters = len(text.alphabet)
    print(f"docs/: {len(text.codes)} characters, {letters} different ones")
    network = build(letters, arguments.hidden, arguments.mode)
    if arguments.show_ir:
        report.show_ir(network.update)
    losses = train(network, text, arguments.updates)

    noise = np.random.default_rng(2).gumbel(size=(300, letters))
    codes = network.write(text.alphabet.index("T"), noise)
    print("\nwritten: T" + "".join(text.alphabet[code] for code in codes) + "\n")
    reached = float(np.mean(losses[-max(1, len(losses) // 10) :]))
    print(f"loss {losses[0]:.3f} at the start, {reached:.3f} at the end (mean of the last tenth)")
    plot(losses, text, arguments.plot)
    return 0 if report.check("loss over that of frequencies", reached / text.by_frequency, 1.0) else 1


if __name__ == "__main__":
    sys.exit(main())
