"""The argument `device` of all entry points, with one default and one error."""

import torch

__all__ = ["Device", "device_of"]

Device = str | torch.device | None
"""`"cpu"`, `"cuda"`, `"cuda:1"` and so on. `None`: a GPU if there is one, else the CPU."""


def device_of(device: Device) -> torch.device:
    # An empty environment variable counts as not set. (Not `if not device`: 0 is the first GPU.)
    if device is None or device == "":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        return torch.empty(0, device=device).device
    except (AssertionError, RuntimeError) as error:
        # torch names neither the argument nor a value that works.
        devices = ["cpu"]
        for number in range(torch.cuda.device_count()):
            devices.append(f"cuda:{number}")
        expected = f"one of the devices {', '.join(devices)}"
        reason, _, _ = str(error).partition("\n")
        raise ValueError(f"expected {expected}, got '{device}' ({reason})") from None
