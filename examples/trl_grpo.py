"""TRL's GRPO on a tree of reasoning steps, in a script of your own: a tiny Llama, scored exactly before and after.

It needs pip install 'theorybench[llm]'; nothing is downloaded.
"""

import os
import tempfile
import time
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"  # else TRL tells the hub that it is used

import datasets
import gymnasium as gym
from transformers import PrinterCallback
from trl import GRPOConfig, GRPOTrainer

import theorybench as tb
from theorybench.agents.language import LanguagePolicy, LanguageTask, pretrained, tokenizer

ENV, STEPS, GROUPS, GROUP_SIZE = "TheoryBench/TreeMarkovChain-v0", 100, 8, 8


def report(name, model):
    """Measure the model exactly: every chain of thought is enumerated."""
    exact = tb.evaluate(LanguagePolicy.of(model), ENV)
    names = ("score", "pass@1", "pass@8", "entropy", "kl")
    print(f"{name:6}  " + "  ".join(f"{metric} {exact[metric]:.4f}" for metric in names))


warnings.filterwarnings("ignore", category=FutureWarning, module="transformers")  # on options that TRL sets
began = time.perf_counter()
task = LanguageTask(gym.make_vec(ENV, num_envs=64), seed=0)
model = pretrained(ENV, shape="llama")  # is the base model to 1e-2 nats; trained once, then kept on disk
print(f"{model.num_parameters():,} weights; a prompt reads {task.prompts([0])[0]!r}")
report("before", model)


def reward(prompts, completions, index, completion_ids, **columns):
    """Ask the environment: each completion is an episode."""
    return task.rewards(index, completion_ids).tolist()


indices = task.draw(STEPS * GROUPS)
config = GRPOConfig(
    output_dir=tempfile.mkdtemp(),
    max_steps=STEPS,
    per_device_train_batch_size=GROUPS * GROUP_SIZE,
    num_generations=GROUP_SIZE,
    max_completion_length=task.setting.horizon,
    learning_rate=1e-3,
    lr_scheduler_type="constant",
    use_cpu=True,
    bf16=False,
    seed=0,
    save_strategy="no",
    logging_strategy="no",
    report_to=[],
    disable_tqdm=True,
    dataloader_pin_memory=False,
)
trainer = GRPOTrainer(
    model=model,
    args=config,
    reward_funcs=reward,
    train_dataset=datasets.Dataset.from_dict({"prompt": task.prompts(indices), "index": indices}),
    processing_class=tokenizer(ENV),
)
trainer.remove_callback(PrinterCallback)
trainer.train()
report("after", model)
print(f"{STEPS * GROUPS * GROUP_SIZE:,} episodes, {time.perf_counter() - began:.0f} seconds")
