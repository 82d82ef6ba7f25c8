"""The room is usable without the rest of the house."""

import ast
import sys
from pathlib import Path

from tailrace.kvlayer import relaxed


def test_relaxed_log_needs_python_and_arrow_alone() -> None:
    folder = Path(relaxed.__file__).parent
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                assert node.level <= 1, f"{path.name} imports from above"
                names = [node.module or ""] if node.level == 0 else []
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            for name in names:
                assert name.split(".")[0] in {*sys.stdlib_module_names, "pyarrow"}, path.name
