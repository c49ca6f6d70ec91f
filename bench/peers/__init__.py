"""SmolLM2 on ours and on each peer that installs: same weights, prompt and threads, turn by turn.

    python -m bench.peers --work DIR --peers-python PATH

from the repository's folder. `docs/benchmarks.md` says what is measured and how.
"""
