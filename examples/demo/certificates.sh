#!/usr/bin/env bash
# New certificates for an embedded three-node cluster while events are written. See README.md here.
set -euo pipefail
# shellcheck source=examples/demo/cluster.sh
. "$(dirname "${BASH_SOURCE[0]}")/cluster.sh"

serial_of() { # serial_of NODE: of the certificate that a new connection gets
  openssl s_client -connect "127.0.0.1:${node_port[$1]}" -CAfile "$tls/ca/ca.crt" \
    -verify_return_error </dev/null 2>/dev/null | openssl x509 -noout -serial | cut -d= -f2
}
declare -A before after
for node in "${nodes[@]}"; do
  before[$node]=$(serial_of "$node")
done

# Events are written until the change is over; one that is not accepted counts.
writer() {
  local number=0 failed=0
  while [ ! -e "$dir/enough" ]; do
    number=$((number + 1))
    (write "demo-during" written "{\"n\": $number}") 2>/dev/null || failed=$((failed + 1))
  done
  printf '%s %s\n' "$number" "$failed" >"$dir/writes"
}
writer &
writer_pid=$!
pids+=("$writer_pid")

printf '\nNew certificates for all nodes, signed by vergerd with the demo'"'"'s authority; keys are made on the nodes\n\n'
"$bin/verger" plan certificates demo --authority demo --watch-ms "${DEMO_WATCH_MS:-15000}"
hash=$("$bin/verger" plan list demo -o json | jq -rs '.[0].hash')
printf '\n'
"$bin/verger" apply "$hash" --wait
touch "$dir/enough"
wait "$writer_pid"
read -r written failed <"$dir/writes"

printf '\n%-6s %-40s %s\n' NODE 'SERIAL BEFORE' 'SERIAL AFTER'
for node in "${nodes[@]}"; do
  after[$node]=$(serial_of "$node")
  printf '%-6s %-40s %s\n' "$node" "${before[$node]}" "${after[$node]}"
done
printf '%s events written meanwhile, %s not accepted\n' "$written" "$failed"
for node in "${nodes[@]}"; do
  [ -n "${after[$node]}" ] && [ "${after[$node]}" != "${before[$node]}" ] ||
    die "$node does not show a new certificate"
done
run=$("$bin/verger" run list demo -o json | jq -rs '.[0].id')
[ "$("$bin/verger" run show "$run" -o json | jq -r .state)" = done ] ||
  die "the run did not end well; look with: verger run show $run"
printf '\nTry next (with --keep the cluster stays):\n'
printf '  %s\n' "examples/demo/certificates.sh --keep" \
  "export VERGER_CONTROLLER=$VERGER_CONTROLLER VERGER_CA_FILE=${VERGER_CA_FILE#"$PWD"/}" \
  "build/bin/verger run show $run" "build/bin/verger cert status demo"
