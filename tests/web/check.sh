#!/usr/bin/env bash
# The dashboard in Debian's Chromium against the demo's cluster. Run by: ./dev web --check
# Leaves screenshots of every page in the directory `screenshots` of --dir.
set -euo pipefail
services=yes  # backups, and what stops a server
tests=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=examples/demo/cluster.sh
. "$tests/../../examples/demo/cluster.sh"

tokens=$dir/tokens
mkdir -p "$tokens"
# The first token has to be an admin's; the others are made with it.
for role in admin operator viewer; do
  (umask 077 && "$bin/verger" token create "the-$role" --role "$role" -o json | jq -r .token >"$tokens/$role")
  export VERGER_TOKEN_FILE=$tokens/admin
done
cat >"$dir/policy.yaml" <<'YAML'
name: nights
description: Every second night
operation: scavenge
clusters: [demo]
schedule:
  - {cron: "30 1 */2 * *", zone: Europe/Berlin}
windows:
  allow:
    - {name: night, from: "01:00", to: "05:00", zone: Europe/Berlin}
catch_up: skip
expected_duration: 3h
notifications:
  - {on: [failed, waiting], webhook: "http://127.0.0.1:9/hooks/a-secret", format: slack}
YAML
"$bin/verger" policy apply "$dir/policy.yaml" >/dev/null

modules=$root/build/web
mkdir -p "$modules"
cp "$tests/package.json" "$tests/package-lock.json" "$modules/"
npm ci --prefix "$modules" --ignore-scripts --no-audit --no-fund >"$modules/npm.log" 2>&1 ||
  die "npm could not install playwright-core: $(tail -n 3 "$modules/npm.log")"
cp "$tests"/*.mjs "$modules/"
rm -rf "$modules/assets"
cp -r "$root/controller/web/assets" "$modules/assets"
"$bin/verger-db" estimate "$dir/n1/db" -o json >"$dir/estimate.json"
VERGER_DASHBOARD_PORT=$controller_port VERGER_TOKENS=$tokens VERGER_SCREENSHOTS=$dir/screenshots VERGER_ESTIMATE=$dir/estimate.json \
  node "$modules/check.mjs"
