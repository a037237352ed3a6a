"""What the public module promises without a session."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.spark_pipeline import hash_of
from corollary.engines.spark.failures import user_error
from corollary.knowledge_base.base import KnowledgeBase
from corollary.knowledge_base.rules import read_rules


def test_spark_is_loaded_when_it_is_needed() -> None:
    code = (
        "import sys, corollary.spark, corollary.cli.main;"
        "assert not {'pyspark', 'py4j', 'numba'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        (
            "[PATH_NOT_FOUND] Path does not exist: s3a://b/x.nt. SQLSTATE: 42K03",
            "E541",
            "there is nothing at s3a://b/x.nt",
        ),
        (
            "org.apache.spark.SparkException: Job\njava.io.IOException: No space left on device",
            "E542",
            "encode failed: there is no space left on a disk of the cluster",
        ),
        (
            'UnsupportedFileSystemException: No FileSystem for scheme "s3a"',
            "E543",
            "Spark has no connector for s3a paths",
        ),
        (
            "ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found",
            "E543",
            "Spark has no connector for S3AFileSystem paths",
        ),
        (
            "java.nio.file.AccessDeniedException: s3a://b/x.nt: 403",
            "E544",
            "encode failed: access denied s3a://b/x.nt: 403",
        ),
        (
            "java.net.UnknownHostException: namenode",
            "E545",
            "encode failed: the host namenode is not known",
        ),
        (
            "java.lang.OutOfMemoryError: Java heap space",
            "E406",
            "encode failed: Spark ran out of memory",
        ),
        (
            "ModuleNotFoundError: No module named 'corollary.engines'\n",
            "E551",
            "encode failed: the Python of Spark's workers lacks corollary",
        ),
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.10 than that in"
            " driver: 3.11, PySpark cannot run with different minor versions.",
            "E551",
            "encode failed: Python in worker has different version 3.10 than that in driver 3.11",
        ),
        (
            'java.io.IOException: Cannot run program "/opt/gone/bin/python": error=2',
            "E551",
            "encode failed: Spark's workers cannot start /opt/gone/bin/python",
        ),
        (
            "An exception was thrown from the Python worker:\nTraceback …\nValueError: no\n",
            "E540",
            "encode failed: ValueError: no",
        ),
        (
            "An error occurred\norg.apache.spark.SparkException: Job aborted\n"
            "java.io.FileAlreadyExistsException: it is there",
            "E540",
            "encode failed: FileAlreadyExistsException: it is there",
        ),
        (
            "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)\n"
            "Caused by: java.io.EOFException",
            "E406",
            "encode failed: a Python worker was killed, or could not get more memory",
        ),
        (
            "PythonException: Traceback\nnumpy._core._exceptions._ArrayMemoryError: Unable to"
            " allocate 9.00 GiB for an array",
            "E406",
            "encode failed: a Python worker was killed, or could not get more memory",
        ),
    ],
)
def test_failures_are_one_sentence(text: str, code: str, message: str) -> None:
    error = user_error("encode", text)
    assert (error.code, error.message) == (code, message)


def test_the_hash_of_the_benchmark_tells_facts_apart(tmp_path: Path) -> None:
    found = []
    for number, text in enumerate(("<a> <p> <b> . <c> <p> <d> .", "<c> <p> <d> . <a> <p> <b> .",
                                   "<a> <p> <b> . <d> <p> <c> .")):  # fmt: skip
        kb = KnowledgeBase(read_rules("none"))
        with kb.transaction() as tx:
            tx.insert(re.sub("<(.)>", r"<urn:\1>", text))
        kb.save(tmp_path / str(number))
        found.append(hash_of(tmp_path / str(number)))
    assert found[0] == found[1] != found[2]
