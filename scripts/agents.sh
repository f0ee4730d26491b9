#!/usr/bin/env bash
# Two agents, each a shell in a worktree of its own, and a lead in the main one: what each says, and is told. One is
# guarded against the other, then killed, and its work taken over. The README has what this prints, which
# tests/agents.rs holds it to; `CLAIM_README=write cargo test --test agents` writes it there.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -z "${CLAIM_BIN:-}" ]; then
  cargo build --release --locked --quiet
  CLAIM_BIN=${CARGO_TARGET_DIR:-$PWD/target}/release
fi

scratch=$(cd "$(mktemp -d)" && pwd -P)
declare -A pid=() to=() from=()
trap 'kill -9 "${pid[@]}" 2>/dev/null || true; rm -rf "$scratch"' EXIT

# start WHO FOLDER: a shell in that folder that does what it is told, with nothing of the caller's environment.
start() {
  local who=$1 folder=$2 pipe
  mkdir -p "$scratch/home/$who"
  for pipe in to from; do
    rm -f "$scratch/home/$who.$pipe"
    mkfifo "$scratch/home/$who.$pipe"
  done
  local -n to_who="to[$who]" from_who="from[$who]"
  exec {to_who}<>"$scratch/home/$who.to" {from_who}<>"$scratch/home/$who.from"
  (
    cd "$scratch/$folder"
    exec env -i PATH="$CLAIM_BIN:$PATH" HOME="$scratch/home/$who" CLAIM_OWNER="$who" CLAIM_NO_SYNC=1 \
      ${CLAIM_PATIENCE:+CLAIM_PATIENCE="$CLAIM_PATIENCE"} GIT_CONFIG_NOSYSTEM=1 \
      GIT_AUTHOR_NAME="$who" GIT_AUTHOR_EMAIL="$who@example.org" \
      GIT_COMMITTER_NAME="$who" GIT_COMMITTER_EMAIL="$who@example.org" \
      bash --norc --noprofile <"$scratch/home/$who.to" >"$scratch/home/$who.from" 2>&1
  ) &
  pid[$who]=$!
  disown
}

# says WHO COMMAND: shows the command and what comes of it.
says() {
  local who=$1 command=$2 line mark="--- end of it ---"
  printf '%s$ %s\n' "$who" "$command"
  printf '{ %s\n} </dev/null; echo "%s"\n' "$command" "$mark" >&"${to[$who]}"
  while IFS= read -r -t 120 -u "${from[$who]}" line && [ "$line" != "$mark" ]; do
    printf '%s\n' "$line"
  done
  [ "$line" = "$mark" ] || { echo "$who does not answer" >&2; exit 1; }
}

note() { printf '# %s\n' "$*"; }

mkdir "$scratch/app"
start lead app
note "the lead sets the repository up, and says what there is to do"
says lead 'git init -q -b main && mkdir src && echo "// parser" >src/parser.rs'
says lead 'claim setup claude-code'
says lead 'git add . && git commit -qm "the agents know of claims"'
says lead 'claim setup git'
says lead 'git worktree add -q ../alice && git worktree add -q ../bob'
says lead 'claim add parser --title "errors with line numbers" --path src/parser.rs'

note "alice, an agent in her own worktree, begins: this is what Claude Code's hook tells her"
start alice alice
start bob bob
says alice 'claim prime'
says alice 'claim next --lease 1h --while-pid $$ --export >~/claim && . ~/claim'
says alice 'echo "// lines" >>src/parser.rs && git commit -qam "lines are counted"'
says alice 'claim renew --lease 1h --progress "{\"done\": \"lines are counted\"}"'

note "bob has nothing to take, and goes for the file all the same: first his agent's hook stops him, then git's"
says bob 'claim next || echo "exit code $?"'
says bob 'echo "{\"hook_event_name\": \"PreToolUse\", \"tool_name\": \"Write\", \"tool_input\": {\"file_path\": \"$PWD/src/parser.rs\"}}" >~/call'
says bob 'claim guard hook claude-code <~/call'
says bob 'echo "// bob was here" >src/parser.rs; git commit -qam "faster" || echo "exit code $?"'
says bob 'git checkout -q src/parser.rs && claim why parser'

note "alice is killed"
kill -9 "${pid[alice]}"
note "bob takes over: the next generation, with what she left"
says bob 'claim next --lease 1h --while-pid $$ --export >~/claim && . ~/claim'
says bob 'claim show parser'
says bob 'claim guard hook claude-code <~/call && git merge -q alice && echo "// columns" >>src/parser.rs'
says bob 'git commit -qam "errors with line numbers"'

note "alice is started again, with what she had, and knows nothing of it"
start alice alice
says alice '. ~/claim && echo "// the rest" >>src/parser.rs'
says alice 'git commit -qam "the rest" || echo "exit code $?"'
says alice 'claim complete --result "\"by alice\"" || echo "exit code $?"'
says alice 'claim prime | head -n 1'

note "there is one result, recorded once"
says bob 'claim complete --result "\"by bob\""'
says bob 'claim complete --result "\"by bob\""'
says lead 'claim result parser'
says lead 'claim log parser'
