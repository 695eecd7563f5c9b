"""The settings that ship: one registration each."""

from theorybench.envs.core.registry import register
from theorybench.envs.curriculum.countdown import Countdown
from theorybench.envs.curriculum.countdown_claims import CLAIMS as COUNTDOWN_CLAIMS
from theorybench.envs.curriculum.countdown_oracle import DIFFICULTIES as COUNTDOWN_DIFFICULTIES
from theorybench.envs.curriculum.countdown_oracle import CountdownOracle
from theorybench.envs.curriculum.countdown_studies import STUDIES as COUNTDOWN_STUDIES
from theorybench.envs.curriculum.k_fold import KFoldComposition
from theorybench.envs.curriculum.k_fold_claims import CLAIMS as K_FOLD_CLAIMS
from theorybench.envs.curriculum.k_fold_oracle import DIFFICULTIES as K_FOLD_DIFFICULTIES
from theorybench.envs.curriculum.k_fold_oracle import KFoldOracle
from theorybench.envs.curriculum.k_fold_studies import STUDIES as K_FOLD_STUDIES
from theorybench.envs.curriculum.parity import Parity
from theorybench.envs.curriculum.parity_claims import CLAIMS as PARITY_CLAIMS
from theorybench.envs.curriculum.parity_oracle import DIFFICULTIES as PARITY_DIFFICULTIES
from theorybench.envs.curriculum.parity_oracle import ParityOracle
from theorybench.envs.curriculum.parity_studies import STUDIES as PARITY_STUDIES
from theorybench.envs.curriculum.reasoning_tree import ReasoningTree
from theorybench.envs.curriculum.reasoning_tree_claims import CLAIMS as REASONING_TREE_CLAIMS
from theorybench.envs.curriculum.reasoning_tree_oracle import DIFFICULTIES as REASONING_TREE_DIFFICULTIES
from theorybench.envs.curriculum.reasoning_tree_oracle import ReasoningTreeOracle
from theorybench.envs.curriculum.reasoning_tree_studies import STUDIES as REASONING_TREE_STUDIES
from theorybench.envs.curriculum.relative_budget import RelativeBudget
from theorybench.envs.curriculum.relative_budget_claims import CLAIMS as RELATIVE_BUDGET_CLAIMS
from theorybench.envs.curriculum.relative_budget_oracle import DIFFICULTIES as RELATIVE_BUDGET_DIFFICULTIES
from theorybench.envs.curriculum.relative_budget_oracle import RelativeBudgetOracle
from theorybench.envs.curriculum.relative_budget_studies import STUDIES as RELATIVE_BUDGET_STUDIES
from theorybench.envs.curriculum.semiautomaton import Semiautomaton
from theorybench.envs.curriculum.semiautomaton_claims import CLAIMS as SEMIAUTOMATON_CLAIMS
from theorybench.envs.curriculum.semiautomaton_oracle import DIFFICULTIES as SEMIAUTOMATON_DIFFICULTIES
from theorybench.envs.curriculum.semiautomaton_oracle import SemiautomatonOracle
from theorybench.envs.curriculum.semiautomaton_studies import STUDIES as SEMIAUTOMATON_STUDIES
from theorybench.envs.preference.bandit import PreferenceBandit
from theorybench.envs.preference.bandit_claims import CLAIMS as PREFERENCE_BANDIT_CLAIMS
from theorybench.envs.preference.bandit_oracle import PreferenceBanditOracle
from theorybench.envs.preference.bandit_studies import STUDIES as PREFERENCE_BANDIT_STUDIES
from theorybench.envs.preference.cyclic import CyclicPreference
from theorybench.envs.preference.cyclic_claims import CLAIMS as CYCLIC_PREFERENCE_CLAIMS
from theorybench.envs.preference.cyclic_oracle import CyclicPreferenceOracle
from theorybench.envs.preference.cyclic_studies import STUDIES as CYCLIC_PREFERENCE_STUDIES
from theorybench.envs.preference.good_bad_labels import GoodBadLabels
from theorybench.envs.preference.good_bad_labels_claims import CLAIMS as GOOD_BAD_LABELS_CLAIMS
from theorybench.envs.preference.good_bad_labels_oracle import GoodBadLabelsOracle
from theorybench.envs.preference.good_bad_labels_studies import STUDIES as GOOD_BAD_LABELS_STUDIES
from theorybench.envs.preference.inference_alignment import InferenceAlignment
from theorybench.envs.preference.inference_alignment_claims import CLAIMS as INFERENCE_ALIGNMENT_CLAIMS
from theorybench.envs.preference.inference_alignment_oracle import InferenceAlignmentOracle
from theorybench.envs.preference.inference_alignment_studies import STUDIES as INFERENCE_ALIGNMENT_STUDIES
from theorybench.envs.preference.optimal_advantage import OptimalAdvantage
from theorybench.envs.preference.optimal_advantage_claims import CLAIMS as OPTIMAL_ADVANTAGE_CLAIMS
from theorybench.envs.preference.optimal_advantage_oracle import OptimalAdvantageOracle
from theorybench.envs.preference.optimal_advantage_studies import STUDIES as OPTIMAL_ADVANTAGE_STUDIES
from theorybench.envs.preference.reward_teacher import RewardTeacher
from theorybench.envs.preference.reward_teacher_claims import CLAIMS as REWARD_TEACHER_CLAIMS
from theorybench.envs.preference.reward_teacher_oracle import RewardTeacherOracle
from theorybench.envs.preference.reward_teacher_studies import STUDIES as REWARD_TEACHER_STUDIES
from theorybench.envs.tree.markov_chain import TreeMarkovChain
from theorybench.envs.tree.markov_chain_claims import CLAIMS as TREE_MARKOV_CHAIN_CLAIMS
from theorybench.envs.tree.markov_chain_oracle import MarkovChainOracle
from theorybench.envs.tree.markov_chain_studies import STUDIES as TREE_MARKOV_CHAIN_STUDIES
from theorybench.envs.tree.metastable_chain import MetastableChain
from theorybench.envs.tree.metastable_chain_claims import CLAIMS as METASTABLE_CHAIN_CLAIMS
from theorybench.envs.tree.metastable_chain_oracle import MetastableChainOracle

