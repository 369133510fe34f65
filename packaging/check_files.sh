#!/usr/bin/env bash
# check_files.sh BIN WORK: what the packages contain, without the packages: the default
# configurations are accepted, the units are sound, and shells and man read what is for them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bin=$1
work=$2
made=$work/made
failed=0
fail() {
  printf 'packaging: %s\n' "$*" >&2
  failed=1
}
has() { command -v "$1" >/dev/null || { printf 'packaging: %s is not here; skipped\n' "$1"; false; }; }

rm -rf "$work"
mkdir -p "$work"
packaging/make_files.sh "$bin" "$made"

"$bin/vergerd" config check --config "$made/vergerd.yaml" || fail "vergerd refuses its configuration"
"$bin/verger-agent" config check --config "$made/verger-agent.yaml" ||
  fail "verger-agent refuses its configuration"

for name in vergerd verger-agent; do
  unit=examples/systemd/$name.service
  file=$(sed -n 's/^ExecStart=.* --config //p' "$unit")
  grep -qxF "$file" packaging/*/conffiles || fail "$unit: $file is in no package"
  # The program is not installed here.
  sed "s#^ExecStart=/usr/bin/#ExecStart=$bin/#" "$unit" >"$work/$name.service"
done
if has systemd-analyze; then
  # In a container it may complain about that, too.
  complaints=$(systemd-analyze verify --man=no "$work"/*.service 2>&1 | grep -i verger || true)
  [ -z "$complaints" ] || fail "$complaints"
fi

for script in packaging/*/postinst packaging/*/prerm packaging/*/postrm; do
  sh -n "$script" || fail "$script"
done
bash -n "$made/completion/verger" || fail "completion of bash"
! has zsh || zsh -n "$made/completion/_verger" || fail "completion of zsh"
! has fish || fish --no-execute "$made/completion/verger.fish" || fail "completion of fish"

# A page that two packages have could not be installed with both.
twice=$(find "$made" -path '*/man*' -type f -printf '%f\n' | sort | uniq -d)
[ -z "$twice" ] || fail "in two packages: $twice"
if has groff; then
  for page in "$made"/man*/*.gz; do
    complaints=$(zcat "$page" | groff -K utf8 -man -Tutf8 -ww -z 2>&1 || true)
    [ -z "$complaints" ] || fail "$page: $complaints"
  done
fi
exit "$failed"
