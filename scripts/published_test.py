#!/usr/bin/env python3
"""Breaks bands, selectors and sentences of scripts/published.py and sees it fail.

    scripts/published_test.py
"""

import copy
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import published  # noqa: E402

RESULT = {
    "scenario": "two-laws",
    "expectations": [{"name": "holds", "pass": True}, {"name": "fails", "pass": False},
                     {"name": "unclear", "pass": True, "unclear": True}],
    "cases": [
        {"params": {"law": law}, "seeds": [1, 2], "metrics": {"jain": 1.0}, "traffic": [],
         "flows": [{"name": "main", "stack": law, "goodput_mbps": rate,
                    "goodput_mbps_ci95": [rate - 2, rate + 2],
                    "var": {"a": {"max": 8.6}}, "climb_time_s": None}]}
        for law, rate in [("reno", 80.0), ("highspeed", 100.0)]
    ],
    "runs": [{"metrics": {"flows": [{"name": "main", "stack": law,
                                     "values": {"goodput_mbps": rate}}]}}
             for law, rate in [("reno", 75), ("reno", 85), ("highspeed", 95), ("highspeed", 105)]],
}
ITEM = {"id": "rate", "where": "page 1", "claim": "100 Mbit/s", "band": [95, 105],
        "band_from": "printed digits",
        "show": {"run": "two-laws", "case": {"law": "highspeed"}, "metric": "goodput_mbps"}}


class Canned:
    """A program that has run already."""

    used = {"one-drop": RESULT}
    builds = {}
    sets = {}

    def run(self, show):
        return RESULT

    def test(self, show):
        return {"passes": show["test"] == "good"}

    def is_quick(self, name):
        return True

    def arguments(self, show):
        return ["run", show["run"]]


def verdict(**changes):
    item = {**copy.deepcopy(ITEM), **changes}
    return published.row(item, Canned())["verdict"]


def shown(**changes):
    return {**ITEM["show"], **changes}


class Verdicts(unittest.TestCase):
    def test_in_the_band(self):
        self.assertEqual(verdict(), "reproduced")

    def test_a_broken_band_is_noticed(self):
        self.assertEqual(verdict(band=[101, 105]), "not reproduced")

    def test_a_sentence_of_difference_changes_the_verdict(self):
        self.assertEqual(verdict(difference="another host"), "with a stated difference")

    def test_a_sentence_does_not_help_outside_the_band(self):
        self.assertEqual(verdict(band=[120, 130], difference="so it is"), "not reproduced")

    def test_the_closed_form_needs_a_sentence(self):
        ideal = {"band": [120, 130], "ideal": [99, 101], "ideal_from": "window over RTT"}
        self.assertEqual(verdict(**ideal, difference="live losses"), "with a stated difference")
        with self.assertRaisesRegex(published.Error, "rate: .*`difference`"):
            verdict(**ideal)

    def test_an_interval_wider_than_twice_the_band_decides_nothing(self):
        self.assertEqual(verdict(band=[99.5, 100.5]), "not reproduced")

    def test_an_interval_past_the_only_end_of_a_band_decides_nothing(self):
        self.assertEqual(verdict(band=[99, ""]), "not reproduced")
        self.assertEqual(verdict(band=[97, ""]), "reproduced")

    def test_an_undefined_value_is_not_reproduced(self):
        self.assertEqual(verdict(show=shown(metric="climb_time_s")), "not reproduced")

    def test_each_of_several_cases_counts(self):
        both = shown(case={"law": ["reno", "highspeed"]})
        self.assertEqual(verdict(show=both), "not reproduced")
        self.assertEqual(verdict(show=both, band=[75, 105]), "reproduced")
        self.assertEqual(verdict(show=both, band=[85, 95], take="mean"), "reproduced")

    def test_ratio_and_difference_of_two_cases(self):
        self.assertEqual(verdict(show=shown(over={"law": "reno"}), band=[1.2, 1.3]), "reproduced")
        self.assertEqual(verdict(show=shown(less={"law": "reno"}), band=[15, 25]), "reproduced")

    def test_cells_are_judged_one_by_one(self):
        cells = [[100, {"law": "highspeed"}], [90, {"law": "reno"}]]
        show = {"run": "two-laws", "metric": "goodput_mbps"}
        self.assertEqual(verdict(show=show, cells=cells, within="5%"), "not reproduced")
        self.assertEqual(verdict(show=show, cells=cells, within="12%"), "reproduced")

    def test_least_and_largest_of_the_seeds(self):
        least = shown(seeds=["min", "max"], over={"law": "reno"})
        self.assertEqual(verdict(show=least, band=[1.117, 1.118]), "reproduced")  # 95 over 85
        self.assertEqual(verdict(show=shown(seeds=["max"]), band=[105, 105]), "reproduced")

    def test_expectations_have_to_hold_and_be_clear(self):
        for names, good in [(["holds"], "reproduced"), (["unclear"], "not reproduced"),
                            (["holds", "fails"], "not reproduced"), (True, "not reproduced")]:
            show = {"run": "two-laws", "expectations": names}
            self.assertEqual(verdict(show=show, band=[1, 1]), good, names)
        with self.assertRaisesRegex(published.Error, "not all of these expectations"):
            verdict(show={"run": "two-laws", "expectations": ["holds", "other"]})

    def test_a_test_has_to_pass(self):
        for name, good in [("good", "reproduced"), ("bad", "not reproduced")]:
            self.assertEqual(verdict(show={"test": name, "package": "x"}, band=[1, 1]), good)

    def test_what_cannot_be_shown(self):
        bare = {k: ITEM[k] for k in ["id", "where", "claim"]}
        row = published.row({**bare, "missing": "no blast"}, None)
        self.assertEqual(row["verdict"], "not reproduced")
        row = published.row({**bare, "not_applicable": "a disk"}, None)
        self.assertEqual(row["verdict"], "not applicable")


