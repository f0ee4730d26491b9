#!/usr/bin/env bash
# Races real processes for nodes and counts the winners.
#
#   scripts/race.sh [--pauses] [ROUNDS] [PROCESSES]      20 and 20 unless said
#
# Each round starts PROCESSES processes behind a barrier. Exactly one side must win, and the record at the end
# must say the same. --pauses uses a build with random pauses of up to 200 µs between the file-system calls, and
# then also proves that this harness can see: it must catch each of six broken protocols within 50 rounds.
# Exit code 1 on any violation, and for a broken protocol that was not caught.
set -euo pipefail
cd "$(dirname "$0")/.."

pauses=
if [[ ${1-} == --pauses ]]; then pauses=1 && shift; fi
rounds=${1:-20} processes=${2:-20}
for number in "$rounds" "$processes"; do
    [[ $number =~ ^[1-9][0-9]{0,5}$ ]] || { echo "usage: scripts/race.sh [--pauses] [ROUNDS] [PROCESSES]" >&2; exit 2; }
done
((processes >= 4)) || { echo "race.sh: a race needs 4 processes or more" >&2; exit 2; }
readonly MUTANT_ROUNDS=50
readonly MUTANTS=(unlink-create aside-create aside-verify-drop aside-verify-link-back over-reread renew-by-rename)

target=${CARGO_TARGET_DIR:-target}
if [[ $pauses ]]; then
    # Where the pauses stand the optimizer does not matter, and this builds in a third of the time.
    target=$target/pauses
    CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_OPT_LEVEL=1 \
        cargo build --quiet --release --bin claim --features testing --target-dir "$target"
else
    cargo build --quiet --release --bin claim
fi
claim=$(realpath "$target/release/claim")

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
mkfifo barrier ready never
exec 7<>never 8<>ready
for name in $(compgen -e | grep '^CLAIM' || true); do unset "$name"; done
export CLAIM_NO_SYNC=1

# --- One round ------------------------------------------------------------------------------------------------

pids=() codes=()

