# Completion for Starling's drivers and tools in bash: options and their values, from what a program says of itself with
# --help.  Installed under each program's name, so that bash-completion loads it when it is needed.

# The options of a program, a line each: NAME, or NAME=VALUE where it takes one.
_starling_options() {
	"$1" --help 2>/dev/null | sed -nE \
		-e 's/^ {2,6}(-.[^,]*, *)?(--[a-z][a-z0-9-]*)(=([^ ]+)| ([A-Z][A-Z|]*))( .*)?$/\2=\4\5/p;t' \
		-e 's/^ {2,6}(-.[^,]*, *)?(--[a-z][a-z0-9-]*)(\[=[^]]*\])?( .*)?$/\2/p'
}

# The value that an option takes, as its help calls it.
_starling_value() {
	_starling_options "$1" | sed -n "s/^$2=//p"
}

# Words for the value of an option.
_starling_values() {
	local program=$1 option=$2 cur=$3
	case $option in
		--device) compgen -W 'auto cpu gpu' -- "$cur" ;;
		--dtype) compgen -W 'fp32 tf32 bf16 fp16' -- "$cur" ;;
		--mode) compgen -W 'eager hybrid step' -- "$cur" ;;
		--plot | --output) compgen -W '- window' -- "$cur"; compgen -f -- "$cur" ;;
		--view) compgen -W 'perfetto picture vite dag starvz all none' -- "$cur" ;;
		--sched) compgen -W 'dmda dmdas eager lws prio' -- "$cur" ;;
		--machine) compgen -W "$("$program" --list 2>/dev/null | cut -d' ' -f1)" -- "$cur"; compgen -f -- "$cur" ;;
		*)
			case $(_starling_value "$program" "$option") in
				*DIR*) compgen -d -- "$cur" ;;
				*FILE* | *MODEL* | *PARAMS*) compgen -f -- "$cur" ;;
			esac
			;;
	esac
}

# Names of experiments, for drivers that have some; else files.
_starling_arguments() {
	local names
	names=$("$1" --help 2>/dev/null | sed -n '/^Experiments/,/^$/s/^  *\([a-z][a-z-]*\) .*/\1/p')
	if [ -n "$names" ]; then compgen -W "$names" -- "$2"; else compgen -f -- "$2"; fi
}

# COMP_WORDS has an option, =, and its value as three words.
_starling() {
	local program=$1 cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} option=
	local IFS=$' \t\n'
	if [ "$cur" = = ]; then
		option=$prev cur=
	elif [ "$prev" = = ]; then
		option=${COMP_WORDS[COMP_CWORD - 2]}
	elif [[ $prev == --* && -n $(_starling_value "$program" "$prev") ]]; then
		option=$prev
	fi
	if [ -n "$option" ]; then
		mapfile -t COMPREPLY < <(_starling_values "$program" "$option" "$cur")
	elif [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_starling_options "$program" | sed 's/=.*/=/')" -- "$cur")
		[[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace 2>/dev/null || :
	else
		mapfile -t COMPREPLY < <(_starling_arguments "$program" "$cur")
	fi
}

complete -o filenames -F _starling "${BASH_SOURCE[0]##*/}"
