# An embedded cluster in the tree, as on three machines: 127.0.0.1, 127.0.0.2, 127.0.0.3. The first has
# its agent in verger-agent.service, with the package's configuration as it is; the others have theirs
# in the node's own process. Sourced by check.sh.
# shellcheck shell=bash
database_of() { if [ "$1" = 1 ]; then echo /var/lib/eventstore; else echo "/var/lib/verger-agent/n$1"; fi; }

# serve_node N ROLE OPTION...
serve_node() {
  local n=$1 role=$2 other seeds=
  shift 2
  for other in 1 2 3; do
    [ "$other" = "$n" ] || seeds+=${seeds:+,}127.0.0.$other:2113
  done
  serve "n$n" verger-agent /usr/bin/verger-agent --role "$role" --host "127.0.0.$n" \
    --db "$(database_of "$n")" --state "/var/lib/verger-agent/state$n" --cluster-size 3 \
    --gossip-seed "$seeds" --max-mem-table-size 200 "$@"
}

make_databases() {
  local n
  for n in 1 2 3; do
    inside install -d -m 0700 "$(database_of "$n")"
    tar --zstd --no-same-owner -xf examples/demo/database.tar.zst -C "$root$(database_of "$n")"
    inside chown -R verger-agent:verger-agent "$(database_of "$n")"
  done
}

# The agents of the nodes 2 and 3 enrol as that of the first one does.
start_other_nodes() {
  local n
  for n in 2 3; do
    inside install -d -m 0700 -o verger-agent -g verger-agent "/var/lib/verger-agent/state$n"
    inside sh -c "umask 077; verger agent token orders/n$n --host 127.0.0.$n >/root/token &&
      verger-agent enrol --state /var/lib/verger-agent/state$n --token-file /root/token \
        --controller https://127.0.0.1:2115 &&
      chown -R verger-agent: /var/lib/verger-agent/state$n; rm /root/token" >"$work/last" 2>&1 ||
      { cat "$work/last" >&2; fail "enrolment of n$n"; }
    serve_node "$n" both
  done
}

is_settled() {
  inside verger cluster show orders -o json | jq -e '.snapshot.leader != null
    and ([.snapshot.nodes[] | select(.state == "Follower" and .lag_bytes == 0)] | length == 2)
    and ([.snapshot.nodes[] | select(.agent_reachable)] | length == 3)'
}
gossip_has_a_leader() {
  inside verger cluster discover http://127.0.0.1:2113 --name orders -o json | jq -e '.nodes | length == 3
    and any(.state == "Leader") and all(.agent != null)'
}
