"""Tables and figures of arXiv 2511.07368 on TreeMarkovChain."""

from theorybench.envs.core.evidence.study import Study
from theorybench.envs.tree.markov_chain.studies.language_model import LANGUAGE_MODEL
from theorybench.envs.tree.markov_chain.studies.published_table import PAPER_TABLE
from theorybench.envs.tree.markov_chain.studies.training import FIGURES

STUDIES: tuple[Study, ...] = (*FIGURES, PAPER_TABLE, LANGUAGE_MODEL)
