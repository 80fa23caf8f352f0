#!/bin/sh
# An agent in plain sh and curl: it asks for a pull, evaluates it, tells the reward, until the study is done.
#
#   THRESHER_URL=http://127.0.0.1:8765 THRESHER_TOKEN=… sh examples/agent.sh STUDY COMMAND…
#
# COMMAND is run with the arm's name as its last argument, and THRESHER_SEED and, in a study with cases, THRESHER_CASE
# set; its last line is the reward.
# THRESHER_TOKEN is the token that writes. STUDY is written as in an address: a space is %20, a slash %2F.
set -eu
study=$1
shift
api="$THRESHER_URL/api/studies/$study"
name="$(uname -n)-$$"
turn=0

# One request; a lost answer is asked for again, and the server knows what it has answered before.
call() { # PATH BODY KEY
  curl --silent --show-error --fail-with-body --retry 5 --retry-all-errors --retry-delay 1 \
    --header "Authorization: Bearer $THRESHER_TOKEN" --header 'Content-Type: application/json' \
    --header "Idempotency-Key: $3" --header "Thresher-Agent: $name" --data "$2" "$api/$1"
}

# A field of a flat piece of JSON. Names with quotes or backslashes in them want a real parser, such as jq.
field() { sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p"; }

while :; do
  turn=$((turn + 1))
  asked=$(call ask '{"n": 1}' "$name-$turn")
  pull=$(printf '%s' "$asked" | field pull)
  if [ -z "$pull" ]; then
    [ "$(printf '%s' "$asked" | field wait)" = true ] || break
    sleep 1 # other agents have the last cases: some may be free again
    continue
  fi
  arm=$(printf '%s' "$asked" | field arm)
  seed=$(printf '%s' "$asked" | field seed)
  case=$(printf '%s' "$asked" | field case)
  if reward=$(THRESHER_SEED=$seed THRESHER_CASE=$case "$@" "$arm" | tail -n 1) && [ -n "$reward" ]; then
    call tell "{\"pull\": \"$pull\", \"reward\": $reward}" "$name-$turn" >/dev/null
  else
    call drop "{\"pulls\": [\"$pull\"], \"cause\": \"failed\", \"reason\": \"the command failed\"}" "$name-$turn" >/dev/null
  fi
done
