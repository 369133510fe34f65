#!/usr/bin/env python3
"""Checks the documents against the sources and the programs. `./dev docs --check` runs it.

usage: check.py [--root DIR] [--programs DIR] [--promtool FILE] [--write]

Without --programs what needs running programs is left out: commands, options, settings.
--write makes what is generated anew: docs/operations/configuration.md, docs/formats/api-reference.md.
"""

import argparse
import os
import re
import sys

import api_reference
import commands
import configuration
import documents as documents_of
import monitoring
import sources

TROUBLESHOOTING = "docs/operations/troubleshooting.md"
STEPS = "docs/operations/crashes.md"
CERTIFICATES = "docs/operations/certificates.md"
# Their names of two capitalised words with a dot are tests.
SHOWN_BY_TESTS = {"docs/tournament.md", "docs/contract.md", "docs/testing.md", "docs/style.md"}
# Of the standby of a pair, which answers before the API does.
ELSEWHERE = {"standby"}


def first_cells(document):
    """code -> cells of its row, of all tables: what stands in backquotes in the first cell."""
    found = {}
    for number, cells in document.tables:
        for code in re.findall(r"`([^`]+)`", cells[0]):
            found.setdefault(code, (number, cells))
    return found


def check_codes(root, documents, problems):
    if TROUBLESHOOTING not in documents:
        return
    known = sources.codes(root)
    rows = first_cells(documents[TROUBLESHOOTING])
    problems += [f"{TROUBLESHOOTING}: the code {code} of {path} has no row"
                 for code, path in sorted(known.items()) if code not in rows]
    for code, (number, cells) in sorted(rows.items()):
        if len(cells) == 3 and code == code.lower() and code not in known and \
                code not in ELSEWHERE:
            problems.append(f"{TROUBLESHOOTING}:{number}: no source has the code {code}")


def check_findings(root, documents, problems):
    if CERTIFICATES not in documents:
        return
    named = {text for _, text in documents[CERTIFICATES].spans()}
    problems += [f"{CERTIFICATES}: the finding {code} is missing"
                 for code in sorted(sources.findings(root) - named)]


def check_steps(root, documents, problems):
    """Each kind of step has one row, with what is undone, in the section of its operation."""
    if STEPS not in documents:
        return
    rows = first_cells(documents[STEPS])
    known = {kind: undone for kinds in sources.step_kinds(root).values()
             for kind, undone in kinds.items()}
    for kind, undone in sorted(known.items()):
        if kind not in rows:
            problems.append(f"{STEPS}: the kind of step {kind} has no row")
            continue
        number, cells = rows[kind]
        said = not cells[-1].startswith("–")
        if said != undone:
            problems.append(f"{STEPS}:{number}: {kind} {'can' if undone else 'cannot'} be undone")
    for kind, (number, cells) in sorted(rows.items()):
        if len(cells) == 5 and kind not in known:
            problems.append(f"{STEPS}:{number}: there is no kind of step {kind}")


def check_tests(root, documents, problems):
    """Tests that documents name exist: `Suite.Name`, and `…Name`, the end of another one's name of a
    suite that the line names before."""
    known = sources.tests(root)
    for path in sorted(SHOWN_BY_TESTS & set(documents)):
        suites, at = [], 0
        for number, span in documents[path].spans():
            suites, at = (suites, at) if number == at else ([], number)
            if full := re.match(r"^(?:\w+/)?([A-Z]\w+)\.([A-Z]\w+)$", span):
                suite, name = full.groups()
                suites.append(suite)
                if name not in known.get(suite, ()):
                    problems.append(f"{path}:{number}: there is no test {suite}.{name}")
            elif end := re.match(r"^…([A-Z]\w+)$", span):
                if not any(name.endswith(end.group(1)) for suite in suites
                           for name in known.get(suite, ())):
                    problems.append(f"{path}:{number}: no test ends with {end.group(1)} in "
                                    f"{', '.join(suites) or 'any suite'}")


