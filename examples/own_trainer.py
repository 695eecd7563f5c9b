"""Your own trainer of a language model: REINFORCE with a KL penalty in plain torch, scored exactly while it trains.

It needs pip install 'theorybench[llm]'; nothing is downloaded.
"""

import time

import gymnasium as gym
import torch

import theorybench as tb
from theorybench.agents.language import LanguagePolicy, LanguageTask, pretrained, tokenizer

ENV, STEPS, BATCH, KL, LEARNING_RATE = "TheoryBench/TreeMarkovChain-v0", 100, 64, 0.4, 1e-3

torch.manual_seed(0)
began = time.perf_counter()
task, words = LanguageTask(gym.make_vec(ENV, num_envs=BATCH), seed=0), tokenizer(ENV)
model, base = pretrained(ENV, shape="qwen"), pretrained(ENV, shape="qwen")
optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)


def log_probs(model, texts, start):
    """Log-probability of each text from word `start` on: (texts,)."""
    logs = torch.log_softmax(model(texts).logits[:, start - 1 : -1], dim=-1)
    return logs.gather(-1, texts[:, start:, None]).sum(dim=(1, 2))


for step in range(STEPS + 1):
    if step % 25 == 0:
        exact = tb.evaluate(LanguagePolicy.of(model), ENV)
        names = ("score", "pass@1", "pass@8", "entropy", "kl")
        print(f"step {step:3}  " + "  ".join(f"{metric} {exact[metric]:.4f}" for metric in names))
    indices = task.draw(BATCH)
    prompts = words(task.prompts(indices), return_tensors="pt")["input_ids"]  # all prompts of a setting are as long
    texts = model.generate(prompts, max_new_tokens=task.setting.horizon, do_sample=True)
    rewards = torch.as_tensor(task.rewards(indices, texts[:, prompts.shape[1] :].tolist()))  # each an episode
    now = log_probs(model, texts, prompts.shape[1])
    with torch.no_grad():
        paid = rewards - KL * (now - log_probs(base, texts, prompts.shape[1]))
    loss = -((paid - paid.mean()) * now).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{STEPS * BATCH:,} episodes, {time.perf_counter() - began:.0f} seconds")
