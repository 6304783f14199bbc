#!/bin/bash
# completion.sh: completion in bash against what the programs say of themselves.  Run by make check in the build tree,
# which sets srcdir and PROGRAMS.
. "${srcdir:-.}/tests/expect.sh"

# shellcheck source=/dev/null
source "$srcdir/tools/completion.bash"
complete -p completion.bash >/dev/null || fail "the script does not register the name it is installed under"

# answers LINE: what is offered at the end of LINE, words divided as readline does
answers() {
  local words
  words=$(sed -E 's/=/ = /g; s/ = $/ = /' <<<"$1")
  read -ra COMP_WORDS <<<"$words"
  [[ $1 != *' ' && $1 != *= ]] || COMP_WORDS+=('')
  [[ $1 != *= ]] || unset 'COMP_WORDS[-1]'
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  COMPREPLY=()
  _starling "${COMP_WORDS[0]}" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
  printf '%s\n' ${COMPREPLY[@]+"${COMPREPLY[@]}"} | sort
}

# offers LINE WORD...: exactly these
offers() {
  local line=$1 got
  shift
  got=$(answers "$line" | paste -sd' ')
  if [ "$got" = "$(printf '%s\n' "$@" | sort | paste -sd' ')" ]; then echo "ok: $line"; else fail "$line: offers $got"; fi
}

echo "--- all options of all programs"
for program in $PROGRAMS; do
  [ -x "$program" ] || program=$srcdir/$program
  answers "$program --" >"$tmp/got"
  if usage=$("$program" --usage 2>/dev/null); then # argp's other list of them
    tr -d '\n' <<<"$usage" | grep -oE '\[--[a-z0-9-]+=?' | tr -d '[' | sort >"$tmp/want"
  else # a script
    "$program" --help | grep -oE '^ +(-[a-z], )?--[a-z0-9-]+' | grep -oE -- '--.*' | sort >"$tmp/want"
    sed -i 's/=$//' "$tmp/got"
  fi
  if cmp -s "$tmp/want" "$tmp/got"; then
    echo "ok: $program: $(wc -l <"$tmp/got") options"
  else
    fail "$program: $(diff "$tmp/want" "$tmp/got")"
  fi
done
offers "$srcdir/tools/sl-simulate --" --machine= --sched= --teams= --gpus= --memory= --nodes= --sums= --models= --report= --build-dir= --list --help --version

echo "--- values and arguments"
offers 'models/mlp --ba' --batch-size=
offers 'models/mlp --mode=' eager hybrid step
offers 'models/mlp --mode h' hybrid
offers 'models/mlp --dtype=' fp32 tf32 bf16 fp16
offers 'models/async --dtype=' fp32 tf32 bf16 fp16
offers 'models/mlp --device=a' auto
offers 'models/mlp --epochs='
offers 'models/hybrid sym' symbolic symbols
offers "$srcdir/tools/sl-simulate --machine=h100" h100 h100x2 h100x8
mkdir "$tmp/folder"
touch "$tmp/file.json"
offers "tools/sl-plot $tmp/f" "$tmp/file.json" "$tmp/folder"
offers "models/mlp --json=$tmp/f" "$tmp/file.json" "$tmp/folder"
offers "models/mlp --data=$tmp/f" "$tmp/folder"
