"""Pre-training: a model becomes the base model of its setting, pi_ref, by descending KL(pi_ref || pi).

1. Episodes are those of the target policy, an equal share on each stage, so that every state that it visits is seen as
   often as it visits it.
2. The loss is exact in what follows: the cross-entropy of the target's whole distribution at each step, not of the word
   that was drawn.
3. Adam; the step size rises over the first twentieth and falls to 0 as a cosine.
4. The oracle measures KL(pi || pi_ref) of the result. Where it is above the goal, training begins anew, four times as
   long.
"""

import hashlib
import json
import math
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from theorybench.agents.language.models import build, load, save, setting_of_config
from theorybench.agents.language.policy import LanguagePolicy
from theorybench.agents.language.vocabulary import Vocabulary, setting_of
from theorybench.agents.rollout import Episodes, collect, sample
from theorybench.envs.core.arrays import numpy_namespace
from theorybench.envs.core.batch import Batch
from theorybench.envs.core.errors import PolicyError
from theorybench.envs.core.policy import SettingPolicy
from theorybench.envs.core.registry import list_envs, lookup
from theorybench.envs.core.setting import Setting
from theorybench.envs.core.streams import root_key

#: KL divergence in nats that a pre-trained model may have to its target.
GOAL = 1e-2
#: Updates of the first attempt, attempts, episodes of an update, and Adam's largest step.
UPDATES, ATTEMPTS, EPISODES, RATE = 200, 4, 256, 3e-3
#: Raised whenever pre-training gives other weights: part of the name of what is kept.
VERSION = 1
#: Where models are kept unless told otherwise.
FOLDER = "THEORYBENCH_CACHE"


def pretrained(
    setting: Setting | str,
    *,
    shape: str = "llama",
    size: str | tuple[int, int, int] = "tiny",
    seed: int = 0,
    kind: str = "reference",
    folder: str | os.PathLike[str] | None = None,
    **parameters: Any,
) -> Any:
    """Return a model that is the base model of a setting, trained once and then kept on disk.

    Args:
        setting: a setting, or an id.
        shape: "llama", "qwen" or "gpt2".
        size: "tiny", "small", "medium" or "large", or width, layers and heads.
        seed: of the weights and of the episodes.
        kind: "reference", or "initial" where agents start elsewhere.
        folder: where models are kept; by default that of the variable THEORYBENCH_CACHE, or ~/.cache/theorybench.
        parameters: of the setting that an id names.

    Returns:
        A `transformers` causal model, in evaluation mode.

    Raises:
        ParameterError: an unknown shape or size.
        PolicyError: it does not come near its target.
    """
    setting = setting_of(setting, **parameters)
    cache = Path(folder or os.environ.get(FOLDER) or Path.home() / ".cache" / "theorybench")
    marks = [VERSION, setting.fingerprint, shape, size, seed, kind]
    place = cache / f"{setting.name}-{hashlib.sha256(json.dumps(marks).encode()).hexdigest()[:16]}"
    if not place.exists():
        model = build(setting, shape=shape, size=size, seed=seed)
        pretrain(model, seed=seed, kind=kind)
        _keep(model, place)
    return load(place)


def _keep(model: Any, place: Path) -> None:
    """Write a model to a new folder, all or nothing; whoever comes first stays."""
    place.parent.mkdir(parents=True, exist_ok=True)
    written = Path(tempfile.mkdtemp(dir=place.parent, prefix=f".{place.name}."))
    try:
        save(model, written)
        os.replace(written, place)
    except OSError:
        shutil.rmtree(written, ignore_errors=True)
        if not place.exists():
            raise


def pretrain(model: Any, *, seed: int = 0, kind: str = "reference", goal: float = GOAL) -> float:
    """Train a model in place until it is the base model of its setting.

    Args:
        model: of `build`.
        seed: of the episodes.
        kind: "reference" or "initial".
        goal: nats of KL divergence that may be left.

    Returns:
        The divergence KL(pi || target) that is left, in nats, as the oracle measures it.

    Raises:
        PolicyError: the goal is out of reach.
    """
    setting = setting_of_config(model.config)
    target, first = SettingPolicy(setting, kind), [weights.detach().clone() for weights in model.parameters()]
    left = math.inf
    for attempt in range(ATTEMPTS):
        with torch.no_grad():
            for weights, value in zip(model.parameters(), first, strict=True):
                weights.copy_(value)
        _descend(model, setting, target, UPDATES * 4**attempt, seed)
        left = divergence(model, setting, target)
        if left <= goal:
            return left
    raise PolicyError(
        f"after {UPDATES * 4 ** (ATTEMPTS - 1)} updates KL(pi || pi_{kind}) is {left:.3g} nats, above {goal:g}"
    )


