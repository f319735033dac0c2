"""The check of a GPU: whether the biLM computes on it what it computes on the CPU, and how fast; without AllenNLP."""

from elmo_tasks.gpu_check.cli import DESCRIPTION, add_arguments, check_gpu

__all__ = ["DESCRIPTION", "add_arguments", "check_gpu"]
