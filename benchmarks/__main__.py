"""The benchmarks by name: ``python benchmarks`` lists them, ``python benchmarks NAME`` is ``python NAME.py``."""

import ast
import runpy
import sys
from pathlib import Path

FILES = {file.stem: file for file in sorted(Path(__file__).parent.glob("[a-z]*.py"))}

if len(sys.argv) > 1 and sys.argv[1] in FILES:
    file = FILES[sys.argv.pop(1)]
    sys.argv[0] = str(file)
    runpy.run_path(str(file), run_name="__main__")
else:
    for name, file in FILES.items():
        print(f"{name:<15} {ast.get_docstring(ast.parse(file.read_text())).splitlines()[0]}")
    sys.exit("python benchmarks NAME --help" if len(sys.argv) < 2 else f"There is no benchmark {sys.argv[1]!r}.")