# racer ARGS…: a process that waits at the barrier: as a shell about to become `claim ARGS`, or in the build with
# pauses as `claim` itself just before its first file-system call, so that starting up does not spread them out.
racer() {
    local number=${#pids[@]}
    (
        if [[ $pauses ]]; then
            export CLAIM_TEST_BARRIER=$scratch
        else
            echo >&8
            exec 9<barrier
        fi
        exec "$claim" "$@" >"out.$number" 2>"err.$number" 7<&- 8>&- 9<&-
    ) &
    pids+=($!)
}

# Opens the barrier once everybody stands at it, and collects the exit codes.
race() {
    local ignored pid code
    read -r -t 60 -N "${#pids[@]}" -u 8 ignored || { echo "race.sh: not everybody came to the start" >&2; exit 1; }
    exec 9>barrier
    codes=()
    for pid in "${pids[@]}"; do
        code=0
        wait "$pid" || code=$?
        codes+=("$code")
    done
    exec 9>&-
    pids=()
}

# at MICROSECONDS ARGS…: a process in the background that becomes `claim ARGS` at that time.
at() {
    (
        when=$1
        shift
        while now=${EPOCHREALTIME/[^0-9]/} && ((now < when)); do
            if ((when - now > 4000)); then read -r -t 0.002 -u 7 now || true; fi
        done
        exec "$claim" "$@" >out.holder 2>err.holder
    ) &
}

# seed ID LEASE: takes a node for a holder; sets `token`, `version`, `generation` and `expires`. On a machine so
# busy that the lease is over before it is told, once more.
seed() {
    local answer
    until answer=$("$claim" acquire "$1" --owner holder --lease "$2" --json 2>/dev/null); do :; done
    [[ $answer =~ \"generation\":([0-9]+),\"version\":([0-9]+),.*\"token\":\"([0-9a-f]+)\",\"expires_at\":\"([^\"]+) ]]
    generation=${BASH_REMATCH[1]} version=${BASH_REMATCH[2]} token=${BASH_REMATCH[3]} expires=${BASH_REMATCH[4]}
}

# violation TEXT: one more round that must not be.
violation() {
    violations=$((violations + 1))
    printf '  %s, round %s: %s\n' "$scenario" "$round" "$1" >&2
}

# generation_of ID: what the record says, as it lies on the disk.
generation_of() {
    local record
    record=$(<"$CLAIMS_DIR/$1.claim")
    [[ $record =~ '"generation": '([0-9]+) ]] && echo "${BASH_REMATCH[1]}"
}

# expect ID GENERATION TOKEN: the record at the end is this claim's.
expect() {
    local found
    found=$(generation_of "$1") || found=none
    [[ $found == "$2" ]] || violation "generation $found, not $2"
    "$claim" check "$1" --token "$3" >/dev/null 2>&1 || violation "the winner's token is not accepted"
}

# token_of NUMBER: what that racer won.
token_of() {
    local line
    line=$(<"out.$1")
    [[ $line =~ token=([0-9a-f]+) ]] && echo "${BASH_REMATCH[1]}"
}

# count FROM TO LOST…: winners among the racers FROM to TO-1, whose losers must exit with one of LOST.
# Sets `won`, and `winner` to the last one's number.
count() {
    local from=$1 to=$2 number
    shift 2
    won=0
    for ((number = from; number < to; number++)); do
        case " $* " in
        *" ${codes[number]} "*) ;;
        *)
            if ((codes[number] == 0)); then
                won=$((won + 1)) winner=$number
            else
                violation "exit code ${codes[number]}: $(head -c 300 "err.$number" "out.$number")"
            fi
            ;;
        esac
    done
}

# tally WINNERS: exactly one side may win.
tally() {
    ((most < $1)) && most=$1
    ((least > $1)) && least=$1
    (($1 == 1)) || violation "$1 winners"
}

# --- The scenarios: prepare_X once, then round_X a round ---------------------------------------------------------

round_fresh() {
    local id=n$round
    for ((i = 0; i < processes; i++)); do racer acquire "$id" --owner "p$i"; done
    race
    count 0 "$processes" 1
    tally "$won"
    ((won == 1)) && expect "$id" 1 "$(token_of "$winner")"
}

round_synced() { CLAIM_NO_SYNC=0 round_fresh; }

prepare_expired() {
    local i
    for ((i = 1; i <= $1; i++)); do seed "n$i" 50ms; done
    sleep 0.06
}

round_expired() {
    local id=n$round
    generation=$(generation_of "$id")
    for ((i = 0; i < processes; i++)); do racer acquire "$id" --owner "p$i"; done
    race
    count 0 "$processes" 1
    tally "$won"
    ((won == 1)) && expect "$id" $((generation + 1)) "$(token_of "$winner")"
}

# The holder acts from 4 ms before its lease's end to 1 ms after it, and everybody else waits for that end.
straddle() {
    local id=$1 holder=$2 i
    shift 2
    seed "$id" 100ms
    local ends
    ends=$(date -d "$expires" +%s%6N)
    for ((i = 1; i < processes; i++)); do racer acquire "$id" --owner "p$i" --wait=200ms; done
    at $((ends - 4000 + RANDOM % 5000)) "$holder" "$id" --token "$token" "$@"
    local pid=$!
    race
    acted=0
    wait "$pid" || acted=$?
    ((acted == 0)) && held=$((held + 1))
    ((acted == 0 || acted == 3)) || violation "$holder: exit code $acted: $(head -c 300 err.holder)"
    count 0 $((processes - 1)) 1 5
}

# A renewal for 30 s that succeeds leaves nothing to take; once taken, no renewal succeeds.
round_renewal() {
    local id=n$round
    straddle "$id" renew --lease 30s
    tally $((won + (acted == 0)))
    if ((won == 1)); then
        expect "$id" $((generation + 1)) "$(token_of "$winner")"
    else
        expect "$id" "$generation" "$token"
    fi
}

# Whether the holder's release comes in time or is refused, exactly one other gets the node and keeps it.
round_release() {
    local id=n$round
    straddle "$id" release
    tally "$won"
    ((won == 1)) && expect "$id" $((generation + 1)) "$(token_of "$winner")"
}

# Renewals against takeovers by force from the version that was seen. Each makes the other impossible; any number
# of renewals may follow one another, and they are one side.
round_forced() {
    local id=n$round renewers=$((processes / 4)) renewed i
    seed "$id" 30s
    for ((i = 0; i < processes; i++)); do
        if ((i < renewers)); then
            CLAIM_TEST_LATE=3000 racer renew "$id" --token "$token" --lease 30s # a renewal's way is shorter
        else
            racer acquire "$id" --owner "p$i" --force race --seen "$version"
        fi
    done
    race
    count 0 "$renewers" 3 && renewed=$won
    count "$renewers" "$processes" 3
    ((renewed > 0)) && held=$((held + 1))
    tally $((won + (renewed > 0)))
    if ((won == 1)); then
        expect "$id" $((generation + 1)) "$(token_of "$winner")"
    else
        expect "$id" "$generation" "$token"
    fi
}

# A maker killed between making and publishing leaves an empty file.
round_dead_maker() {
    local id=n$round
    if [[ $pauses ]]; then
        CLAIM_TEST_KILL=made "$claim" acquire "$id" --owner maker >/dev/null 2>&1 & # in the background: the shell says nothing
        wait $! 2>/dev/null || true
    else
        : >"$CLAIMS_DIR/$id.claim"
    fi
    [[ -e $CLAIMS_DIR/$id.claim && ! -s $CLAIMS_DIR/$id.claim ]] || violation "the maker left no empty file"
    round_fresh
}

# --- The table --------------------------------------------------------------------------------------------------

failed=0 violations=0 least=0 most=0 held=-

# begin SCENARIO [0]: a claim directory of its own; with 0, the rounds are counted in which the holder acted in time.
begin() {
    scenario=$1 violations=0 least=$processes most=0 held=${2:--}
    rm -rf claims
    export CLAIMS_DIR=$scratch/claims
    "$claim" init --quiet
}

# run SCENARIO TITLE [0]
run() {
    local started=${EPOCHREALTIME/[^0-9]/} spent
    begin "$1" "${3-}"
    if declare -F "prepare_$1" >/dev/null; then "prepare_$1" "$rounds"; fi
    for ((round = 1; round <= rounds; round++)); do "round_$1" || true; done
    spent=$(((${EPOCHREALTIME/[^0-9]/} - started) / 100000))
    printf '%-42s %6d %5d %5d %10d %6s %7d.%d\n' \
        "$2" "$rounds" "$least" "$most" "$violations" "$held" $((spent / 10)) $((spent % 10))
    ((violations == 0)) || failed=1
}

# hunt MUTANT SCENARIO: in which round is the broken protocol caught?
hunt() {
    begin "$2" 0
    if declare -F "prepare_$2" >/dev/null; then "prepare_$2" "$MUTANT_ROUNDS"; fi
    export CLAIM_TEST_MUTANT=$1
    for ((round = 1; round <= MUTANT_ROUNDS && violations == 0; round++)); do "round_$2" 2>/dev/null || true; done
    unset CLAIM_TEST_MUTANT
    if ((violations)); then
        printf '%-42s caught in round %d\n' "$1" $((round - 1))
    else
        printf '%-42s NOT CAUGHT in %d rounds\n' "$1" "$MUTANT_ROUNDS"
        failed=1
    fi
}

main() {
    if [[ $pauses ]]; then export CLAIM_TEST_PAUSES=1; fi
    echo "$processes processes a round${pauses:+, random pauses of up to 200 µs between calls}"
    printf '%-42s %6s %5s %5s %10s %6s %9s\n' "winners a round of" rounds least most violations holder seconds
    run fresh "a fresh node"
    run synced "a fresh node, synced"
    run expired "an expired claim"
    run renewal "an expired claim, its holder renewing" 0
    run forced "a takeover by force, its holder renewing" 0
    run release "a release against a takeover" 0
    run dead_maker "a fresh node whose maker was killed"
    if [[ $pauses ]]; then
        echo
        for mutant in "${MUTANTS[@]}"; do
            case $mutant in
            renew-by-rename) hunt "$mutant" forced ;;
            *) hunt "$mutant" expired ;;
            esac
        done
    fi
}

main
exit "$failed"
