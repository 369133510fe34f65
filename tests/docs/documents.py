"""The documents of the tree: their headings, links, and what stands in code."""

import os
import re
import subprocess
from dataclasses import dataclass, field
from urllib.parse import unquote

FENCE = re.compile(r"^\s*(```|~~~)")
HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*$")
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
SPAN = re.compile(r"(`+)(.+?)\1")
ITEM = re.compile(r"^(\s*)([-*]|\d+\.)\s+")


@dataclass
class Line:
    number: int
    text: str


@dataclass
class Document:
    path: str  # relative to the root
    anchors: set = field(default_factory=set)
    prose: list = field(default_factory=list)  # Line, without code blocks
    code: list = field(default_factory=list)   # Line, of code blocks
    tables: list = field(default_factory=list)  # (number, [cell])

    def spans(self):
        """(line, text) of every inline code."""
        for line in self.prose:
            for match in SPAN.finditer(line.text):
                yield line.number, match.group(2).strip()


def anchor_of(heading):
    """As GitHub makes them: without markup, lower case, blanks to hyphens."""
    text = LINK.sub(lambda match: match.group(0)[1:].split("](")[0], heading)
    text = text.replace("`", "").strip().lower()
    text = re.sub(r"[^\w\- ]", "", text)
    return text.replace(" ", "-")


def cells_of(text):
    inner = text.strip().strip("|")
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", inner)]


def read(root, path):
    document = Document(path)
    seen = {}
    fenced = False
    in_list = False
    blank_before = True
    in_block = False
    with open(os.path.join(root, path), encoding="utf-8") as file:
        lines = file.read().split("\n")
    for number, text in enumerate(lines, 1):
        if FENCE.match(text):
            fenced = not fenced
            continue
        if fenced:
            document.code.append(Line(number, text))
            continue
        indent = len(text) - len(text.lstrip())
        if not text.strip():
            blank_before = True
            continue
        needed = 7 if in_list else 4
        if indent >= needed and (blank_before or in_block):
            document.code.append(Line(number, text.strip()))
            in_block = True
            blank_before = False
            continue
        in_block = False
        blank_before = False
        if ITEM.match(text):
            in_list = True
        elif indent == 0:
            in_list = False
        heading = HEADING.match(text)
        if heading:
            anchor = anchor_of(heading.group(2))
            count = seen.get(anchor, 0)
            seen[anchor] = count + 1
            document.anchors.add(anchor if count == 0 else f"{anchor}-{count}")
        for anchor in re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text):
            document.anchors.add(anchor)
        document.prose.append(Line(number, text))
        if text.startswith("|") and not re.match(r"^\|[\s:|-]+\|$", text):
            document.tables.append((number, cells_of(text)))
    return document


def read_all(root):
    """path -> Document, of what git tracks or would track; of a tree without git, of all files."""
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        capture_output=True, text=True, check=False)
    if listed.returncode == 0 and os.path.exists(os.path.join(root, ".git")):
        paths = [path for path in listed.stdout.split("\n") if path]
    else:
        paths = [os.path.relpath(os.path.join(folder, name), root)
                 for folder, _, names in os.walk(root) for name in names
                 if name.endswith(".md") and "/build/" not in folder + "/"
                 and "/node_modules/" not in folder + "/"]
    return {path: read(root, path) for path in sorted(set(paths))
            if os.path.exists(os.path.join(root, path))}


def check_links(root, documents, problems):
    for document in documents.values():
        for line in document.prose:
            text = SPAN.sub("", line.text)
            for target in LINK.findall(text):
                if re.match(r"^[a-z][a-z0-9+.-]*:", target):
                    continue
                place = f"{document.path}:{line.number}"
                path, _, anchor = unquote(target).partition("#")
                where = document.path
                if path:
                    where = os.path.normpath(os.path.join(os.path.dirname(document.path), path))
                    if where.startswith("..") or not os.path.exists(os.path.join(root, where)):
                        problems.append(f"{place}: the link {target} leads nowhere")
                        continue
                if anchor and where in documents and anchor not in documents[where].anchors:
                    problems.append(f"{place}: {where} has no heading #{anchor}")
