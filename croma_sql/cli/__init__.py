"""The command line: a module per verb parses, calls one public function, prints.

app.py       the verbs together, and how errors leave
output.py    tables and files
"""

from croma_sql.cli.app import main

__all__ = ["main"]
