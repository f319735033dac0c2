"""
Speed of the training of a biLM: `python benchmarks/gpu/training_speed.py --device cuda --output FILE.jsonl`.

Steps on made-up sentences, with the optimizer, for both sizes, in each precision, with a sampled softmax (and with a
full one at the small size). `--profile FILE` also writes where the time of some steps goes. `--small` is for trying the
script out.
"""

import argparse
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from lm_data import LmData, pack, read_text
from lm_training import Settings, Training
from records import Records

from elmo_tasks.gpu_check.batches import ragged


def measure(settings: Settings, folder: Path, device: torch.device, n_steps: int, profile: Path | None) -> dict:
    data = LmData(folder, settings.max_words, device)
    training = Training(settings, data, read_text(folder, "train"), device)
    for _ in range(3 if n_steps > 3 else 1):
        training.run_step()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
    start = time.perf_counter()
    n_tokens = sum(training.run_step() for _ in range(n_steps))
    float(training.loss)  # Waits for the GPU.
    seconds = time.perf_counter() - start
    numbers = {"tokens_per_second": round(n_tokens / seconds), "milliseconds_of_step": 1000 * seconds / n_steps}
    if device.type == "cuda":
        numbers["peak_mib"] = torch.cuda.max_memory_allocated(device) // 2**20
    if profile is not None:
        activities = [torch.profiler.ProfilerActivity.CPU]
        activities += [torch.profiler.ProfilerActivity.CUDA] if device.type == "cuda" else []
        with torch.profiler.profile(activities=activities) as profiler:
            for _ in range(min(3, n_steps)):
                training.run_step()
            float(training.loss)
        order = "self_cuda_time_total" if device.type == "cuda" else "self_cpu_time_total"
        with profile.open("a", encoding="utf-8") as file:
            file.write(f"{settings}\n{profiler.key_averages().table(sort_by=order, row_limit=40)}\n")
    return numbers


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--output", type=Path, help="JSON lines; what is there is not measured again")
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--tokens", type=int, nargs="+", default=[16_384, 65_536])
    parser.add_argument("--profile", type=Path)
    parser.add_argument("--small", action="store_true", help="a tiny biLM, few words and steps")
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    records = Records(arguments.output, arguments.minutes)
    sizes = ["tiny"] if arguments.small else ["small", "original"]
    all_tokens, n_steps = ([200], 2) if arguments.small else (arguments.tokens, arguments.steps)
    max_words, n_samples = (1000, 50) if arguments.small else (180_000, 8192)
    with TemporaryDirectory() as name:
        folder = Path(name)
        # Words that are made up from many seeds, so that the vocabulary is as large as that of a text.
        n_seeds, n_sentences = (2, 30) if arguments.small else (200, 500)
        text = [sentence for seed in range(n_seeds) for sentence in ragged(n_sentences, 56, seed) if sentence]
        pack(folder, {"train": text}, part_tokens=sys.maxsize)
        for size in sizes:
            for precision in ("bf16", "tf32", "float32") if device.type == "cuda" else ("float32",):
                for softmax in ("sampled", "full") if size != "original" else ("sampled",):
                    for tokens in all_tokens:
                        settings = Settings(
                            size=size,
                            precision=precision,
                            tokens=tokens,
                            max_words=max_words,
                            n_samples=n_samples if softmax == "sampled" else 0,
                        )
                        records.measure(
                            f"training, {size}, {precision}, {softmax} softmax, {tokens} tokens, {device.type}",
                            lambda settings=settings: measure(settings, folder, device, n_steps, arguments.profile),
                        )
    return records.status()


if __name__ == "__main__":
    sys.exit(main())
