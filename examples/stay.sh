#!/bin/sh
# A persistent evaluator in plain sh, without jq: one line in, one line out, until the input ends.
#
#   thresher run --stay --at-least 0.3 --arm odd --arm even -- sh examples/stay.sh
#
# Names with quotes or backslashes in them want a real parser of JSON.
while read -r line; do
  pull=${line#*'"pull":'} pull=${pull%%,*}
  arm=${line#*'"arm":"'} arm=${arm%%'"'*}
  seed=${line#*'"seed":'} seed=${seed%%,*}
  case $arm in
    odd) reward=$((seed % 2)) ;;
    even) reward=$((seed % 10 == 0)) ;;
    *)
      echo "{\"pull\": $pull, \"error\": \"there is no arm $arm\"}"
      continue
      ;;
  esac
  echo "{\"pull\": $pull, \"reward\": $reward}"
done
