"""The cost of sealing: time and bytes of one payload, compared with the conversion alone."""

import asyncio
import time
from typing import Final

from temporalio.converter import DataConverter

from bench.figure import Figure, median
from bench.pace import Pace
from septet.contracts.order import WorkOrderInput
from septet.keys.key_ring import KeyRing, new_key_line
from workers.connection.payload_codec import SealingCodec
from workers.connection.plugin import SeptetPlugin

_TEXT_BYTES: Final = 4096
_ROUNDS: Final = 300
_MICRO: Final = 1e6


def measure(pace: Pace) -> list[Figure]:
    """Measure encoding and decoding of a payload of 4 KiB."""
    rounds = _ROUNDS // 10 if pace.quick else _ROUNDS
    return asyncio.run(_measured(rounds))


async def _measured(rounds: int) -> list[Figure]:
    order = WorkOrderInput(repository="/app", title="Totals are wrong", description="x" * _TEXT_BYTES)
    line = new_key_line("k1")
    bare, sealing = _converter(None), _converter(SealingCodec(KeyRing(lambda: line)))
    bare_seconds, sealed_seconds = [], []
    for _ in range(rounds):  # in turn, so that other load hurts both alike
        bare_seconds.append(await _round_trip(bare, order))
        sealed_seconds.append(await _round_trip(sealing, order))
    bare_bytes = (await bare.encode([order]))[0].ByteSize()
    sealed_bytes = (await sealing.encode([order]))[0].ByteSize()
    beside = "converted alone"
    return [
        Figure(
            "a sealed payload of 4 KiB, there and back", median(sealed_seconds) * _MICRO, "µs",
            baseline=median(bare_seconds) * _MICRO, beside=beside,
        ),
        Figure(
            "its size", float(sealed_bytes), "bytes", 1.1 * bare_bytes, baseline=float(bare_bytes), beside=beside,
        ),
    ]  # fmt: skip


def _converter(codec: SealingCodec | None) -> DataConverter:
    """Return the converter of a client with this codec."""
    config = SeptetPlugin(codec=codec).configure_replayer({"data_converter": DataConverter.default})
    return config["data_converter"]


async def _round_trip(converter: DataConverter, order: WorkOrderInput) -> float:
    started = time.perf_counter()
    await converter.decode(await converter.encode([order]), [WorkOrderInput])
    return time.perf_counter() - started
