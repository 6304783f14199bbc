#!/bin/bash
# Numbers on the command lines of drivers: of each option that takes one, what is no number is refused by name, with status 2
# and before anything runs; 0, negative numbers and the largest are refused or taken, and the log lists which.
# Run by make check, in the build folder; srcdir comes from there.
. "${srcdir:-.}/tests/expect.sh"

# The options of a driver that take a number, in the order of its help.
numbers() {
  "models/$1" --help | sed -nE 's/^ +(-., +)?--([a-z-]+)=(N|X|P|RATE)(\[.*\])? .*/\2/p'
}

# Whether an option's value is refused; --help after it ends the program before it runs.
refused() {
  local status=0
  "models/$1" "--$2=$3" --help >"$tmp/out" 2>"$tmp/err" || status=$?
  case $status in
    0) return 1 ;;
    2) grep -q -- "--$2" "$tmp/err" || fail "models/$1 --$2='$3': $(head -n 1 "$tmp/err")" ;;
    *) fail "models/$1 --$2='$3' ended with $status" ;;
  esac
}

tried=0
for driver in async gpt hybrid lenet lstm mlp parallel resnet18 zoo; do
  malformed=("" nan " 1" "+1" 0x1 1e 1e999)
  for option in $(numbers $driver); do
    tried=$((tried + 1))
    for value in 1x "${malformed[@]}"; do
      refused $driver "$option" "$value" || fail "models/$driver --$option='$value' was taken"
    done
    malformed=() # the others are read by the same functions
    line=
    for value in 0 -1 99999999999999999999; do
      if refused $driver "$option" "$value"; then line+="  $value refused"; else line+="  $value taken"; fi
    done
    echo "$driver --$option:$line"
    [[ $line != *"-1 taken"* ]] || fail "models/$driver --$option=-1 was taken"
  done
done
[ "$tried" -ge 50 ] || fail "only $tried options were found"

echo "--- a learning rate of 0 changes nothing, another one does"
head -c 4000 "$srcdir/README.md" >"$tmp/text"
for driver in "gpt --heads 1 --context 8" "lstm --hidden 8 --steps 8"; do
  sums=()
  for options in "--iterations 0" "--iterations 3 --lr 0" "--iterations 3 --lr 0.001"; do
    # shellcheck disable=SC2086 # words
    run 0 models/$driver $options --text "$tmp/text" --layers 1 --width 8 --batch-size 2 --generate 0 --quiet --save "$tmp/p.safetensors"
    sums+=("$(cksum <"$tmp/p.safetensors")")
  done
  [ "${sums[0]}" = "${sums[1]}" ] || fail "models/$driver --lr 0 changes parameters"
  [ "${sums[0]}" != "${sums[2]}" ] || fail "models/$driver --lr 0.001 changes nothing"
done

echo "--- a variable that is not known is said once, and which is meant"
run 0 env SL_RUNAHEAD_TASK=3 SL_ELSEWHERE_AT_ALL=1 models/hybrid --quiet --repeat 1
grep -q '^starling: there is no environment variable SL_RUNAHEAD_TASK; SL_RUNAHEAD_TASKS is the nearest' "$tmp/err" || fail "SL_RUNAHEAD_TASK"
[ "$(grep -c 'no environment variable SL_ELSEWHERE_AT_ALL (' "$tmp/err")" = 1 ] || fail "SL_ELSEWHERE_AT_ALL"
run 0 models/hybrid --quiet --repeat 1
! grep -q 'environment variable' "$tmp/err" || fail "variables that are known are said to be unknown"
