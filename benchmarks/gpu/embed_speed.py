"""
Speed of `python -m elmo_tasks embed` on a GPU: `python benchmarks/gpu/embed_speed.py --text TEXT --output FILE.jsonl`.

Jobs in this process, one for each biLM, precision, number of words at once and type of the numbers in the file; the
first of each biLM is preceded by a short one, which compiles kernels. `--small` is for trying the script out.
"""

import argparse
import sys
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from records import Records

from elmo_tasks.bilm import Bilm
from elmo_tasks.bilm.lstm.precision import supports_bf16
from elmo_tasks.embed import EmbedOptions, embed_file
from elmo_tasks.files.text_lines import numbered_lines
from elmo_tasks.gpu_check.part import SIZES
from elmo_tasks.shipped import FIXTURES, PRETRAINED


def measure(text: Path, options: EmbedOptions) -> dict:
    with TemporaryDirectory() as folder:
        report = embed_file(text, Path(folder, "out.h5"), options, show_progress=False)
    return {
        "tokens_per_second": round(report.n_tokens / report.seconds),
        "tokens": report.n_tokens,
        "bytes_per_token": round(report.n_bytes / report.n_tokens),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--text", type=Path, default=FIXTURES / "lm" / "train.txt", help="a sentence a line")
    parser.add_argument("--lines", type=int, default=40_000)
    parser.add_argument("--output", type=Path, help="JSON lines; what is there is not measured again")
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--small", action="store_true", help="a tiny biLM and few lines")
    arguments = parser.parse_args()
    records = Records(arguments.output, arguments.minutes)
    device = torch.device(arguments.device)
    precisions = ["float32", *(["tf32"] if device.type == "cuda" else []), *(["bf16"] if supports_bf16(device) else [])]
    with TemporaryDirectory() as name:
        folder = Path(name)
        text, short = folder / "text.txt", folder / "short.txt"
        lines = [line for _, line in islice(numbered_lines(arguments.text), 40 if arguments.small else arguments.lines)]
        text.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        short.write_text("".join(f"{line}\n" for line in lines[:20]), encoding="utf-8")
        bilms = {"small-open": PRETRAINED / "small-open"}
        # Random weights: the speed is that of the authors'.
        for size in ["tiny"] if arguments.small else ["original"]:
            bilms[size] = folder / size
            bilms[size].mkdir()
            Bilm(SIZES[size]).save(bilms[size] / "options.json", bilms[size] / "weights.hdf5")
        if arguments.small:
            del bilms["small-open"]
        for bilm, path in bilms.items():
            for precision in precisions:
                for batch_tokens in (4096, 16_384):
                    for dtype, pool in (("float32", None), ("float16", None), ("float32", "mean")):
                        options = EmbedOptions(
                            str(path),
                            device=arguments.device,
                            precision=precision,
                            batch_tokens=batch_tokens,
                            dtype=dtype,
                            pool=pool,
                            part_lines=2000,
                        )

                        def job(options: EmbedOptions = options) -> dict:
                            measure(short, options)
                            return measure(text, options)

                        records.measure(f"embed, {bilm}, {precision}, {batch_tokens}, {dtype}, pool {pool}", job)
    return records.status()


if __name__ == "__main__":
    sys.exit(main())
