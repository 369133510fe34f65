"""docs/operations/configuration.md: the settings of the daemons, from their own --help.

python3 tests/docs/check.py --programs DIR --write makes it anew; the check compares.
"""

import re

PATH = "docs/operations/configuration.md"
HEAD = """# Settings of the daemons

Generated from the settings tables of the programs (`vergerd --help`, `verger-agent --help`); a test compares them. Each setting is a flag, an environment variable and a key of the file that `--config` names: [the rules](command-line.md#the-daemons-options). Annotated files: [vergerd.yaml](../../examples/vergerd.yaml), [verger-agent.yaml](../../examples/verger-agent.yaml), [verger-agent-server.yaml](../../examples/verger-agent-server.yaml).
"""
OPTION = re.compile(r"^  (?:--(?P<flag>[a-z0-9-]+)  )?(?P<variable>VERGER_[A-Z0-9_]+)"
                    r"(?P<secret> \(variable or file only\))?$")
DEFAULT = re.compile(r"^(?P<text>.*?) ?\[(?P<value>[^\[\]]*)\]$")


def key_of(variable):
    """VERGER_NODE_CLUSTER_SIZE -> ClusterSize"""
    name = re.sub(r"^VERGER_(NODE_|AGENT_)?", "", variable)
    return "".join(part.capitalize() for part in name.split("_"))


def options_of(text):
    """[(group, flag or None, variable, description)] in the order of the help."""
    out = []
    group = ""
    for line in text.split("\n"):
        match = OPTION.match(line)
        if match:
            out.append([group, match.group("flag"), match.group("variable"), ""])
        elif re.match(r"^      \S", line) and out:
            out[-1][3] = f"{out[-1][3]} {line.strip()}".strip()
        elif re.match(r"^[A-Z]\S*( \S+)*$", line):
            group = line.strip()
    return [tuple(option) for option in out]


def cell(text):
    return text.replace("|", "\\|").replace("<", "&lt;")


def section(program, text):
    lines = [f"## {program}", ""]
    last = None
    for group, flag, variable, description in options_of(text):
        if group != last:
            if last is not None:
                lines.append("")
            lines += [f"### {group} ({program})", "",
                      "| key | flag | variable | meaning | default |", "|---|---|---|---|---|"]
            last = group
        match = DEFAULT.match(description)
        meaning, value = (match.group("text"), f"`{match.group('value')}`") if match \
            else (description, "–")
        name = "".join(part.capitalize() for part in flag.split("-")) if flag \
            else key_of(variable)
        shown = f"`--{flag}`" if flag else "– (a secret)"
        lines.append(f"| `{name}` | {shown} | `{variable}` | {cell(meaning)} | {value} |")
    return "\n".join(lines) + "\n"


def page(programs):
    return HEAD + "".join("\n" + section(program, programs.help(program) or "")
                          for program in ("vergerd", "verger-agent"))
