# phrases are written in rows, several to a line
"""What a domain of texts is: its fields, the sentences that carry them, and small facts that may follow."""

from __future__ import annotations

from dataclasses import dataclass, field

from .kinds import Kind


@dataclass
class Domain:
    """``core`` templates each make a text; ``facts`` are sentences that may be added.

    ``{slot}`` is the value of a field, ``[a|b]`` a choice, ``{slot~}`` a later mention by the first word only.
    """

    name: str
    fields: dict[str, tuple[Kind, str]]  # slot -> how it is drawn, and the names a record may give it
    core: list[str]
    facts: list[str] = field(default_factory=list)
    columns: dict[str, str] = field(default_factory=dict)  # names of the columns of ``rows`` slots


BOTHER = [
    "Hello,", "Hi,", "Dear all,", "Hi team,", "Good morning,", "FYI:", "Please note:", "Update:", "Hi there!", "Quick note:",
    "For the record:", "As discussed:", "Forwarded message:", "Morning all,", "Note to self:", "Reminder:", "Just in:",
]  # fmt: skip

ENDINGS = [
    "Thanks!", "Best regards", "Please confirm.", "More soon.", "Let me know if that is wrong.", "See you soon!", "Cheers",
    "That is all for now.", "Any questions, just ask.", "Many thanks in advance.", "Nothing else to report.", "Talk soon.",
    "Sorry for the short notice.", "All details are on the website.", "We look forward to it.", "No reply needed.",
]  # fmt: skip
