#!/usr/bin/env python3
"""The check of the documents finds what is wrong: each case is a document with one defect."""

import os
import subprocess
import sys
import tempfile
import unittest

import api_reference
import check
import commands
import configuration
import documents as documents_of
import monitoring
import sources


class FakePrograms:
    """A `verger` with one command."""

    HELP = {("verger", ()): "Usage: verger\n\nSubcommands:\n  run       Runs\n",
            ("verger", ("run",)): "Usage: verger run\n\nOptions:\n  --gates  Shows gates\n"}

    def help(self, program, path=()):
        return self.HELP.get((program, tuple(path)))

    def subcommands(self, program, path=()):
        return commands.subcommands_of(self.help(program, path) or "")

    options = commands.Programs.options

    def all_options(self):
        return {"--gates"}


class Case(unittest.TestCase):
    def setUp(self):
        self._directory = tempfile.TemporaryDirectory()
        self.addCleanup(self._directory.cleanup)
        self.root = self._directory.name
        self.problems = []

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def documents(self):
        return documents_of.read_all(self.root)


class Links(Case):
    def check(self, text):
        self.write("docs/a.md", text)
        self.write("docs/b.md", "# The `first` part\n\n## Twice\n\n## Twice\n")
        documents_of.check_links(self.root, self.documents(), self.problems)
        return self.problems

    def test_good_ones_pass(self):
        self.assertEqual(self.check("[a](b.md) [b](b.md#the-first-part) [c](b.md#twice-1)\n"), [])

    def test_a_missing_file_is_found(self):
        self.assertEqual(self.check("x\n[a](c.md)\n"),
                         ["docs/a.md:2: the link c.md leads nowhere"])

    def test_a_missing_heading_is_found(self):
        self.assertEqual(self.check("[a](b.md#third)\n"),
                         ["docs/a.md:1: docs/b.md has no heading #third"])

    def test_code_is_no_link(self):
        self.assertEqual(self.check("`[a](c.md)`\n\n    [a](d.md)\n"), [])


class Decisions(Case):
    ROW = "| [{0}](decisions/{0}-{1}.md) | x |\n"

    def check(self, *rows):
        self.write("docs/decisions/0001-a.md", "# 0001 A\n")
        self.write("docs/decisions/0002-b.md", "# B\n")
        self.write("docs/README.md", "| decision | x |\n|---|---|\n" +
                   "".join(self.ROW.format(*row) for row in rows))
        check.check_decisions(self.documents(), self.problems)
        return self.problems

    def test_good_ones_pass(self):
        self.assertEqual(self.check(("0001", "a"), ("0002", "b")), [])

    def test_two_with_one_number_are_found(self):
        self.write("docs/decisions/0002-c.md", "# 0003 C\n")
        self.assertEqual(self.check(("0001", "a"), ("0002", "b"), ("0002", "c")), [
            "docs/decisions/0002-c.md: docs/decisions/0002-b.md has the number 0002, too",
            "docs/decisions/0002-c.md: its title has the number 0003",
            "docs/README.md:5: the decision 0002 is listed after 0002"])

    def test_a_list_out_of_order_is_found(self):
        self.assertEqual(self.check(("0002", "b"), ("0001", "a")),
                         ["docs/README.md:4: the decision 0001 is listed after 0002"])


class Tests(Case):
    def test_a_document_names_only_tests_that_exist(self):
        self.write("tests/unit/a/a_test.cpp",
                   "TEST(Scavenge, KeepsTheTombstone) {\nTEST_F(Scavenge,\n       OfAKilledNode) {\n")
        self.write("docs/tournament.md",
                   "| unit `Scavenge.KeepsTheTombstone`, `…OfAKilledNode`, `…AKilledNode` |\n"
                   "| unit `Seeds/Scavenge.KeepsNothing`, `…KeepsAll` |\n"
                   "| unit `Restore.Works` |\n")
        self.write("docs/formats/grpc.md", "the call `Scavenge.Start`\n")
        self.write("docs/testing.md", "`Scavenge.WasRemoved`\n")
        check.check_tests(self.root, self.documents(), self.problems)
        self.assertEqual(self.problems, [
            "docs/testing.md:1: there is no test Scavenge.WasRemoved",
            "docs/tournament.md:2: there is no test Scavenge.KeepsNothing",
            "docs/tournament.md:2: no test ends with KeepsAll in Scavenge",
            "docs/tournament.md:3: there is no test Restore.Works"])


