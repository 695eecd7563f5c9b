"""What every claim predicts: its numbers change only on purpose.

`predictions.json` holds them by id. After adding a claim, or removing the line of one whose prediction was wrong:

    python tests/envs/core/evidence/test_predictions.py

adds the predictions that are missing and keeps all others.
"""

import json
from pathlib import Path

import pytest

import theorybench as tb

PREDICTIONS = Path(__file__).with_name("predictions.json")
IDS = [id for id in tb.list_envs() if id.startswith("TheoryBench/")]


def predictions(env_id: str) -> dict[str, float]:
    return {claim.id: float(claim.predicted(claim.make_oracle(claim.setting))) for claim in tb.claims(env_id)}


@pytest.mark.parametrize("ours", IDS)
def test_claims_predict_what_they_did(ours):
    known, found = json.loads(PREDICTIONS.read_text()), predictions(ours)
    assert set(found) <= set(known), f"new claims: add them with `python {Path(__file__).name}`"
    assert found == pytest.approx({id: known[id] for id in found}, rel=1e-9, abs=1e-12)


def test_every_prediction_is_of_a_claim():
    assert set(json.loads(PREDICTIONS.read_text())) == {claim.id for env_id in IDS for claim in tb.claims(env_id)}


if __name__ == "__main__":
    held = json.loads(PREDICTIONS.read_text()) if PREDICTIONS.exists() else {}
    every = {id: value for env_id in IDS for id, value in predictions(env_id).items()}
    PREDICTIONS.write_text(json.dumps({**every, **held}, indent=1, sort_keys=True) + "\n")