class Selectors(unittest.TestCase):
    def test_a_case_that_does_not_exist_names_item_and_cases(self):
        with self.assertRaisesRegex(published.Error, r"(?s)rate: .*cubic.*'reno'.*'highspeed'"):
            verdict(show=shown(case={"law": "cubic"}))

    def test_a_metric_that_does_not_exist(self):
        with self.assertRaisesRegex(published.Error, "rate: no metric `goodput`"):
            verdict(show=shown(metric="goodput"))

    def test_a_flow_that_does_not_exist(self):
        with self.assertRaisesRegex(published.Error, "no flow, traffic or link `cross`.*main"):
            verdict(show=shown(of="cross"))


class Forms(unittest.TestCase):
    def load(self, text):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "a.toml").write_text('title = "A"\nsource = "B"\n' + text)
            return published.load(folder)

    def test_a_verdict_cannot_be_written(self):
        with self.assertRaisesRegex(published.Error, "unknown key `verdict`"):
            self.load('[[item]]\nid = "x"\nverdict = "reproduced"\n')

    def test_a_band_needs_a_source(self):
        with self.assertRaisesRegex(published.Error, "band_from"):
            self.load('[[item]]\nid = "x"\nwhere = "a"\nclaim = "b"\nband = [1, 2]\n'
                      'show = { run = "one-drop", metric = "jain" }\n')

    def test_an_item_needs_a_way(self):
        with self.assertRaisesRegex(published.Error, "needs one of show"):
            self.load('[[item]]\nid = "x"\nwhere = "a"\nclaim = "b"\n')


