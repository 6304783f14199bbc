#!/bin/bash
# cgroup.sh: memory's end in control groups of this machine, below the script's own: a limit, that of a group around it, a
# limit with swap (first version), memory.high (second).  Run by make check-long in the build tree, for it changes the machine.
. "${srcdir:-.}/tests/expect.sh"
limit=600 # MiB
groups=() # made here, the inner ones last
enabled=''

# In the reverse order, once what ran in them has ended.
no_groups() {
  local i
  for ((i = ${#groups[@]} - 1; i >= 0; i--)); do within 10 rmdir "${groups[$i]}" 2>/dev/null || true; done
  groups=()
}
at_end() {
  no_groups
  [ -z "$enabled" ] || echo -memory >"$enabled" || true
}

# group FOLDER: a new group
group() {
  mkdir "$1" 2>/dev/null || return 1
  groups+=("$1")
}

# The folder of the group that this script is in; in a container its path may not be there.
own() {
  local root=$1 path
  path=$(sed -n "s/^[0-9]*:$2://p" /proc/self/cgroup | sed -n 1p)
  [ -n "$path" ] || return 1
  [ -d "$root$path" ] || path=/
  echo "$root${path%/}"
}

# put FOLDER FILE BYTES
put() { [ -e "$1/$2" ] && echo "$3" 2>/dev/null >"$1/$2"; }

# inside WHOSE FOLDER [TEST...]: tests/cgroup in this group
inside() {
  local whose=$1 folder=$2
  shift 2
  # shellcheck disable=SC2016
  CGROUP_WHOSE=$whose run 0 timeout 300 bash -c 'echo $$ >"$1/cgroup.procs" && shift && exec tests/cgroup "$@"' - "$folder" "$@"
  sed -n '/giants:/p' "$tmp/out"
  no_groups
}

bytes=$((limit << 20))
tried=0
# Whether memory can be limited there
if base=$(own /sys/fs/cgroup/memory memory) && group "$base/starling-$$"; then
  here=$base/starling-$$
  if put "$here" memory.limit_in_bytes $bytes; then
    tried=1
    echo "first version"
    inside 'control group)' "$here"
    group "$here" && group "$here/inner" && put "$here" memory.limit_in_bytes $bytes
    inside 'control group)' "$here/inner" 'large tensors'
    group "$here"
    if put "$here" memory.limit_in_bytes $((2 * bytes)) && put "$here" memory.memsw.limit_in_bytes $((2 * bytes)) &&
      put "$here" memory.limit_in_bytes $bytes; then
      inside '(control group' "$here" 'large tensors'
    else
      echo "SKIP: limits with swap: the system counts none"
      no_groups
    fi
  fi
  no_groups
fi

for root in /sys/fs/cgroup /sys/fs/cgroup/unified; do
  [ -e $root/cgroup.controllers ] && base=$(own $root '') || continue
  grep -qw memory "$base/cgroup.controllers" || continue
  # A group that processes are in has no groups with memory below it, unless it is the root.
  if ! grep -qw memory "$base/cgroup.subtree_control"; then
    echo +memory 2>/dev/null >"$base/cgroup.subtree_control" || continue
    enabled=$base/cgroup.subtree_control
  fi
  group "$base/starling-$$" || continue
  here=$base/starling-$$
  put "$here" memory.max $bytes || { no_groups; continue; }
  tried=1
  echo "second version"
  put "$here" memory.swap.max 0 || true
  inside 'control group)' "$here"
  group "$here" && put "$here" memory.high $bytes && { put "$here" memory.swap.max 0 || true; }
  inside 'control group, memory.high)' "$here"
  break
done
[ $tried = 1 ] || skip "no control group with a limit of memory can be made below this one"
