#!/usr/bin/env bash
# A backup of an embedded three-node cluster while events are written, the loss of all three
# databases, and the restore of all nodes. See README.md here.
set -euo pipefail
services=yes
# shellcheck source=examples/demo/cluster.sh
. "$(dirname "${BASH_SOURCE[0]}")/cluster.sh"

# Events are written until there are enough; each that is acknowledged counts.
: >"$dir/acknowledged"
writer() {
  local number=0
  while [ ! -e "$dir/enough" ]; do
    (write demo-backup written "{\"n\": $number}") 2>/dev/null && echo "$number" >>"$dir/acknowledged"
    number=$((number + 1))
  done
}
acknowledged() { wc -l <"$dir/acknowledged"; }
has_written() { [ "$(acknowledged)" -ge "$1" ]; }
# Of one stream, as a node itself has it.
events_at() { # events_at NODE
  "${node_curl[@]}" -H 'Accept: application/json' -H 'ES-RequireLeader: false' \
    "https://127.0.0.1:${node_port[$1]}/streams/demo-backup/head/backward/1?embed=body" |
    jq '(.entries[0].eventNumber // -1) + 1'
}
digest_of() { # digest_of NODE: what clients can read, from its files
  "$bin/verger-db" digest "$dir/$1/db" -o json | jq -r .readable
}

writer &
writer_pid=$!
pids+=("$writer_pid")
until_true 60 "the first writes" has_written 50
before=$(acknowledged)

printf '\nA backup of a follower while events are written, verified and restored on trial\n\n'
"$bin/verger" backup create demo --repository demo --digests readable --wait
"$bin/verger" backup drill demo --repository demo --wait
printf '\n'
"$bin/verger" backup list demo
touch "$dir/enough"
wait "$writer_pid"
unset 'pids[-1]'
printf '\n%s events were acknowledged before the backup began, %s in the end\n' "$before" "$(acknowledged)"
"$bin/verger" backup list demo -o json |
  jq -es '.[0] | .last_verify.passed and .last_drill.passed' >/dev/null ||
  die "the backup was not verified and drilled; look with: verger backup show demo"

printf '\nDisaster: all three servers are killed (SIGKILL), and their database directories deleted\n'
# shellcheck disable=SC2046  # one word for each process
kill -KILL $(server_pids)
for node in "${nodes[@]}"; do
  rm -rf "$dir/$node/db"
  mkdir "$dir/$node/db"
done

printf '\nRestore of all nodes from that backup\n\n'
begun=$SECONDS
"$bin/verger" restore plan demo --repository demo --scope cluster
hash=$("$bin/verger" plan list demo -o json | jq -rs '.[0].hash')
printf '\n'
"$bin/verger" restore apply demo "$hash" --yes --wait
until_true 60 "one leader and two followers" leader_seen
printf '\nrestored in %s s, from the plan to a leader and two followers\n' $((SECONDS - begun))

digests_equal() {
  [ "$(digest_of n1)" = "$(digest_of n2)" ] && [ "$(digest_of n1)" = "$(digest_of n3)" ]
}
until_true 30 "three equal digests" digests_equal
printf '\n%-6s %-8s %s\n' NODE EVENTS 'READABLE DIGEST'
for node in "${nodes[@]}"; do
  events=$(events_at "$node")
  printf '%-6s %-8s %s\n' "$node" "$events" "$(digest_of "$node")"
  [ "$events" -ge "$before" ] ||
    die "$node has $events events, and $before were acknowledged before the backup"
done
(write demo-backup written '{"n": "after"}')
printf 'a new event was written; all %s that were acknowledged before the backup are on every node\n' "$before"
run=$("$bin/verger" run list demo -o json | jq -rs '.[0].id')
printf '\nTry next (with --keep the cluster stays):\n'
printf '  %s\n' "examples/demo/backup.sh --keep" \
  "export VERGER_CONTROLLER=$VERGER_CONTROLLER VERGER_CA_FILE=${VERGER_CA_FILE#"$PWD"/}" \
  "build/bin/verger run show $run" "build/bin/verger backup list demo" \
  "build/bin/verger-db backup verify ${dir#"$PWD"/}/repositories/demo.json"