def check_index(documents, problems):
    """Each page of docs is linked from one of the two indexes."""
    linked = set()
    for index in ("docs/README.md", "docs/operations/README.md"):
        if index not in documents:
            continue
        for line in documents[index].prose:
            for target in documents_of.LINK.findall(line.text):
                path = target.partition("#")[0]
                linked.add(os.path.normpath(os.path.join(os.path.dirname(index), path)))
    for path in documents:
        if re.match(r"^docs/(operations/|formats/|decisions/)?[^/]+\.md$", path) and \
                not path.endswith("README.md") and path not in linked:
            problems.append(f"{path}: neither docs/README.md nor docs/operations/README.md links it")


def check_decisions(documents, problems):
    """Each record has a number of its own, and docs/README.md lists all by number."""
    named = {}
    for path in sorted(documents):
        found = re.match(r"^docs/decisions/(\d{4})-[^/]+\.md$", path)
        if not found:
            continue
        number = found.group(1)
        if number in named:
            problems.append(f"{path}: {named[number]} has the number {number}, too")
        named.setdefault(number, path)
        title = documents[path].prose[0].text if documents[path].prose else ""
        shown = re.match(r"^# (\d{4})\b", title)
        if shown and shown.group(1) != number:
            problems.append(f"{path}: its title has the number {shown.group(1)}")
    if "docs/README.md" not in documents:
        return
    before = ""
    for number, cells in documents["docs/README.md"].tables:
        found = re.match(r"^\[(\d{4})\]\(decisions/(\d{4})-", cells[0])
        if not found:
            continue
        shown, linked = found.groups()
        place = f"docs/README.md:{number}"
        if shown != linked:
            problems.append(f"{place}: {shown} links the decision {linked}")
        if shown <= before:
            problems.append(f"{place}: the decision {shown} is listed after {before}")
        before = max(before, shown)


def check_programs(root, directory, documents, problems, write):
    programs = commands.Programs(directory)
    commands.check_commands(programs, documents, sources.options(root), problems)
    commands.check_variables(programs.variables() | sources.variables(root), documents, problems)
    check_page(root, configuration.PATH, configuration.page(programs), problems, write)
    check_page(root, api_reference.PATH, api_reference.page(programs.openapi()), problems, write)


def check_page(root, name, page, problems, write):
    path = os.path.join(root, name)
    if write:
        with open(path, "w", encoding="utf-8") as file:
            file.write(page)
    present = ""
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            present = file.read()
    if present != page:
        problems.append(f"{name}: differs from what the programs say; make it anew with: "
                        "./dev docs --write")


def without_history(documents):
    """The changelog names what was."""
    return {path: each for path, each in documents.items() if path != "CHANGELOG.md"}


def dev_commands(root):
    with open(os.path.join(root, "dev"), encoding="utf-8") as file:
        usage = file.read().partition("<<'TEXT'")[2].partition("\nTEXT")[0]
    return set(re.findall(r"^  ([a-z]+)\b", usage, re.MULTILINE)) | {"help"}


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", default=os.path.normpath(os.path.join(here, "..", "..")))
    parser.add_argument("--programs", help="directory of verger, vergerd, verger-agent, verger-db")
    parser.add_argument("--promtool", help="parses the dashboards' expressions")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    problems = []
    root = given.root
    documents = documents_of.read_all(root)
    if given.programs:
        check_programs(root, given.programs, without_history(documents), problems, given.write)
        documents = documents_of.read_all(root)
    documents_of.check_links(root, documents, problems)
    documents = without_history(documents)
    commands.check_dev(documents, dev_commands(root), problems)
    monitoring.check_metrics(documents, sources.metrics(root), problems)
    monitoring.check_alerts(root, documents, problems)
    monitoring.check_dashboards(root, documents, given.promtool, problems)
    check_codes(root, documents, problems)
    check_findings(root, documents, problems)
    check_steps(root, documents, problems)
    check_tests(root, documents, problems)
    check_index(documents, problems)
    check_decisions(documents, problems)
    for problem in problems:
        print(problem, file=sys.stderr)
    scope = "with the programs" if given.programs else "without the programs"
    print(f"docs: {len(documents)} documents checked {scope}, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