class Claims(unittest.TestCase):
    VERDICTS = dict(zip("abcd", published.VERDICTS))

    def test_a_claim_is_as_good_as_its_worst_item(self):
        for items, good in [("a", "a"), ("ab", "b"), ("abc", "c"), ("bd", "b"), ("d", "d")]:
            found = published.judge_claim({"items": list(items)}, self.VERDICTS)
            self.assertEqual(found, self.VERDICTS[good], items)

    def load(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "claims.toml"
            path.write_text("[[claim]]\n" + text)
            return published.load_claims(path, [{"key": "x", "item": [{"id": "a"}]}])

    def test_forms(self):
        good = 'document = "x"\nclaim = "y"\nitems = ["a"]\n'
        self.assertEqual(len(self.load(good)), 1)
        for bad, why in [(good.replace('"a"', '"b"'), "no item `b`"),
                         (good.replace('"x"', '"z"'), "no document `z`"),
                         (good.replace('["a"]', "[]"), "needs document, claim and items"),
                         (good + 'verdict = "reproduced"\n', "and no more")]:
            with self.assertRaisesRegex(published.Error, why):
                self.load(bad)


class Page(unittest.TestCase):
    def text(self, **changes):
        document = {"key": "a", "title": "A", "source": "B"}
        rows = [published.row({**copy.deepcopy(ITEM), **changes}, Canned())]
        return published.page([document], [], [], {"a": rows}, Canned())

    def test_a_changed_verdict_is_found(self):
        self.assertEqual(published.compare(self.text(), self.text()), [])
        changed = published.compare(self.text(), self.text(band=[101, 105]))
        self.assertEqual(changed, ["rate: the page says `reproduced`, now `not reproduced`"])

    def test_items_that_come_and_go_are_found(self):
        self.assertEqual(len(published.compare(self.text(), self.text(id="other"))), 2)

    def test_a_row_stays_while_its_result_is_not_kept(self):
        class Frozen(Canned):
            used = {}

            def run(self, show):
                raise published.NotKept("run")

        before = self.text()
        rows = [published.row(copy.deepcopy(ITEM), Frozen(), before)]
        self.assertEqual((rows[0]["verdict"], rows[0]["remark"]), ("reproduced", ""))
        document = {"key": "a", "title": "A", "source": "B"}
        after = published.page([document], [], [], {"a": rows}, Frozen(), before)
        # The canned program calls its run by another name than the item.
        self.assertEqual(published.compare(before, after), [])
        for changes in [{"band": [90, 105]}, {"claim": "another"}, {"id": "new"},
                        {"show": shown(metric="jain")}]:
            with self.assertRaisesRegex(published.Error, "not kept|neither kept"):
                published.row({**copy.deepcopy(ITEM), **changes}, Frozen(), before)

    def test_settings_are_read_back(self):
        self.assertEqual(published.quick_on(self.text()), {"one-drop"})


class Ranks(unittest.TestCase):
    def test_a_table_of_several_items_has_one_rank_correlation(self):
        items = [{**copy.deepcopy(ITEM), "id": law, "published": p,
                  "show": shown(case={"law": law})}
                 for law, p in [("reno", 1), ("highspeed", 2)]]
        cells = {**copy.deepcopy(ITEM), "id": "cells", "within": "10%",
                 "cells": [[90, {"law": "reno"}]], "show": shown(case={})}
        rows = [published.row(i, Canned()) for i in items + [cells]]
        document = {"rank": [{"about": "all", "items": ["reno", "highspeed", "cells"]}]}
        lines = published.rank_lines(document, rows)
        # 1, 2, 90 printed; 80, 100, 80 seen: ranks 1 2 3 and 1.5 3 1.5.
        self.assertIn("| all | 3 | 0.00 |", lines)
        kept = {**rows[0], "seen": [], "value": "80 [78, 82] Mbit/s"}
        self.assertEqual(published.pairs_of(kept), [(1, 80)])
        kept = {**rows[2], "seen": [], "cells": ["| reno | 90 | 80 [78, 82] | no |"]}
        self.assertEqual(published.pairs_of(kept), [(90, 80)])
        with self.assertRaisesRegex(published.Error, "needs `cells` or `published`"):
            published.pairs_of(published.row(ITEM, Canned()))


class Causes(unittest.TestCase):
    claims = [{"document": "a", "claim": "so fast", "items": ["rate"]}]
    bad = {"rate": "not reproduced"}
    cause = {"claim": "so fast", "what": "the law", "here": shown(case={"law": "reno"}),
             "switched": shown(), "published": 120}

    def test_a_switch_says_how_much_of_the_gap_it_closes(self):
        lines = published.cause_lines(self.claims, [self.cause], self.bad, Canned())
        self.assertTrue(lines[-1].endswith("| 120 | 50% |"), lines[-1])

    def test_what_is_not_reproduced_needs_a_cause(self):
        with self.assertRaisesRegex(published.Error, "so fast"):
            published.cause_lines(self.claims, [], self.bad, Canned())
        good = published.cause_lines(self.claims, [], {"rate": "reproduced"}, Canned())
        self.assertTrue(good[-1].startswith("|---"), good[-1])

    def test_a_value_can_be_divided_by_one_of_another_run(self):
        asked = []

        class Two(Canned):
            def run(self, show):
                asked.append(show.get("set"))
                return RESULT
        show = shown(over={"law": "reno"}, set=["seeds=12"], over_set=["seeds=3"])
        item = {**copy.deepcopy(ITEM), "show": show}
        (_, _, (mean, _, _)), = published.values(item, Two())
        self.assertEqual((mean, asked), (1.25, [["seeds=12"], ["seeds=3"]]))
        self.assertIn("of `fullpipe run two-laws`", published.command(show, Two()))

    def test_a_cell_can_be_the_mean_of_runs(self):
        item = {**copy.deepcopy(ITEM), "within": "10%", "cells": [[80, {"law": "reno"}]],
                "show": shown(case={}, mean_of=[["a=1"], ["a=2"]])}
        (_, printed, (mean, low, high)), = published.values(item, Canned())
        self.assertEqual((printed, mean), (80, 80))
        self.assertAlmostEqual(high - low, 4 / 2 ** 0.5)


if __name__ == "__main__":
    unittest.main()
