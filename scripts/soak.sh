#!/bin/sh
# Histories for as long as you like: 20 processes on a few nodes, killed and frozen at random, every answer checked.
#
#     scripts/soak.sh MINUTES
#
# Rounds of half a minute, unsynced and synced in turn, on the release profile. Prints each round and what all of
# them held; exits 1 at the first violation, whose logs are kept. CLAIM_HISTORY_WORKERS and CLAIM_HISTORY_SEED say
# how many and which; TMPDIR says on which disk.
set -eu

minutes=${1:?usage: scripts/soak.sh MINUTES}
case $minutes in '' | *[!0-9]*) echo "not a number of minutes: $minutes" >&2 && exit 2 ;; esac

cd "$(dirname "$0")/.."
# The program is built once: what changes meanwhile is not what is tested.
program=$(cargo test --quiet --release --test histories --no-run --message-format=json |
    sed -n 's|.*"executable":"\([^"]*/deps/histories-[^"]*\)".*|\1|p' | tail -n 1)
rounds=$(mktemp)
trap 'rm -f "$rounds"' EXIT

total() {
    awk '{ for (i = 2; i <= NF; i++) {
               split($i, figure, "=")
               if (figure[1] == "slowest-us") { if (figure[2] > slowest[$1]) slowest[$1] = figure[2] }
               else sum[figure[1]] += figure[2]
           } }
         END { printf "%d rounds:", NR
               for (name in sum) printf " %s=%d", name, sum[name]
               for (mode in slowest) printf " slowest-us-%s%d", mode, slowest[mode]
               print "" }' "$rounds" | sed 's/:\([0-9]\)/=\1/g'
}

round=0
while [ $round -lt $((minutes * 2)) ]; do
    output=$(CLAIM_HISTORY_SECONDS=30 CLAIM_HISTORY_SYNC=$((round % 2)) \
        "$program" --exact processes_on_a_directory --nocapture 2>&1) || {
        printf '%s\n' "$output"
        total
        exit 1
    }
    printf '%s\n' "$output" | grep -E '^(un)?synced: ' | tee -a "$rounds"
    round=$((round + 1))
done
total
