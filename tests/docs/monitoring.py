"""Alert rules and dashboards, compared with the metrics that exist and with their runbook."""

import glob
import json
import os
import re
import subprocess
import tempfile

RULES = "examples/prometheus/verger.rules.yml"
RULE_TESTS = ("examples/prometheus/verger.rules.test.yml",
              "examples/prometheus/verger.rules.days.test.yml")
DASHBOARDS = "examples/grafana/*.json"
RUNBOOK = "docs/operations/alerts.md"
METRICS = "docs/operations/metrics.md"
# Families of metrics are also written as a pattern, such as verger_journal_*.
METRIC = re.compile(r"\bverger_[a-z_]+\b(?![*{…]*\*)")
NOT_METRICS = {"verger_agent"}


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def rules_of(text):
    """[(alert, text of the rule)]"""
    parts = re.split(r"\n\s*- alert: ", "\n" + text)
    return [(part.split("\n")[0].strip(), part) for part in parts[1:]]


def documented_metrics(documents):
    """metric -> its labels, of the table in metrics.md"""
    found = {}
    for _, cells in documents[METRICS].tables:
        if len(cells) == 3:
            labels = set(re.findall(r"[a-z_]+", re.sub(r"\([^)]*\)", "", cells[1])))
            for name in re.findall(r"`(verger_[a-z_]+)`", cells[0]):
                found[name] = labels
    return found


def check_metrics(documents, in_code, problems):
    documented = documented_metrics(documents)
    problems += [f"{METRICS}: the metric {name} of the sources is missing"
                 for name in sorted(in_code - set(documented))]
    problems += [f"{METRICS}: no source has the metric {name}"
                 for name in sorted(set(documented) - in_code)]
    for document in documents.values():
        for number, text in document.spans():
            for name in re.findall(r"^(verger_[a-z_]+)(?:\{.*)?$", text):
                if name not in in_code | NOT_METRICS and not name.endswith("_"):
                    problems.append(f"{document.path}:{number}: no source has the metric {name}")


def check_expression(expression, documented, place, problems):
    """Metrics exist, and labels in braces are theirs."""
    for name in METRIC.findall(re.sub(r"\"[^\"]*\"", '""', expression)):
        if name not in documented:
            problems.append(f"{place}: no source has the metric {name}")
    for name, matchers in re.findall(r"\b(verger_[a-z_]+)\{([^}]*)\}", expression):
        allowed = documented.get(name, set()) | {"job", "instance"}
        for label in re.findall(r"([a-z_]+)\s*(?:=~|!~|!=|=)", matchers):
            if label not in allowed:
                problems.append(f"{place}: {name} has no label {label}")


def check_alerts(root, documents, problems):
    text = read(root, RULES)
    tests = "".join(read(root, path) for path in RULE_TESTS)
    documented = documented_metrics(documents)
    sections = documents[RUNBOOK].anchors if RUNBOOK in documents else set()
    alerts = set()
    for alert, rule in rules_of(text):
        place = f"{RULES}: {alert}"
        alerts.add(alert)
        expression = re.search(r"\n\s*expr: (.*)", rule)
        check_expression(expression.group(1) if expression else "", documented, place, problems)
        if alert.lower() not in sections:
            problems.append(f"{place}: {RUNBOOK} has no section of it")
        if "annotations: *" not in rule and f'runbook: "{RUNBOOK}#{alert.lower()}"' not in rule:
            problems.append(f'{place}: it lacks runbook: "{RUNBOOK}#{alert.lower()}"')
        if f"alertname: {alert}" not in tests:
            problems.append(f"{place}: {RULE_TESTS[0]} does not test it")
    for anchor in sorted(sections):
        if re.match(r"verger[a-z]+$", anchor) and anchor not in {alert.lower() for alert in alerts}:
            problems.append(f"{RUNBOOK}: there is no alert for the section #{anchor}")


def panels_of(dashboard):
    for panel in dashboard.get("panels", []):
        yield panel
        yield from panels_of(panel)


def expressions_of(dashboard):
    """(place, expression) of every panel, and of the variables."""
    for panel in panels_of(dashboard):
        for target in panel.get("targets", []):
            yield panel.get("title", "?"), target["expr"]
    for variable in dashboard.get("templating", {}).get("list", []):
        match = re.match(r"label_values\((.*), *\w+\)$", str(variable.get("query", "")))
        if match:
            yield f"${variable['name']}", match.group(1)


def check_dashboards(root, documents, promtool, problems):
    documented = documented_metrics(documents)
    expressions = []
    for path in sorted(glob.glob(os.path.join(root, DASHBOARDS))):
        name = os.path.relpath(path, root)
        try:
            dashboard = json.loads(read(root, name))
        except ValueError as error:
            problems.append(f"{name}: {error}")
            continue
        ids = [panel.get("id") for panel in panels_of(dashboard)]
        if len(ids) != len(set(ids)):
            problems.append(f"{name}: two panels have the same id")
        for title, expression in expressions_of(dashboard):
            check_expression(expression, documented, f"{name}: {title}", problems)
            expressions.append((f"{name}: {title}", expression))
    if promtool:
        check_syntax(promtool, expressions, problems)


def check_syntax(promtool, expressions, problems):
    """Each expression as a recording rule: promtool parses them."""
    lines = ["groups:", "  - name: dashboards", "    rules:"]
    for number, (_, expression) in enumerate(expressions):
        plain = expression.replace("$__rate_interval", "5m").replace("$__range", "1d")
        plain = re.sub(r"\$\{?[a-z]+\}?", "x", plain)
        lines += [f"      - record: dashboard:{number}", f"        expr: {json.dumps(plain)}"]
    with tempfile.NamedTemporaryFile("w", suffix=".yml", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        ran = subprocess.run([promtool, "check", "rules", file.name], capture_output=True,
                             text=True, check=False)
    if ran.returncode != 0:
        said = (ran.stdout + ran.stderr).replace(file.name, "dashboards")
        numbered = re.findall(r"dashboard:(\d+)", said)
        where = ", ".join(expressions[int(number)][0] for number in numbered)
        problems.append(f"{where or 'dashboards'}: {said.strip()}")
