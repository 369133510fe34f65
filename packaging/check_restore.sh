# vergerd's own backup and restore, as docs/operations/vergerd-restore.md has it. Sourced by check.sh.
# shellcheck shell=bash
check_restore() {
  local before
  before=$(inside verger run list -o json | jq -r .id | sort)
  stop vergerd.service
  inside mkdir /backup
  inside cp -a /var/lib/verger /backup/verger
  start vergerd.service
  wait_until_served
  # What happens after the copy is lost with the directory.
  quietly inside verger token create later --role viewer
  stop vergerd.service
  inside sh -c 'rm -rf /var/lib/verger/* && cp -a /backup/verger/. /var/lib/verger/'
  start vergerd.service
  wait_until_served
  inside verger audit verify >"$work/last" 2>&1 || { cat "$work/last" >&2; fail "audit verify after the restore"; }
  [ "$(inside verger run list -o json | jq -r .id | sort)" = "$before" ] || fail "runs after the restore"
  ! inside verger token list | grep -q later || fail "it is not the copy that was restored"
  # The agents may have seen a newer epoch than the copy has; the message says how to go beyond it.
  if inside verger cluster show orders 2>&1 | tee "$work/last" | grep -q -- '--epoch-above'; then
    step "as $(grep -o -- '.*--epoch-above.*' "$work/last" | head -n 1)"
  fi
  until_true 60 "a leader with two followers, seen by the restored vergerd" is_settled
  inside rm -rf /backup
}
wait_until_served() { until_true 60 "vergerd's answer" inside verger run list; }
