"""Every command and output of the documents is true: run from top to bottom in an empty folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
README = REPOSITORY / "README.md"
BLOCK = re.compile(r"^```(bash|python|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def run(language, code, folder):
    command = {"bash": ["bash", "-eu", "-c"], "python": [sys.executable, "-W", "error", "-c"]}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [*command[language], code], cwd=folder, env=os.environ | {"PATH": path},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), f"{code}\n{done.stderr}"
    return done.stdout


def lines(text):
    """Lines but for the bar that DuckDB draws where a query takes two seconds on a busy machine."""
    told = re.sub("\r?[^\r\n]*\u2595[^\r\n]*[\r\n]*", "", text)
    return "\n".join(line.rstrip() for line in re.split("\r|\n", told)).strip("\n")


@pytest.mark.parametrize(
    ("document", "outputs"),
    [("README.md", 10), ("sql/demo/README.md", 9), ("sql/demo/scanners_and_centres.md", 8)],
)
def test_what_a_document_shows(tmp_path, document, outputs):
    printed, shown = "", 0
    for language, text in BLOCK.findall((REPOSITORY / document).read_text(encoding="utf-8")):
        if language == "text":
            assert lines(printed) == lines(text)
            shown += 1
        else:
            printed = run(language, text, tmp_path)
    assert shown == outputs


def test_setting_up_is_one_line_each():
    setup = re.findall(r"^```sh\n(.*?)\n```$", README.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(setup) == 2
    assert setup[0].endswith("croma-sql demo")
    assert setup[1].endswith("pytest -q")
