#!/usr/bin/env python3
"""What scripts/lint.py refuses of doc comments, and what it lets stand.

    scripts/lint_test.py
"""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import lint  # noqa: E402

FILLERS = [
    "Of what.", "See above.", "See there.", "Its key.", "Everything.", "Why.", "In what.",
    "What is wrong with it.", "Who is told about it.", "Why there is no result.",
    "Where the bound comes from.", "Whose turn it is then.",
]
SAYS_SOMETHING = [
    "In bytes.", "In seconds.", "In `Mbit/s`.", "From RFC 6817.", "At most 64.", "Of [`Sender`].",
    "What is left, in bytes.", "When the last of them has arrived at the receiver.",
    "Address that the host sends to.",
]


class Filler(unittest.TestCase):
    def test_what_names_nothing_is_refused(self):
        for text in FILLERS:
            self.assertEqual(lint.fillers(f"/// {text}\nfn f() {{}}"), [1], text)

    def test_a_number_a_unit_a_source_or_code_is_something(self):
        for text in SAYS_SOMETHING:
            self.assertEqual(lint.fillers(f"/// {text}\nfn f() {{}}"), [], text)

    def test_a_line_of_several_is_none(self):
        self.assertEqual(lint.fillers("/// Of what.\n///\n/// Default: none.\n"), [])


if __name__ == "__main__":
    unittest.main()
