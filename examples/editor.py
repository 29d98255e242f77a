"""An editor in the terminal that shows what a model would write next: `python examples/editor.py [MODEL] [TEXT]`.

Type, delete, move with the arrows and retype in the middle. Tab accepts the first suggestion, escape exits. The last
line shows the number of tokens that the model ran for the last key, and the number that a new session would run.
"""

import contextlib
import curses
import sys

import guideway as gw


class Editor:
    """A text, a cursor, and a session over the text before the cursor."""

    def __init__(self, model: gw.Model, text: str = "") -> None:
        self.session, self.text, self.at = model.session(), "", 0
        self.put(text)

    def put(self, text: str, delete: int = 0) -> None:
        """Put text in place of `delete` characters before the cursor."""
        start = max(0, self.at - delete)
        self.text = self.text[:start] + text + self.text[self.at :]
        self.move(start + len(text))

    def move(self, to: int) -> None:
        self.at = min(max(to, 0), len(self.text))
        before = self.session.counts.run
        self.session.set_text(self.text[: self.at])
        best = self.session.top_k(5) if len(self.session) else []
        self.ran = self.session.counts.run - before
        self.suggestions = [self.session.tokenizer.decode([token]) for token, _ in best] or [""]

    def key(self, key: str | int) -> bool:
        """Act on what `get_wch` gave; False for escape."""
        steps = {curses.KEY_LEFT: -1, curses.KEY_RIGHT: 1, curses.KEY_HOME: -self.at, curses.KEY_END: len(self.text)}
        if key in (curses.KEY_BACKSPACE, "\x7f", "\b"):
            self.put("", delete=1)
        elif isinstance(key, int):
            self.move(self.at + steps.get(key, 0))
        elif key != "\x1b":
            self.put(self.suggestions[0] if key == "\t" else key)
        return key != "\x1b"


def main(screen: curses.window) -> None:
    editor = Editor(gw.load(sys.argv[1] if len(sys.argv) > 1 else "tiny"), " ".join(sys.argv[2:]))
    going = True
    while going:
        status = f"{' | '.join(map(repr, editor.suggestions))}\n{editor.ran} of {len(editor.session)} tokens run"
        screen.erase()
        with contextlib.suppress(curses.error):  # more than the window holds
            screen.addstr(f"{status}\n\n{editor.text[: editor.at]}\u2502{editor.text[editor.at :]}")
        going = editor.key(screen.get_wch())


if __name__ == "__main__":
    curses.wrapper(main)
