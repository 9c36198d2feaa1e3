"""The callbacks, in the trainers of the real packages."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
import telltale

_STEPS = 4


def _recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> telltale.RecordedDevice:
    """A device of which each step records something."""
    tmp_path.chmod(0o700)
    monkeypatch.setenv("TT_METRICS_SOCKET_DIR", str(tmp_path))
    return telltale.Runtime("trainer 1").open_device(0)


def test_lightning_s_trainer_logs_the_cost_of_each_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pl = importlib.import_module("lightning.pytorch")
    torch = importlib.import_module("torch")
    module = importlib.import_module("telltale.lightning")
    with _recorded(tmp_path, monkeypatch) as device:

        class Model(pl.LightningModule):
            def __init__(self) -> None:
                super().__init__()  # pyright: ignore[reportUnknownMemberType]
                self.layer = torch.nn.Linear(8, 1)

            def training_step(self, batch: Any, index: int) -> Any:
                device.allocate(1 << 20, 0x1000)
                device.free(0x1000)
                return self.layer(batch).square().mean()

            def configure_optimizers(self) -> Any:
                return torch.optim.SGD(self.parameters(), lr=0.01)

        blocks: list[telltale.Block] = []
        callback = module.TelltaleCallback(report=blocks.append)
        trainer = pl.Trainer(
            max_steps=_STEPS,
            accelerator="cpu",
            callbacks=[callback],
            logger=pl.loggers.CSVLogger(str(tmp_path)),
            log_every_n_steps=1,
            enable_progress_bar=False,
            enable_checkpointing=False,
        )
        trainer.fit(Model(), torch.utils.data.DataLoader(torch.ones(64, 8), batch_size=8))
        assert callback.costs.steps == len(blocks) == _STEPS
        assert callback.costs.peak == 1 << 20, str(callback.costs)
        (log,) = tmp_path.rglob("metrics.csv")
        heading, *rows = log.read_text().splitlines()
        assert {"telltale/step_seconds", "telltale/peak_bytes", "telltale/kept_bytes"} <= set(heading.split(","))
        assert len(rows) == _STEPS


def test_hugging_face_s_trainer_logs_the_cost_of_each_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    transformers = importlib.import_module("transformers")
    torch = importlib.import_module("torch")
    module = importlib.import_module("telltale.transformers")
    with _recorded(tmp_path, monkeypatch) as device:

        class Model(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()  # pyright: ignore[reportUnknownMemberType]
                self.layer = torch.nn.Linear(8, 1)

            def forward(self, values: Any) -> dict[str, Any]:
                device.allocate(1 << 20, 0x1000)
                device.free(0x1000)
                return {"loss": self.layer(values).square().mean()}

        callback = module.TelltaleCallback()
        trainer = transformers.Trainer(
            model=Model(),
            args=transformers.TrainingArguments(
                output_dir=str(tmp_path / "out"),
                max_steps=_STEPS,
                logging_steps=1,
                report_to=[],
                save_strategy="no",
                disable_tqdm=True,
                use_cpu=True,
            ),
            train_dataset=[{"values": torch.ones(8)} for _ in range(64)],
            callbacks=[callback],
        )
        callback.put_first(trainer)
        assert trainer.callback_handler.callbacks[0] is callback
        trainer.train()
        assert callback.costs.steps == _STEPS
        logged = [entry for entry in trainer.state.log_history if "loss" in entry]
        assert len(logged) == _STEPS
        assert all(entry["telltale/peak_bytes"] == 1 << 20 for entry in logged), logged
        assert all(entry["telltale/step_seconds"] > 0 for entry in logged)
