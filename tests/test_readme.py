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


def run(language, code, folder, script):
    """Run a block from a file: after ``python -c``, DuckDB draws progress bars into stdout."""
    command = {"bash": ["bash", "-eu"], "python": [sys.executable, "-W", "error"]}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    script.write_text(code, encoding="utf-8")
    done = subprocess.run(
        [*command[language], script], cwd=folder, env=os.environ | {"PATH": path},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), f"{code}\n{done.stderr}"
    return done.stdout


def lines(text):
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


@pytest.mark.parametrize(
    ("document", "outputs"),
    [("README.md", 10), ("sql/demo/README.md", 9), ("sql/demo/scanners_and_centres.md", 8)],
)
def test_what_a_document_shows(tmp_path, tmp_path_factory, document, outputs):
    printed, shown = "", 0
    script = tmp_path_factory.mktemp("script") / "block"
    for language, text in BLOCK.findall((REPOSITORY / document).read_text(encoding="utf-8")):
        if language == "text":
            assert lines(printed) == lines(text)
            shown += 1
        else:
            printed = run(language, text, tmp_path, script)
    assert shown == outputs


def test_setting_up_is_one_line_each():
    setup = re.findall(r"^```sh\n(.*?)\n```$", README.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(setup) == 2
    assert setup[0].endswith("croma-sql demo")
    assert setup[1].endswith("pytest -q")
