"""A kernel as notebooks have it, without ipywidgets."""

import os
from dataclasses import dataclass, field

from jupyter_client import KernelManager
from jupyter_client.kernelspec import KernelSpecManager

HANGS = 120  # seconds without a word from the kernel
WITHOUT_WIDGETS = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "ipywidgets":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
"""


@dataclass
class Cell:
    """What a cell has put out."""

    text: str = ""
    warned: str = ""
    error: str = ""
    shown: list = field(default_factory=list)  # bundles, of which a later one may take the place


class Notebook:
    def __init__(self, folder):
        environment = {"JUPYTER_RUNTIME_DIR": str(folder), "IPYTHONDIR": str(folder / "ipython")}
        self.manager = KernelManager(
            kernel_spec_manager=KernelSpecManager(kernel_dirs=[]),
            transport="ipc",
            connection_file=str(folder / "kernel.json"),
            ip=str(folder / "kernel"),
        )
        self.manager.start_kernel(cwd=str(folder), env=os.environ | environment)
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=HANGS)
        assert self.run(WITHOUT_WIDGETS) == Cell()

    def run(self, code, interrupted_at=None):
        """Run a cell; Ctrl-C comes when it prints a certain text."""
        cell, sent = Cell(), self.client.execute(code)
        while True:
            message = self.client.get_iopub_msg(timeout=HANGS)
            kind, content = message["msg_type"], message["content"]
            if message["parent_header"].get("msg_id") != sent:
                continue
            if kind == "status" and content["execution_state"] == "idle":
                return cell
            _note(cell, kind, content)
            if interrupted_at is not None and interrupted_at in cell.text:
                self.manager.interrupt_kernel()
                interrupted_at = None

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


def _note(cell, kind, content):
    if kind == "stream":
        name = "text" if content["name"] == "stdout" else "warned"
        setattr(cell, name, getattr(cell, name) + content["text"])
    elif kind == "error":
        cell.error = f"{content['ename']}: {content['evalue']}"
    elif "data" in content:
        cell.shown.append(content["data"])
