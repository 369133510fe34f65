"""Commands in documents, compared with what the programs' own --help lists."""

import json
import os
import re
import shlex
import subprocess

PROGRAMS = ("verger", "vergerd", "verger-agent", "verger-db")
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z0-9-]*)")
# What may stand before a program's name on a line.
BEFORE = re.compile(
    r"^(?:\$\s+|#\s+)?(?:sudo\s+(?:-u\s+\S+\s+)?|[A-Z_]+=\S+\s+|exec\s+|time\s+|ExecStart=)*"
    r"(?:\S*/)?(?P<program>vergerd|verger-agent|verger-db|verger)(?=\s|$)")
SEPARATORS = {"|", "||", "&&", ";", "&", ">", ">>", "<", "2>", "2>&1"}
# Options of programs that are not ours, which documents name for good reason.
FOREIGN = {
    "--client-cert-auth", "--auto-compaction-mode", "--auto-compaction-retention",  # etcd
    "--home-dir", "--shell", "--system",  # useradd
    "--insecure", "--db", "--node-port",  # the server
    "--gtest_filter", "--test-dir",  # tests
}
# Labels of keys that begin like a command, and a name that stands for any.
LABEL = re.compile(r"verger backup (?:names|object|header|blob)\b.* 1$")
ANY_VARIABLE = {"VERGER_NAME"}


class Programs:
    """The help of the programs in a directory, read once each."""

    def __init__(self, directory):
        self._directory = directory
        self._helps = {}

    def help(self, program, path=()):
        key = (program, tuple(path))
        if key not in self._helps:
            ran = subprocess.run([os.path.join(self._directory, program), *path, "--help"],
                                 capture_output=True, text=True, timeout=30, check=False)
            self._helps[key] = ran.stdout if ran.returncode == 0 else None
        return self._helps[key]

    def options(self, program, path=()):
        """Of a command with those of the commands above it; None: there is no such command."""
        found = {"--help", "--version"}
        for length in range(len(path) + 1):
            text = self.help(program, path[:length])
            if text is None:
                return None
            found.update(OPTION.findall(text))
            found.update("--" + name for name in flags_of_footer(text))
        return found

    def subcommands(self, program, path=()):
        return subcommands_of(self.help(program, path) or "")

    def openapi(self):
        """The API's document, as vergerd prints it."""
        ran = subprocess.run([os.path.join(self._directory, "vergerd"), "openapi"],
                             capture_output=True, text=True, timeout=30, check=True)
        return json.loads(ran.stdout)

    def variables(self):
        return {name for program in ("vergerd", "verger-agent")
                for name in re.findall(r"\bVERGER_[A-Z0-9_]+", self.help(program) or "")}

    def all_options(self):
        found = set()
        pending = [(program, ()) for program in PROGRAMS]
        while pending:
            program, path = pending.pop()
            found |= self.options(program, path) or set()
            pending += [(program, (*path, name)) for name in self.subcommands(program, path)]
        return found


def flags_of_footer(text):
    return re.findall(r"--([a-z][a-z0-9-]*)", text)


def subcommands_of(text):
    """Names in the section of subcommands that CLI11 writes."""
    names = []
    inside = False
    for line in text.split("\n"):
        if re.match(r"^(sub)?commands:?\s*$", line.strip(), re.IGNORECASE):
            inside = True
        elif inside and re.match(r"^\S", line):
            inside = False
        elif inside:
            match = re.match(r"^  ([a-z][a-z0-9-]*)(\s|$)", line)
            if match:
                names.append(match.group(1))
    return names


def words_of(text):
    """The words of one command, up to its end; comments and redirections are not part of it."""
    try:
        lexer = shlex.shlex(text, posix=True, punctuation_chars="|&;<>")
        lexer.whitespace_split = True
        lexer.commenters = ""
        words = list(lexer)
    except ValueError:
        words = text.split()
    out = []
    for word in words:
        if word in SEPARATORS or set(word) <= set("|&;<>") or word.startswith("#"):
            break
        out.append(word)
    return out


def check_command(programs, program, words, place, problems):
    path = []
    for position, word in enumerate(words):
        names = programs.subcommands(program, path)
        if word in names:
            path.append(word)
            continue
        if names and re.fullmatch(r"[a-z][a-z-]+", word) and position == len(path):
            command = " ".join([program, *path])
            problems.append(f"{place}: `{command}` has no command `{word}`")
            return
        break
    commands = {"verger-agent": ("enrol", "epoch"), "vergerd": ("init",)}
    if words[:1] and words[0] in commands.get(program, ()):
        path = [words[0]]
    known = programs.options(program, path)
    for word in words[len(path):]:
        match = re.fullmatch(r"[\[(]?(--[a-z][a-z0-9-]*)(=.*)?[\])]?", word)
        if match and match.group(1) not in known:
            command = " ".join([program, *path])
            problems.append(f"{place}: `{command}` has no option {match.group(1)}")


def joined(lines):
    """Lines of code with continued ones made one: (number, text)."""
    number, text = None, ""
    for line in lines:
        if number is None:
            number = line.number
        if line.text.rstrip().endswith("\\"):
            text += line.text.rstrip()[:-1] + " "
            continue
        yield number, text + line.text
        number, text = None, ""
    if text:
        yield number, text


def commands_in(document):
    """(line, program, words) of each command in code blocks and in inline code."""
    sources = list(joined(document.code)) + list(document.spans())
    for number, text in sources:
        if LABEL.match(text):
            continue
        for part in re.split(r"\s(?:&&|;|\|)\s|\$\(", text):
            match = BEFORE.match(part.strip())
            if match:
                rest = part.strip()[match.end():]
                yield number, match.group("program"), words_of(rest)


def check_commands(programs, documents, others, problems):
    """`others`: options of scripts, and those that no help shows."""
    for document in documents.values():
        for number, program, words in commands_in(document):
            check_command(programs, program, words, f"{document.path}:{number}", problems)
    check_lone_options(programs, documents, others, problems)


def check_lone_options(programs, documents, others, problems):
    """`--option` in running text has to be one of any of our programs or scripts."""
    known = programs.all_options() | FOREIGN | others
    for document in documents.values():
        for number, text in document.spans():
            match = re.match(r"(--[a-z][a-z0-9-]*)", text)
            if match and match.group(1) not in known:
                problems.append(f"{document.path}:{number}: no program has the option "
                                f"{match.group(1)}")


def check_dev(documents, dev_commands, problems):
    """`./dev X`: X is in the usage."""
    for document in documents.values():
        code = [(line.number, line.text) for line in document.code] + list(document.spans())
        for number, text in code:
            for name in re.findall(r"(?:^|[\s`])\./dev ([a-z]+)", text):
                if name not in dev_commands:
                    problems.append(f"{document.path}:{number}: ./dev has no command {name}")


def check_variables(known, documents, problems):
    for document in documents.values():
        for line in document.prose + document.code:
            for name in re.findall(r"\bVERGER_[A-Z0-9_]*[A-Z0-9]\b(?![_*…])", line.text):
                if name not in known | ANY_VARIABLE:
                    problems.append(
                        f"{document.path}:{line.number}: no program reads the variable {name}")
