# An upgrade of all packages in the middle of a run. Sourced by check.sh.
# shellcheck shell=bash

# in_run FILTER: of jq, on the run as it is now
in_run() { inside verger run show "$run" -o json | jq -e "$1"; }

# Until it has scavenged the followers and moved the leader: then it waits for a minute, before the
# node that led is scavenged (settle_times).
start_run() {
  local plan
  plan=$(inside verger plan list orders -o json | jq -rs '.[0].hash')
  run=$(inside verger apply "$plan" -o json | jq -r .id)
  until_true 300 "the move of the leader" in_run '[.stages[].steps[]] | any(.kind == "resign" and .state == "done")
    and any(.kind == "scavenge" and (.state == "pending" or .state == "waiting"))'
}

settle_times() { printf '# changed by the operator\nElectionSettleMs: 60000\nMoveSettleMs: 60000\n'; }

# Packages of a later version, with programs that say it, too.
make_next() {
  local package name
  next=${version%?}9
  [ "$next" != "$version" ] || next=${version%?}8
  for package in "$root"/packages/*.deb; do
    name=$(dpkg-deb -f "$package" Package)
    dpkg-deb -R "$package" "$work/$name"
    sed -i "s/^Version: .*/Version: $next/" "$work/$name/DEBIAN/control"
    LC_ALL=C sed -i "s/${version//./\\.}\x00/$next\x00/g" "$work/$name"/usr/bin/*
    rm "$package"
    dpkg-deb --root-owner-group -Zgzip -b "$work/$name" "$root/packages/${name}_next.deb" >/dev/null
    rm -r "${work:?}/$name"
  done
}

upgrade() {
  install_packages
  [ "$(inside dpkg-query -W -f '${Version}' verger-controller)" = "$next" ] || fail "not upgraded"
  grep -q "changed by the operator" "$root/etc/verger/vergerd.yaml" || fail "the configuration was replaced"
  boots || { stop vergerd.service; stop verger-agent.service; start vergerd.service; start verger-agent.service; }
  until_true 60 "vergerd's start after the upgrade" inside verger version
  [ "$(inside verger version)" = "verger $next
vergerd $next" ] || fail "verger version after the upgrade"
  in_run '.finished_at == null' >/dev/null || fail "the run had ended before the upgrade did"
  until_true 60 "the agent's start after the upgrade" sees_the_agents_version
}
sees_the_agents_version() {
  inside verger cluster show orders -o json |
    jq -e --arg version "$next" '[.snapshot.nodes[] | select(.agent_version == $version)] | length == 1'
}

check_upgraded_run() {
  until_true 900 "the end of the run" in_run '.finished_at != null'
  in_run '.state == "done" and .report.digests_equal == true and (.report.nodes | length == 3)
    and ([.report.nodes[].point] | unique | length == 1)' >/dev/null ||
    { inside verger run show "$run" >&2; fail "the run did not end well after the upgrade"; }
  inside verger audit verify >/dev/null || fail "the audit trail does not hold after the upgrade"
  step "the run continued and is done, all nodes at one point, digests equal"
}
