"""What the sources define that documents have to name: metrics, stable codes, kinds of steps."""

import glob
import os
import re

NAMES = re.compile(r"inline constexpr std::string_view (k\w+) = \"([a-z_]+)\"")


def text_of(root, pattern):
    """path -> text of the sources that match, without comments of whole lines."""
    found = {}
    for path in sorted(glob.glob(os.path.join(root, pattern), recursive=True)):
        with open(path, encoding="utf-8") as file:
            lines = [line for line in file if not line.lstrip().startswith("//")]
        found[os.path.relpath(path, root)] = "".join(lines)
    return found


def metrics(root):
    """Names that GET /metrics serves."""
    names = set()
    for path in ("controller/api/metrics.cpp", "controller/operations/*/metrics.cpp"):
        for text in text_of(root, path).values():
            names.update(re.findall(r"(?:family|add|Name)\(\s*\"(verger_[a-z_]+)\"", text))
    return names


TEST = re.compile(r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", re.MULTILINE)


def tests(root):
    """Suite -> names of the GoogleTest tests."""
    found = {}
    for text in text_of(root, "tests/**/*.cpp").values():
        for suite, name in TEST.findall(text):
            found.setdefault(suite, set()).add(name)
    return found


CODE = r"\"([a-z][a-z0-9]*(?:[-_][a-z0-9]+)*)\""
REFUSALS = [
    re.compile(r"\brefuse\(\s*" + CODE),
    re.compile(r"Refusal\{\s*" + CODE),
    re.compile(r"\bcode = " + CODE),
    re.compile(r"problem_code = " + CODE),
    re.compile(r"\bout\.push_back\(\{" + CODE + r", \"\","),
    re.compile(r"\bclosed\(\s*[\w.]+,\s*(?:\w+ \? )?" + CODE),
    re.compile(r"\bclosed\(\s*[\w.]+,\s*\w+ \? \"[a-z-]+\" : " + CODE),
]
ANSWERS = [
    re.compile(r"\bproblem\(\s*\d{3},\s*" + CODE),
    re.compile(r"\.code = " + CODE),
    re.compile(r"\bHindrance\{" + CODE),
    re.compile(r"OperationState::kFailed, " + CODE),
]
# How an attempt of a step ended.
OUTCOMES = [
    re.compile(r"\bverdict\(\s*Verdict::Kind::\w+,\s*" + CODE),
    re.compile(r"\boutcome = " + CODE),
]
FINDINGS = re.compile(r"\bfindings\.(?:error|warning)\(\s*" + CODE)


def codes(root):
    """code -> a source that has it: of refused plans and gates, of the API, of agents."""
    found = {}
    for folder, patterns in (("planner", REFUSALS), ("controller/operations", REFUSALS),
                             ("controller/executor", REFUSALS), ("controller/api", ANSWERS),
                             ("nodeagent/operations", ANSWERS), ("controller", OUTCOMES)):
        for path, text in text_of(root, f"{folder}/**/*.cpp").items():
            for pattern in patterns:
                for code in pattern.findall(text):
                    found.setdefault(code, path)
    return found


def findings(root):
    """Codes of `verger cert lint`."""
    return {code for text in text_of(root, "nodeagent/certificates/**/*.cpp").values()
            for code in FINDINGS.findall(text)}


def step_kinds(root):
    """operation -> {kind: whether it can be undone}; "" are the kinds of no operation."""
    names = {}
    for path, text in text_of(root, "planner/*/*_steps.h").items():
        names.setdefault(path.split("/")[1], {}).update(NAMES.findall(text))
    found = {}
    for pattern in ("controller/operations/*/step_*.cpp", "controller/executor/step_*.cpp"):
        for path, text in text_of(root, pattern).items():
            operation = path.split("/")[2] if "operations/" in path else ""
            for part in re.split(r"(?=\bname\(\) const override)", text)[1:]:
                match = re.match(r"name\(\) const override \{ return ([^;]+); \}", part)
                if not match:
                    continue
                said = match.group(1)
                name = said.strip('"') if said.startswith('"') else \
                    names.get(operation, {}).get(said.split("::")[-1], said)
                undone = "can_undo() const override { return true; }" in part
                found.setdefault(operation, {})[name] = undone
    return found


def variables(root):
    """Environment variables that sources and scripts read."""
    found = set()
    for pattern in ("controller/**/*.cpp", "nodeagent/**/*.cpp", "engine/**/*.cpp",
                    "tests/**/*.cpp", "tests/**/*.h", "tests/**/*.sh", "examples/**/*.sh",
                    "tests/**/CMakeLists.txt", "CMakeLists.txt", "cmake/*"):
        for text in text_of(root, pattern).values():
            found.update(re.findall(r"\bVERGER_[A-Z0-9_]*[A-Z0-9]\b", text))
    return found


def options(root):
    """Options of scripts, and those of daemons and tests that no --help shows."""
    found = set()
    for pattern in ("dev", "examples/**/*.sh", "tests/**/*.sh", "tests/simulation/**/*.cpp"):
        for text in text_of(root, pattern).values():
            found.update(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", text))
    for pattern in ("nodeagent/daemon/*.cpp", "controller/daemon/*.cpp"):
        for text in text_of(root, pattern).values():
            found.update("--" + name for name in re.findall(r"\badd\(\s*\"([a-z0-9-]+)\"", text))
    return found