class Commands(Case):
    def check(self, text):
        self.write("docs/a.md", text)
        commands.check_commands(FakePrograms(), self.documents(), set(), self.problems)
        return self.problems

    def test_good_ones_pass(self):
        self.assertEqual(self.check("    $ sudo -u x verger run R --gates | grep --foreign\n"), [])

    def test_an_unknown_command_is_found(self):
        self.assertEqual(self.check("Call `verger walk R`.\n"),
                         ["docs/a.md:1: `verger` has no command `walk`"])

    def test_an_unknown_option_is_found_also_on_a_continued_line(self):
        self.assertEqual(self.check("\n    verger run R \\\n      --door\n"),
                         ["docs/a.md:2: `verger run` has no option --door"])

    def test_an_option_alone_has_to_be_one_of_some_program(self):
        self.assertEqual(self.check("See `--gates` and `--doors`.\n"),
                         ["docs/a.md:1: no program has the option --doors"])

    def test_an_unknown_variable_is_found(self):
        self.write("docs/a.md", "`VERGER_TOKEN`, `VERGER_TOKEM`\n")
        commands.check_variables({"VERGER_TOKEN"}, self.documents(), self.problems)
        self.assertEqual(self.problems, ["docs/a.md:1: no program reads the variable VERGER_TOKEM"])


class Monitoring(Case):
    def setUp(self):
        super().setUp()
        self.write(monitoring.METRICS,
                   "| metric | labels | meaning |\n|---|---|---|\n| `verger_a` | node | x |\n")
        self.write(monitoring.RUNBOOK, "# Alerts\n\n### VergerGone\n")
        for path in monitoring.RULE_TESTS:
            self.write(path, "")

    def test_rules_need_metric_label_test_and_runbook(self):
        self.write(monitoring.RULES, "groups:\n  - rules:\n      - alert: VergerNew\n"
                                     "        expr: verger_a{pod=\"x\"} + verger_b > 1\n")
        monitoring.check_alerts(self.root, self.documents(), self.problems)
        text = "\n".join(self.problems)
        for part in ("no source has the metric verger_b", "verger_a has no label pod",
                     "has no section of it", "lacks runbook", "does not test it",
                     "there is no alert for the section #vergergone"):
            self.assertIn(part, text)

    def test_metrics_of_sources_and_page_are_compared(self):
        monitoring.check_metrics(self.documents(), {"verger_c"}, self.problems)
        self.assertEqual(self.problems,
                         [f"{monitoring.METRICS}: the metric verger_c of the sources is missing",
                          f"{monitoring.METRICS}: no source has the metric verger_a",
                          f"{monitoring.METRICS}:3: no source has the metric verger_a"])

    def test_dashboards_are_read_with_their_rows(self):
        self.write("examples/grafana/x.json",
                   '{"panels": [{"id": 1, "panels": [{"id": 1, "title": "T",'
                   ' "targets": [{"expr": "verger_z"}]}]}]}')
        monitoring.check_dashboards(self.root, self.documents(), None, self.problems)
        self.assertEqual(self.problems,
                         ["examples/grafana/x.json: two panels have the same id",
                          "examples/grafana/x.json: T: no source has the metric verger_z"])


