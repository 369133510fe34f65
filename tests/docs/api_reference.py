"""docs/formats/api-reference.md: requests and schemas of the API, from its own OpenAPI document.

python3 tests/docs/check.py --programs DIR --write makes it anew; the check compares.
"""

PATH = "docs/formats/api-reference.md"
HEAD = """# API reference

Generated from the OpenAPI document that vergerd serves (`GET /api/v1/openapi.json`) and prints (`vergerd openapi`); a test compares them. What requests mean, their codes and examples: [the controller's API](controller-api.md). All paths begin with `/api/v1`.

"""
REFERENCE = "#/components/schemas/"


def cell(text):
    return text.replace("|", "\\|").replace("<", "&lt;")


def link(reference):
    name = reference.removeprefix(REFERENCE)
    return f"[{name}](#{name.lower()})"


def type_of(schema):
    """As a reader takes it: "Node[]", "`a`, `b` or null", "integer, 1 to 4"."""
    if "$ref" in schema:
        return link(schema["$ref"])
    if "anyOf" in schema:
        return " or ".join("null" if each == {"type": "null"} else type_of(each)
                           for each in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    if "oneOf" in schema:
        return ", or ".join(type_of(each) for each in schema["oneOf"])
    if "pattern" in schema:
        return f"a text like `{schema['pattern']}`"
    kind = schema.get("type", "anything")
    if kind == "array":
        return f"{type_of(schema['items'])}[]" if "items" in schema else "array"
    if schema.get("format") == "date-time":
        return "time"
    if "maximum" in schema:
        return f"{kind}, {schema['minimum']} to {schema['maximum']}"
    return f"{kind}, in {schema['x-unit']}" if "x-unit" in schema else kind


def body_of(content):
    for kind, each in (content or {}).items():
        if kind == "application/json":
            return type_of(each["schema"])
        if kind == "application/octet-stream":
            return "bytes"
    return "–"


def requests_of(document):
    lines = ["## Requests", "", "| request | role | what it does | query | body | answer |",
             "|---|---|---|---|---|---|"]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            query = [f"`{each['name']}`" for each in operation.get("parameters", [])
                     if each["in"] == "query"]
            role = "–" if not operation["security"] else operation["x-role"]  # without a token
            status, answer = next((code, each) for code, each in operation["responses"].items()
                                  if code != "default")
            lines.append(
                f"| `{method.upper()} {path.removeprefix('/api/v1')}` | {role} "
                f"| {cell(operation['summary'])} | {', '.join(query) or '–'} "
                f"| {body_of(operation.get('requestBody', {}).get('content'))} "
                f"| {status} {body_of(answer.get('content'))} |".replace("| 204 – |", "| 204 |"))
    return lines


def default_of(schema):
    value = schema.get("default")
    if value is None or value == "":
        return ""
    return f" Default: `{str(value).lower() if isinstance(value, bool) else value}`."


def schema_of(name, schema):
    lines = ["", f"### {name}", ""]
    if "description" in schema:
        lines += [schema["description"] + ".", ""]
    properties = schema.get("properties", {})
    if not properties:
        return lines + ["An object of any members."]
    with_meaning = any("description" in each for each in properties.values())
    lines += ["| member | type | meaning |" if with_meaning else "| member | type |",
              "|---|---|---|" if with_meaning else "|---|---|"]
    for member, each in properties.items():
        required = "" if member in schema.get("required", []) or "default" in each else " (may be missing)"
        said = cell(each["description"]) + "." if "description" in each else ""
        meaning = f" {said}{default_of(each)} |".replace("  |", " |") if with_meaning else ""
        lines.append(f"| `{member}`{required} | {cell(type_of(each))} |{meaning}")
    return lines


def page(document):
    lines = requests_of(document) + ["", "## Schemas"]
    for name, schema in sorted(document["components"]["schemas"].items()):
        lines += schema_of(name, schema)
    return HEAD + "\n".join(lines) + "\n"
