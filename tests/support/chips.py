"""Chips by their data sheets, as ``_core`` takes them for a device: what rules say of ones that are not here."""

from __future__ import annotations

from typing import Any

# Multiprocessors, clock in MHz, GB/s; whether three half-precision products pay there.
CHIPS = {
    "Tesla T4": ("7.5", 40, 1590, 320, True),
    "NVIDIA GeForce RTX 2080 Ti": ("7.5", 68, 1545, 616, False),
    "NVIDIA GeForce GTX 1660": ("7.5", 22, 1785, 192, False),
    "NVIDIA A100-SXM4-80GB": ("8.0", 108, 1410, 2039, True),
    "NVIDIA A30": ("8.0", 56, 1440, 933, True),
    "NVIDIA A10": ("8.6", 72, 1695, 600, False),
    "NVIDIA A40": ("8.6", 84, 1740, 696, False),
    "NVIDIA GeForce RTX 3090": ("8.6", 82, 1695, 936, False),
    "Orin": ("8.7", 16, 1300, 205, True),
    "NVIDIA L4": ("8.9", 58, 2040, 300, False),
    "NVIDIA L40S": ("8.9", 142, 2520, 864, False),
    "NVIDIA GeForce RTX 4090": ("8.9", 128, 2520, 1008, False),
    "NVIDIA B200": ("10.0", 148, 1965, 8000, True),
    "NVIDIA B300": ("10.3", 148, 1965, 8000, True),
    "NVIDIA Thor": ("11.0", 20, 1575, 273, False),  # nobody has said what it has
    "NVIDIA RTX PRO 6000 Blackwell Workstation Edition": ("12.0", 188, 2617, 1792, False),
    "NVIDIA GeForce RTX 5090": ("12.0", 170, 2407, 1792, False),
    "NVIDIA GB10": ("12.1", 48, 2525, 273, False),
    "NVIDIA GPU of the future": ("13.0", 200, 2000, 16000, False),
}
H200 = {
    "name": "NVIDIA H200", "compute_capability": "9.0", "sm_count": 132, "clock_khz": 1980000, "l2_cache": 60 << 20,
    "memory_bytes_per_us": 4.8e6,
}  # fmt: skip


def chip(name: str) -> dict[str, Any]:
    capability, sm_count, mhz, gigabytes, _ = CHIPS[name]
    row = {"name": name, "compute_capability": capability, "sm_count": sm_count, "clock_khz": 1000 * mhz}
    return row | {"l2_cache": 32 << 20, "memory_bytes_per_us": 1e3 * gigabytes}


def pretending(device: dict[str, Any], capability: str) -> dict[str, Any]:
    return device | {"compute_capability": capability, "hardware_capability": device["compute_capability"]}
