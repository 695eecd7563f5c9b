"""What a batch of the torch back end does without waiting for its device."""

from abc import abstractmethod
from typing import Any

import numpy as np

from theorybench.envs.core.arrays import to_numpy
from theorybench.envs.core.compiled.stepping import Columns
from theorybench.envs.core.dynamics import Dynamics
from theorybench.envs.core.environments.metering import Meter
from theorybench.envs.core.streams import Streams


class TorchSteps:
    """Base of `Batch`, which says what its attributes are."""

    setting: Dynamics
    xp: Any
    device: Any
    state: Any
    steps: Any
    meter: Meter | None
    _stage: Any
    _hint: Any
    _legal: tuple[Any, Any]
    _on_device: Any = None  # what steps in torch write into; it is valid for the state that it holds

    @property
    @abstractmethod
    def streams(self) -> Streams:
        """The random streams."""

    @abstractmethod
    def admit(self, rows: Any) -> None:
        """Refuse a step of environments that cannot move, and charge for it."""

    @abstractmethod
    def _charge(self, meter: Meter, rows: Any) -> None: ...

    @abstractmethod
    def _by_run(self, rows: Any, chosen: np.ndarray) -> np.ndarray: ...

    @property
    def columns(self) -> Columns:
        """What is held of every environment, to be written in place where it is contiguous."""
        return Columns(self.state, *self.streams.columns, self.steps, self._stage, self._hint)

    def step_on_device(self, actions: Any, compiled: bool) -> Any:
        """Move all environments, and begin again those that end.

        Args:
            actions: checked ones.
            compiled: whether `torch.compile` fuses the step.

        Returns:
            The `TensorStep`; None where nothing has moved, since the setting is not traced.

        Raises:
            BudgetExhausted: see `Batch.step`.
            ResetNeeded: see `Batch.step`.
        """
        from theorybench.envs.core.compiled.device import TensorSteps, hindrance  # torch takes a second to import

        if hindrance(self.setting, self.device, self._stage is not None, self._hint is not None):
            return None
        steps, every = self._on_device, slice(None)
        if steps is None or steps.state is not self.state:
            self.admit(every)
            self.state = type(self.state)(*(self.xp.asarray(field, copy=True) for field in self.state))
            steps = self._on_device = TensorSteps(self.setting, self.columns, compiled)
        elif self.meter is not None:
            self._charge(self.meter, every)
        self._legal = (None, None)
        stepped = steps.step(actions)
        if self.meter is not None and stepped.invalid is not None:
            self.meter.illegal += self._by_run(every, to_numpy(stepped.invalid))
        return stepped