register(
    "TheoryBench/Countdown-v0",
    Countdown,
    CountdownOracle,
    claims=COUNTDOWN_CLAIMS,
    budget=20_000,
    studies=COUNTDOWN_STUDIES,
    difficulties=COUNTDOWN_DIFFICULTIES,
)
register(
    "TheoryBench/CyclicPreference-v0",
    CyclicPreference,
    CyclicPreferenceOracle,
    claims=CYCLIC_PREFERENCE_CLAIMS,
    budget=30_000,
    studies=CYCLIC_PREFERENCE_STUDIES,
)
register(
    "TheoryBench/GoodBadLabels-v0",
    GoodBadLabels,
    GoodBadLabelsOracle,
    claims=GOOD_BAD_LABELS_CLAIMS,
    budget=20_000,
    studies=GOOD_BAD_LABELS_STUDIES,
)
register(
    "TheoryBench/InferenceAlignment-v0",
    InferenceAlignment,
    InferenceAlignmentOracle,
    claims=INFERENCE_ALIGNMENT_CLAIMS,
    budget=20_000,
    studies=INFERENCE_ALIGNMENT_STUDIES,
)
register(
    "TheoryBench/KFoldComposition-v0",
    KFoldComposition,
    KFoldOracle,
    claims=K_FOLD_CLAIMS,
    budget=20_000,
    studies=K_FOLD_STUDIES,
    difficulties=K_FOLD_DIFFICULTIES,
)
register(
    "TheoryBench/MetastableChain-v0",
    MetastableChain,
    MetastableChainOracle,
    claims=METASTABLE_CHAIN_CLAIMS,
    budget=20_000,
)
register(
    "TheoryBench/OptimalAdvantage-v0",
    OptimalAdvantage,
    OptimalAdvantageOracle,
    claims=OPTIMAL_ADVANTAGE_CLAIMS,
    budget=20_000,
    studies=OPTIMAL_ADVANTAGE_STUDIES,
)
register(
    "TheoryBench/Parity-v0",
    Parity,
    ParityOracle,
    claims=PARITY_CLAIMS,
    budget=20_000,
    studies=PARITY_STUDIES,
    difficulties=PARITY_DIFFICULTIES,
)
register(
    "TheoryBench/PreferenceBandit-v0",
    PreferenceBandit,
    PreferenceBanditOracle,
    claims=PREFERENCE_BANDIT_CLAIMS,
    budget=30_000,
    studies=PREFERENCE_BANDIT_STUDIES,
)
register(
    "TheoryBench/ReasoningTree-v0",
    ReasoningTree,
    ReasoningTreeOracle,
    claims=REASONING_TREE_CLAIMS,
    budget=20_000,
    studies=REASONING_TREE_STUDIES,
    difficulties=REASONING_TREE_DIFFICULTIES,
)
register(
    "TheoryBench/RelativeBudget-v0",
    RelativeBudget,
    RelativeBudgetOracle,
    claims=RELATIVE_BUDGET_CLAIMS,
    budget=20_000,
    studies=RELATIVE_BUDGET_STUDIES,
    difficulties=RELATIVE_BUDGET_DIFFICULTIES,
)
register(
    "TheoryBench/RewardTeacher-v0",
    RewardTeacher,
    RewardTeacherOracle,
    claims=REWARD_TEACHER_CLAIMS,
    budget=20_000,
    studies=REWARD_TEACHER_STUDIES,
)
register(
    "TheoryBench/Semiautomaton-v0",
    Semiautomaton,
    SemiautomatonOracle,
    claims=SEMIAUTOMATON_CLAIMS,
    budget=20_000,
    studies=SEMIAUTOMATON_STUDIES,
    difficulties=SEMIAUTOMATON_DIFFICULTIES,
)
register(
    "TheoryBench/TreeMarkovChain-v0",
    TreeMarkovChain,
    MarkovChainOracle,
    claims=TREE_MARKOV_CHAIN_CLAIMS,
    budget=20_000,
    studies=TREE_MARKOV_CHAIN_STUDIES,
)
