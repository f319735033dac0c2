"""Values that an object remembers for speed only."""

__all__ = ["Memo"]


class Memo:
    """
    Base of classes whose objects hold what can be computed again. An object that has one is equal to another without
    regard to it, and its copies and what is sent to another process have an empty one.

    A derived class has a constructor without arguments.
    """

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return type(self), ()
