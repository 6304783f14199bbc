#!/bin/bash
# json.sh: what drivers and tools write with --json is JSON, says where it comes from, and has no key that doc/json.md does
# not list.  Run by make check in the build tree.
. "${srcdir:-.}/tests/expect.sh"
needs_images
page=$srcdir/doc/json.md

# written COMMAND...: with --json, to $tmp/json
written() {
  rm -f "$tmp/json"
  run 0 "$@" --json "$tmp/json"
  valid_json "$tmp/json"
  for key in version commit date host; do contains "$tmp/json" "\"$key\": (\"|null)"; done
  contains "$tmp/json" '"date": "20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-9]{2}:[0-9]{2}:[0-9]{2}Z"'
  contains "$tmp/json" "\"host\": \"$(uname -n)\""
}

documented() {
  local key
  while read -r key; do
    grep -qF "\`$key\`" "$page" || fail "$1 writes $key, which doc/json.md does not list"
  done < <(grep -oE '"[^"]+": ' "$tmp/json" | tr -d '":' | sort -u)
}

written models/lenet --limit 64 --epochs 1 --quiet
contains "$tmp/json" '"mode": "eager"'
documented lenet
written models/mlp --limit 64 --epochs 1 --mode hybrid --quiet
contains "$tmp/json" '"mode": "hybrid"'
documented mlp
written models/hybrid --repeat 5 --output "$tmp" --quiet
documented hybrid
written models/async --repeat 5 --batches 2 --quiet
documented async
written models/parallel --size 32 --repeat 5 --products 2 --quiet
documented parallel
printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' '{"descr": "<f4", "fortran_order": False, "shape": (1, 512), }' >"$tmp/x.npy"
head -c 2048 /dev/zero >>"$tmp/x.npy"
written tools/sl-run "$tmp/my_mlp" --input "$tmp/x.npy" --repeat 3 --quiet
documented sl-run
written tools/bench --quick --runs 1 queue-dot
documented bench
written tools/sl-info
