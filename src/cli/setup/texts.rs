//! What is written.

/// What a Cursor rule begins with.
pub(super) const CURSOR_HEAD: &str = "---\ndescription: Claims: who works on what\nalwaysApply: true\n---\n";

/// For agents that read Markdown.
pub(super) fn agents(target: &str) -> String {
    format!(
        "\
<!-- >>> claim >>> made by `claim setup {target}`; `claim setup {target} --remove` takes it out -->
## Claims

Several agents work here at once, each in its own git worktree. `claim` says who has what.

- First run `claim prime` and do as it says; again after a long pause.
- Before you write files, take them: `eval \"$(claim acquire ID --path FILE --export)\"`. `claim guard path FILE` says
  whether another has them.
- `claim renew` before two thirds of the lease are over, `claim check` before a commit or a push, `claim complete` in the
  end, or `claim release`.
- Exit codes: 1 somebody else's, do other work; 3 your claim is lost, stop and write nothing more; 4 refused, do what the
  hint says.
- Never edit or remove anything in `.claims`.
<!-- <<< claim <<< -->"
    )
}

/// The hooks of git. A guard that is missing or does not know what to say stops nothing.
pub(super) const HOOKS: [(&str, &str); 2] = [("pre-commit", PRE_COMMIT), ("pre-push", PRE_PUSH)];

const PRE_COMMIT: &str = r#"# >>> claim >>> made by `claim setup git`; `claim setup git --remove` takes it out
if command -v claim >/dev/null 2>&1; then
  claim guard git pre-commit "$@" </dev/null || [ $? -ne 1 ] || exit 1
fi
# <<< claim <<<"#;

/// What git says on standard input is for all that runs in the hook.
const PRE_PUSH: &str = r#"# >>> claim >>> made by `claim setup git`; `claim setup git --remove` takes it out
if command -v claim >/dev/null 2>&1; then
  claim_refs=$(cat)
  printf '%s\n' "$claim_refs" | claim guard git pre-push "$@" || [ $? -ne 1 ] || exit 1
  if [ -n "$claim_refs" ]; then
    exec <<CLAIM_REFS
$claim_refs
CLAIM_REFS
  fi
fi
# <<< claim <<<"#;

/// For GitHub Actions.
pub(super) const WORKFLOW: &str = r#"# >>> claim >>> made by `claim setup github-actions`; `claim setup github-actions --remove` takes it out
name: claim
on: [push, pull_request]
permissions: {}
jobs:
  one-winner:
    runs-on: ubuntu-latest
    steps:
      - name: Install claim
        run: cargo install claimdir --locked
      - name: Of 20 at once exactly one wins
        shell: bash
        run: |
          export CLAIMS_DIR="$(mktemp -d)/.claims"
          pids=()
          for n in $(seq 20); do
            claim acquire race --owner "job-$n" --lease 10m --quiet &
            pids+=($!)
          done
          won=0 lost=0
          for pid in "${pids[@]}"; do
            code=0
            wait "$pid" || code=$?
            case $code in
              0) won=$((won + 1)) ;;
              1) lost=$((lost + 1)) ;;
            esac
          done
          echo "won: $won, lost: $lost"
          [ "$won" -eq 1 ] && [ "$lost" -eq 19 ]
# <<< claim <<<
"#;
