import importlib
import inspect
import sys

import pytest

from allennlp_today.import_hooks import after_import, around_import, guard, replaces


@pytest.fixture
def module(tmp_path, monkeypatch, request):
    """The name of a module not yet imported; on import, it stores the contents of `sys.marks`."""
    name = f"module_of_{abs(hash(request.node.name))}"
    (tmp_path / f"{name}.py").write_text("import sys\nseen = list(sys.marks)\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "marks", [], raising=False)
    yield name
    sys.modules.pop(name, None)


def marked(name):
    sys.marks.append("around")
    try:
        yield
    finally:
        sys.marks.remove("around")


class TestAroundImport:
    def test_the_module_is_executed_inside_the_context(self, module):
        around_import(module)(marked)
        assert importlib.import_module(module).seen == ["around"]
        assert sys.marks == []

    def test_it_works_together_with_a_hook_after_the_import(self, module):
        fixed = []
        after_import(module)(lambda imported: fixed.append((imported.seen, list(sys.marks))))
        around_import(module)(marked)
        importlib.import_module(module)
        assert [seen for seen, _ in fixed] == [["around"]]


class TestAfterImport:
    def test_fixes_are_applied_in_their_order_after_the_module(self, module):
        after_import(module)(lambda imported: imported.seen.append("first"))
        after_import(module)(lambda imported: imported.seen.append("second"))
        assert importlib.import_module(module).seen == ["first", "second"]


class TestGuard:
    def test_it_raises_if_the_module_was_imported_before(self, module):
        """Others may have copied the names that it replaces."""
        importlib.import_module(module)
        with pytest.raises(ImportError, match=module):
            guard(module, "not_imported")(lambda imported: None)


class TestReplaces:
    def test_the_original_is_passed_and_its_signature_kept(self):
        class Owner:
            def double(self, number: int) -> int:
                return 2 * number

        signature = inspect.signature(Owner.double)

        @replaces(Owner, "double")
        def double_and_add(original, self, number):
            return original(self, number) + 1

        assert Owner().double(3) == 7
        assert inspect.signature(Owner.double) == signature