class Sources(Case):
    def test_codes_are_found_in_each_form(self):
        self.write("planner/x/a.cpp",
                   'refuse("one-a", "");\nrefuse(\n    "two-b", n);\nRefusal{"three", ""};\n'
                   'closed(look.gate.name, over ? "four" : "five", n);\n// refuse("none", "");\n')
        self.write("controller/api/b.cpp", 'problem(409, "six_c", x);\n')
        self.assertEqual(sorted(sources.codes(self.root)),
                         ["five", "four", "one-a", "six_c", "three", "two-b"])

    def test_outcomes_and_findings_are_found(self):
        self.write("controller/operations/x/step_go.cpp",
                   'verdict(Verdict::Kind::kStopped,\n        "stopped-so", x);\n')
        self.write("nodeagent/certificates/lint.cpp", 'findings.warning(\n  "clock-off", "");\n')
        self.assertEqual(sorted(sources.codes(self.root)), ["stopped-so"])
        self.assertEqual(sources.findings(self.root), {"clock-off"})

    def test_kinds_of_steps_have_their_undo(self):
        self.write("planner/x/x_steps.h", 'inline constexpr std::string_view kGo = "go_there";\n')
        self.write("controller/operations/x/step_go.cpp",
                   "  std::string_view name() const override { return names::kGo; }\n"
                   "  bool can_undo() const override { return true; }\n")
        self.assertEqual(sources.step_kinds(self.root), {"x": {"go_there": True}})


class Picture(unittest.TestCase):
    DEMO = """Starting
cluster demo  leader n1
node  role
n1    Leader
n3    Follower

plan eb3727cc
cluster demo  scavenge
parameters: none
stage  step      node
    1  scavenge  n2
gates: one-leader
nothing has been touched; carry it out with: verger apply eb3727 --wait

2026-11-24T00:27:45Z  scavenge  n2  acting
2026-11-24T00:27:45Z  run 99: running
2026-11-24T00:27:46Z  scavenge  n2  done
2026-11-24T00:27:57Z  run 99: done
node  freed
n1    1 KiB <
"""

    def test_it_has_the_lines_of_the_demo(self):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                              "../../examples/demo/picture.py")
        ran = subprocess.run([sys.executable, script], input=self.DEMO + "\nTry next:\n",
                             capture_output=True, text=True, check=True)
        for line in ("$ verger cluster show demo", "    1  scavenge  n2",
                     "$ verger apply eb3727 --wait", "n1    1 KiB &lt;"):
            self.assertIn(f">{line}</text>", ran.stdout)
        self.assertNotIn("gates:", ran.stdout)
        self.assertNotIn("Try next", ran.stdout)


class Configuration(unittest.TestCase):
    def test_a_help_becomes_rows(self):
        text = ("vergerd: x\n\nGeneral\n  --port  VERGER_PORT\n      Port of the\n      API [2115]\n"
                "  VERGER_NODE_SECRET_WORD (variable or file only)\n      A secret\n")
        self.assertEqual(configuration.section("vergerd", text).split("\n")[6:8],
                         ["| `Port` | `--port` | `VERGER_PORT` | Port of the API | `2115` |",
                          "| `SecretWord` | – (a secret) | `VERGER_NODE_SECRET_WORD` | A secret | – |"])


class ApiReference(unittest.TestCase):
    def test_a_document_becomes_requests_and_schemas(self):
        reference = {"$ref": "#/components/schemas/NewPlan"}
        page = api_reference.page({
            "paths": {"/api/v1/plans": {"post": {
                "x-role": "operator", "security": [{"token": []}], "summary": "Plan", "requestBody": {"content": {"application/json": {"schema": reference}}},
                "parameters": [{"name": "limit", "in": "query"}, {"name": "If-Match", "in": "header"}],
                "responses": {"201": {"content": {"application/json": {"schema": {"type": "array", "items": reference}}}},
                              "default": {}}}}},
            "components": {"schemas": {"NewPlan": {"description": "Plan it", "required": ["at"], "properties": {
                "at": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]},
                "mode": {"type": "string", "enum": ["a", "b"], "description": "How", "default": "a"},
                "threads": {"type": "integer", "minimum": 1, "maximum": 4, "description": "How many"}}}}}})
        for line in ("| `POST /plans` | operator | Plan | `limit` | [NewPlan](#newplan) | 201 [NewPlan](#newplan)[] |",
                     "| `at` | time or null | |", "| `mode` | `a`, `b` | How. Default: `a`. |",
                     "| `threads` (may be missing) | integer, 1 to 4 | How many. |"):
            self.assertIn(line + "\n", page)


if __name__ == "__main__":
    unittest.main()
