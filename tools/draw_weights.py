"""Draws how much each word matters for a sentence's names: `python tools/draw_weights.py docs/tasks/weights.svg`."""

import sys

import matplotlib
from matplotlib.figure import Figure

from elmo_tasks import TrainedTask

TEXT = "Angela Merkel met Tim Cook in Berlin."


def main() -> None:
    matplotlib.rcParams["svg.hashsalt"] = "weights"
    explained = TrainedTask("ner", device="cpu").explain(TEXT)
    words = [word["text"] for word in explained[0]["words"]]
    names = [f"{each['found']['text']} ({each['found']['label']})" for each in explained]
    weights = [[word["weight"] for word in each["words"]] for each in explained]
    figure = Figure(figsize=(6.5, 1.9), layout="constrained")
    axes = figure.subplots()
    axes.imshow(weights, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    axes.set_xticks(range(len(words)), words)
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(length=0)
    for row, of_name in enumerate(weights):
        for column, weight in enumerate(of_name):
            axes.text(
                column, row, f"{weight:.2f}", ha="center", va="center", color="white" if weight > 0.5 else "black"
            )
    figure.savefig(sys.argv[1], metadata={"Date": None})


if __name__ == "__main__":
    main()
