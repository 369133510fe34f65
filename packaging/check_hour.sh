# The first hour, as docs/operations/install.md has it, with what each command prints and how long it
# takes: in first-hour.txt beside the packages. Sourced by check.sh.
# shellcheck shell=bash

# shown LINE: as an operator types it, as root; secrets are replaced in the transcript
shown() {
  local began ended
  began=$(date +%s%N)
  inside sh -c "$1" >"$work/output" 2>&1 || { cat "$work/output" >&2; fail "$1"; }
  ended=$(date +%s%N)
  {
    printf '    %s\n\n' "$1"
    sed 's/^/      /' "$work/output"
    printf '\n  %d.%02d s\n\n' $(((ended - began) / 1000000000)) $(((ended - began) / 10000000 % 100))
  } | sed -E 's/vergeragent_[A-Za-z0-9_]+/vergeragent_…/g' >>"$transcript"
}
# The command in the last output that has TEXT, with the lines that continue it; without sudo: it is
# root here.
command_with() {
  sed -n "/$1/,/[^\\\\]\$/p" "$work/output" | sed 's/ *\\$//; s/^ *//; s/sudo //g' | tr '\n' ' ' | sed 's/ *$//'
}

first_hour() {
  : >"$transcript"
  shown "vergerd init --api-names localhost --admin ann"
  local login file
  login=$(command_with "verger login")
  grep -q "set  */etc/verger/vergerd.yaml" "$work/output" || fail "init did not set the configuration"
  for file in admin-token api.pem agents-ca.pem; do
    [ "$(inside stat -c '%U:%G %a' "/var/lib/verger/$file")" = "verger:verger 600" ] || fail "$file: owner or mode"
  done
  [ "$(inside stat -c '%U:%G %a' /etc/verger/vergerd.yaml)" = "root:verger 640" ] || fail "vergerd.yaml after init"
  settle_times >>"$root/etc/verger/vergerd.yaml"
  shown "vergerd config check --config /etc/verger/vergerd.yaml"
  if boots; then shown "systemctl restart vergerd"; else stop vergerd.service; start vergerd.service; fi
  until_true 60 "vergerd's start" inside sh -c "$login"
  shown "$login"
  grep -q "is ann (admin) from now on" "$work/output" || fail "login"
  [ "$(inside verger version)" = "verger $version
vergerd $version" ] || fail "verger version by the profile"
  [ ! -e "$root/var/lib/verger/bootstrap-token" ] || fail "the bootstrap token is still there"

  make_databases
  serve_node 1 node
  shown "verger agent enrol orders/n1 --host 127.0.0.1"
  local line
  line=$(command_with "verger-agent enrol")
  [[ $line == *"systemctl enable --now verger-agent" ]] || fail "agent enrol: $line"
  if ! boots; then line=${line% && systemctl*}; fi
  shown "$line"
  boots || start verger-agent.service
  start_other_nodes
  until_true 120 "a leader and three agents in the gossip" gossip_has_a_leader
  shown "verger cluster discover http://127.0.0.1:2113 --name orders"
  shown "$(command_with "verger cluster add")"
  until_true 120 "a leader with two followers" is_settled
  shown "verger doctor orders"
  grep -q "^0 errors" "$work/output" || fail "doctor found errors"
  shown "verger plan scavenge orders"
}
