#!/usr/bin/env bash
# A rolling scavenge of an embedded three-node cluster, from start to report. See README.md here.
set -euo pipefail
# shellcheck source=examples/demo/cluster.sh
. "$(dirname "${BASH_SOURCE[0]}")/cluster.sh"

for number in $(seq 1 40); do write "demo-orders" ordered "{\"order\": $number}"; done
write "demo-orders/metadata" '$metadata' '{"$maxCount": 5}'
for number in $(seq 1 20); do write "demo-session-$((number % 4))" visited "{\"page\": $number}"; done
for number in 1 2; do
  "${node_curl[@]}" -f -o /dev/null -X DELETE "$base/streams/demo-session-$number" || die "a delete failed"
done
"${node_curl[@]}" -f -o /dev/null -X DELETE -H 'ES-HardDelete: true' "$base/streams/demo-session-3" ||
  die "a hard delete failed"
printf 'Written through the node interface: 60 events, a limit of 5 on 40 of them, three deletes\n\n'
until_true 60 "all nodes to have these writes" leader_seen

"$bin/verger" cluster show demo
printf '\n'
"$bin/verger" plan scavenge demo
hash=$("$bin/verger" plan list demo -o json | jq -rs '.[0].hash')
printf '\n'
"$bin/verger" apply "$hash" --wait

run=$("$bin/verger" run list demo -o json | jq -rs '.[0].id')
"$bin/verger" run show "$run" -o json | jq -e '
  .state == "done" and (.report.nodes | length == 3)
  and ([.report.nodes[].point] | unique | length == 1) and .report.nodes[0].point != null
  and ([.report.nodes[] | select(.space_saved <= 0 or .bytes_before == null or .bytes_after == null
                                 or .bytes_after >= .bytes_before)] | length == 0)
  and ([.report.nodes[].chunks_compared] | unique | length == 1)
  and .report.planned_leader_moves == 1 and .report.digests_equal == true
  and .report.readable_unchanged == true' >/dev/null ||
  die "the run ended, but not everything it should show was seen; look with: verger run show $run"

printf '\nTry next (with --keep the cluster stays):\n'
printf '  %s\n' "examples/demo/run.sh --keep" \
  "export VERGER_CONTROLLER=$VERGER_CONTROLLER VERGER_CA_FILE=${VERGER_CA_FILE#"$PWD"/}" \
  "build/bin/verger run show $run" \
  "build/bin/verger-db verify ${dir#"$PWD"/}/n1/db"
