"""The names that `import gar_keras` gives."""

import ast
from pathlib import Path

import gar_keras


def test_type_checkers_see_what_is_loaded_on_first_use():
    source = Path(gar_keras.__file__).read_text(encoding="utf-8")
    (block,) = (
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.If)
        and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    seen = {node.names[0].asname: node.module for node in block.body}
    assert seen == {
        name: f"gar_keras.{module}"
        for name, module in gar_keras._EXPORTS.items()
    }
