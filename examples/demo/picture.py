#!/usr/bin/env python3
"""Makes the picture of the README from the output of the demo.

examples/demo/run.sh | python3 examples/demo/picture.py > docs/pictures/demo.svg

Lines are the demo's own. Left out are lines in the middle of long parts (a line with three dots
stands for them); what is wider than the picture is cut.
"""

import re
import sys
from html import escape

COLUMNS = 112
FONT_SIZE = 13
ADVANCE = 7.83  # of a character in common monospaced fonts of that size
LINE = 18
MARGIN = 16
COLOURS = {"prompt": "#7ee787", "head": "#79c0ff", "good": "#7ee787", "dim": "#8b949e",
           "text": "#e6edf3"}


def between(lines, first, last):
    """From the line that begins with `first` to the one that begins with `last`."""
    begin = next(i for i, line in enumerate(lines) if line.startswith(first))
    end = next(i for i in range(begin, len(lines)) if lines[i].startswith(last))
    return lines[begin:end + 1]


def chosen(lines):
    """(kind, text) of each line of the picture."""
    cluster = between(lines, "cluster demo", "n3 ")
    plan = between(lines, "plan ", "nothing has been touched")
    stages = [line for line in plan if re.match(r"stage |\s+\d+  ", line)]
    begin = next(i for i, line in enumerate(lines) if re.match(r"\d{4}-.*acting", line))
    end = next(i for i, line in enumerate(lines) if re.search(r"run \S+: done$", line))
    steps, report = lines[begin:end + 1], lines[end + 1:]
    report = report[:next(i for i, line in enumerate(report) if not line.strip())]
    code = re.search(r"verger apply (\w+)", plan[-1]).group(1)
    yield "prompt", "$ verger cluster show demo"
    yield from (("head" if line.startswith("node") else "text", line) for line in cluster)
    yield "text", ""
    yield "prompt", "$ verger plan scavenge demo"
    yield from (("text", line) for line in plan[1:2])
    yield from (("head" if line.startswith("stage") else "text", line) for line in stages)
    yield "text", plan[-1]
    yield "text", ""
    yield "prompt", f"$ verger apply {code} --wait"
    yield from (("text", line) for line in steps[:3])
    yield "dim", "  ..."
    yield from (("good", line) for line in steps[-1:])
    yield from (("head" if line.startswith("node") else "text", line) for line in report)


def main():
    rows = [(kind, text if len(text) <= COLUMNS else text[:COLUMNS - 1] + "…")
            for kind, text in chosen(sys.stdin.read().split("\n"))]
    width = round(2 * MARGIN + COLUMNS * ADVANCE)
    height = 2 * MARGIN + len(rows) * LINE
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
          f'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, \'DejaVu Sans Mono\', '
          f'monospace" font-size="{FONT_SIZE}" role="img" aria-labelledby="title">')
    print('<title id="title">A rolling scavenge of three nodes: the cluster, the plan, the run '
          'and its report</title>')
    print(f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>')
    for number, (kind, text) in enumerate(rows):
        weight = ' font-weight="bold"' if kind == "prompt" else ""
        print(f'<text x="{MARGIN}" y="{MARGIN + (number + 1) * LINE - 5}" '
              f'fill="{COLOURS[kind]}"{weight} xml:space="preserve">{escape(text)}</text>')
    print("</svg>")


if __name__ == "__main__":
    main()