def divergence(model: Any, setting: Setting, target: SettingPolicy) -> float:
    """Return KL(pi || target) of a model in nats: the oracle's for the reference, else an average over its episodes."""
    policy = LanguagePolicy.of(model)
    if target.kind == "reference":
        entry = next(entry for entry in map(lookup, list_envs()) if entry.setting is type(setting))
        return float(entry.oracle(setting).evaluate(policy, ["kl"])["kl"])
    episodes = _episodes(setting, policy, 2048, np.random.default_rng(0))
    taken = np.arange(setting.horizon) < episodes.lengths[:, None]
    seen = episodes.observations[taken]
    probs, aims = policy.probs(seen), target.probs(seen)
    logs = np.log(np.maximum(probs, 1e-300)) - np.log(np.maximum(aims, 1e-300))
    return float((probs * logs).sum() / len(episodes))


def _episodes(setting: Setting, policy: Any, count: int, rng: np.random.Generator) -> Episodes:
    """Play episodes of a policy, an equal share on each stage."""
    batch = Batch(setting, count, numpy_namespace)
    batch.seed(int(rng.integers(2**63)))
    pairs = (2,) if batch.pairs else ()

    def choose(
        observations: np.ndarray, legal: np.ndarray | None, numbers: np.ndarray, step: int
    ) -> tuple[np.ndarray, np.ndarray]:
        return sample(policy.probs(observations), rng.random((len(observations), *pairs)))

    stages = 1 + np.arange(count) % setting.num_stages if setting.num_stages > 1 else None
    return collect(batch, choose, count, stage=stages)


def _descend(model: Any, setting: Setting, target: SettingPolicy, updates: int, seed: int) -> None:
    """Take Adam's steps down the cross-entropy."""
    rng = np.random.default_rng(root_key(seed, "pretraining", setting.fingerprint) % 2**63)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE, betas=(0.9, 0.99))
    warm = max(1, updates // 20)

    def share(step: int) -> float:
        done = max(0, step - warm) / max(1, updates - warm)
        return min((step + 1) / warm, 0.5 + 0.5 * math.cos(math.pi * done))

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, share)
    model.train()
    for _ in range(updates):
        loss = _cross_entropy(model, setting, target, _episodes(setting, target, EPISODES, rng))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    model.eval()


def _cross_entropy(model: Any, setting: Setting, target: SettingPolicy, episodes: Episodes) -> torch.Tensor:
    """Return the mean cross-entropy of a step; each response is read once where its prompt stays."""
    vocabulary = Vocabulary(setting)
    taken = np.arange(setting.horizon) < episodes.lengths[:, None]
    seen = episodes.observations[taken]
    aims = target.probs(seen)
    if setting.moving_prompt:
        read, taken = seen, np.ones((len(seen), 1), bool)
    else:
        read = episodes.observations[np.arange(len(episodes)), episodes.lengths - 1]
    said = np.zeros(taken.shape, np.int64)
    said[taken] = vocabulary.responses(seen)[1]
    responses, _ = vocabulary.responses(read)
    longest = int(said.max())
    words = np.hstack([vocabulary.prompts(read), responses[:, :longest]]).astype(np.int64)
    there = np.arange(words.shape[1]) < vocabulary.prompt_words + said.max(axis=1)[:, None]
    words = np.where(there, words, vocabulary.padding)
    logits = model(torch.from_numpy(words), attention_mask=torch.from_numpy(there.astype(np.int64))).logits
    rows, steps = np.nonzero(taken)
    places = vocabulary.prompt_words - 1 + said[rows, steps]
    logs = torch.log_softmax(logits[rows, places][:, 1 : setting.num_actions + 1], dim=-1)
    wanted = torch.from_numpy(aims).to(logs)
    return -(wanted * torch.where(wanted > 0, logs, 0.0)).sum(dim=-1).mean()
