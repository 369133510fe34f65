#!/usr/bin/env bash
# make_files.sh BIN OUT: what packages contain and the programs make themselves.
set -euo pipefail
bin=$1
out=$2
rm -rf "$out"
mkdir -p "$out/completion"

"$bin/verger" man "$out/man1-cli" >/dev/null
"$bin/verger-db" man "$out/man1-cli" >/dev/null
"$bin/vergerd" man "$out/man8-controller"
"$bin/verger-agent" man "$out/man8-agent"
"$bin/verger-redact" man "$out/man8-agent"
gzip -9n "$out"/man*/*

"$bin/verger" completion bash >"$out/completion/verger"
"$bin/verger" completion zsh >"$out/completion/_verger"
"$bin/verger" completion fish >"$out/completion/verger.fish"

"$bin/vergerd" config defaults --data /var/lib/verger >"$out/vergerd.yaml"
# Beside a server of this machine. The token is not needed once the agent has enrolled.
"$bin/verger-agent" config defaults --role agent --node http://127.0.0.1:2113 \
  --db /var/lib/eventstore --state /var/lib/verger-agent \
  --controller-token-file /etc/verger/agents-token >"$out/verger-agent.yaml"
