"""Check commit subjects: `<area>: <imperative verb> …`, at most 72 characters, one topic.

    python -m tools.check_commits                 the commits since origin/main
    python -m tools.check_commits --message FILE  one message, as the hook commit-msg does

Exit status 1 if a subject is invalid. Merge commits are exempt.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LENGTH = 72
CONVENTION_START = "7ec1b6da84109cd677a99c2f39f040e72d951ec7"  # its descendants follow it

_AREA = r"[a-z][\w./-]*"
_SUBJECT = re.compile(rf"(?P<areas>{_AREA}(, {_AREA})*): (?P<verb>[a-z][a-z-]*)( .*)?")
_AUTOSQUASH = ("fixup! ", "squash! ", "amend! ")  # rebasing removes these commits

# A verb is recognized by its form: no function word, participle, gerund, plural or third person.
_FUNCTION_WORD = re.compile(
    "a|all|an|and|any|as|at|both|by|each|every|few|fewer|for|from|how|if|in|into|it|its|less|many"
    "|more|most|new|no|not|of|on|one|only|or|other|our|some|than|that|the|their|there|these|they"
    "|this|those|to|two|we|what|when|where|which|who|why|with|without"
)
_INFLECTED = re.compile(".+(ed|ing|[^su]s)")
_VERBS = {"alias", "bias", "bring", "embed", "exceed", "feed", "need", "proceed", "seed", "speed"}


def problems(subject: str) -> list[str]:
    """List what is wrong with a subject.

    >>> problems("columnar: evaluate semi-joins with bitmaps"), problems("rdf, store: hash once")
    ([], [])
    >>> problems("columnar: lists without a compiler; format")
    ["'lists' is not an imperative verb", "';' joins several topics: split the commit"]
    >>> problems("Fix it")
    ["does not have the form '<area>: <imperative verb> …'"]
    """
    messages = []
    parts = _SUBJECT.fullmatch(subject)
    if parts is None:
        messages.append("does not have the form '<area>: <imperative verb> …'")
    elif not _is_imperative(parts["verb"]):
        messages.append(f"{parts['verb']!r} is not an imperative verb")
    if len(subject) > LENGTH:
        messages.append(f"has {len(subject)} characters, more than {LENGTH}")
    if ";" in subject:
        messages.append("';' joins several topics: split the commit")
    return messages


def _is_imperative(word: str) -> bool:
    return word in _VERBS or not (_FUNCTION_WORD.fullmatch(word) or _INFLECTED.fullmatch(word))


def subject_of(message: str) -> str:
    """The first line of a message file that is neither empty nor a comment."""
    lines = (line.strip() for line in message.splitlines())
    return next((line for line in lines if line and not line.startswith("#")), "")


def commits(root: Path) -> list[tuple[str, str]] | str:
    """The abbreviated hashes and subjects of the commits to check, or the reason to check none.

    These are the commits since `origin/main` and since the convention was introduced, as far as
    the clone has these commits.
    """
    top = _git(root, "rev-parse", "--show-toplevel")
    if top is None or Path(top) != root:
        return "not a git checkout"
    bases = []
    if _git(root, "merge-base", "origin/main", "HEAD") is not None:
        bases.append("origin/main")
    if _git(root, "merge-base", "--is-ancestor", CONVENTION_START, "HEAD") is not None:
        bases.append(CONVENTION_START)
    if not bases:
        return f"the history has neither origin/main nor {CONVENTION_START[:7]}"
    log = _git(root, "log", "--no-merges", "--format=%h %s", "HEAD", "--not", *bases)
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in (log or "").splitlines()]


def _git(root: Path, *arguments: str) -> str | None:
    """The output of git; None if it fails or is not installed."""
    try:
        process = subprocess.run(
            ["git", *arguments], cwd=root, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return process.stdout.strip()


def main(arguments: Sequence[str] | None = None) -> int:
    """Check a message or a range of commits; print the invalid subjects."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--message", type=Path, metavar="FILE", help="check the message in FILE")
    options = parser.parse_args(arguments)
    if options.message is not None:
        subject = subject_of(options.message.read_text("utf-8"))
        exempt = not subject or subject.startswith(("Merge ", *_AUTOSQUASH))
        checked = [] if exempt else [("", subject)]
    else:
        history = commits(ROOT)
        if isinstance(history, str):
            print(f"Commit subjects not checked: {history}.")
            return 0
        checked = history
    invalid = [(name, subject, wrong) for name, subject in checked if (wrong := problems(subject))]
    for name, subject, wrong in invalid:
        print(f"{name} {subject}".strip(), *(f"  {problem}" for problem in wrong), sep="\n")
    if invalid:
        print("See CONTRIBUTING.md, 'Commits'.", file=sys.stderr)
    return 1 if invalid else 0


if __name__ == "__main__":
    sys.exit(main())
