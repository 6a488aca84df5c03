"""Readable: what results that consist of named lines look like, in a terminal and in a notebook."""

from __future__ import annotations

from html import escape


class Readable:
    """Gives a result its text and its table from its `rows`.

    A dataclass that is readable needs ``repr=False``, else it gets a text of its own.

    Examples
    --------
    >>> class Answer(Readable):
    ...     def rows(self):
    ...         return [("outcome", "p < q")]
    >>> Answer()
    Answer
      outcome: p < q
    >>> Answer()._repr_html_()
    '<table><tr><th>outcome</th><td>p &lt; q</td></tr></table>'
    """

    def rows(self) -> list[tuple[str, str]]:
        """Return what there is to read, as (name, text)."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}\n" + "\n".join(f"  {name}: {text}" for name, text in self.rows())

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{escape(n)}</th><td>{escape(t)}</td></tr>" for n, t in self.rows())
        return f"<table>{rows}</table>"
