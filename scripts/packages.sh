# shellcheck shell=bash disable=SC2154
# Functions that install Debian packages while other programs may do the same. scripts/setup reads this file.
# scripts/setup has the variables root, limit, again and packages, and the functions fail and find_missing.

attempts=4
guard=$root/usr/sbin/policy-rc.d
guard_mark="made by soniq's scripts/setup"
become=()
waited=0
told=0
suspect=no

# become_root sets become to what makes a command run as root. It fails when there is no way to.
become_root() {
	[ "$(id -u)" != 0 ] || return 0
	command -v sudo >/dev/null || return 1
	become=(sudo)
	sudo -n true 2>/dev/null && return
	[ -t 0 ] && sudo -v
}

# as_root COMMAND... runs it as root. It asks nothing, speaks English, and does not inherit this set-up's lock (9).
as_root() {
	"${become[@]}" env LC_ALL=C DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 "$@" </dev/null 9>&-
}

# run_apt ARGUMENT... runs apt-get and adds its output to the log. apt waits 10 s for dpkg's lock, in case another took it just now.
run_apt() {
	as_root apt-get -q -y -o DPkg::Lock::Timeout=10 -o Acquire::Retries=1 -o Acquire::http::Timeout=30 -o Acquire::https::Timeout=30 \
		-o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold "$@" >>"$log" 2>&1
}

# describe PID sets other to the name and the number of a process, as far as they are visible.
describe() {
	local name
	other="another program"
	read -r name 2>/dev/null <"$root/proc/$1/comm" || return 0
	other="$name (process $1)"
}

# lock_held reports whether a process holds one of the package manager's locks. These are fcntl locks, which flock does not see.
lock_held() {
	local file device inode pid lock
	for file in dpkg/lock-frontend dpkg/lock apt/lists/lock ../cache/apt/archives/lock; do
		file=$root/var/lib/$file
		read -r device inode < <(stat -c '%d %i' "$file" 2>/dev/null) || continue
		printf -v device '%02x:%02x' $((device >> 8 & 0xfff)) $((device & 0xff | device >> 12 & 0xfff00))
		while read -r pid lock; do
			[ "$lock" = "$device:$inode" ] || has_open "$pid" "$file" || continue
			describe "$pid"
			return
		done < <(awk -v end=":$inode\$" '$2 != "->" && $2 != "FLOCK" && $6 ~ end { print $5, $6 }' "$root/proc/locks" 2>/dev/null)
	done
	return 1
}

# has_open PID FILE reports whether the process has the file open. In a container the devices of locks and of files may differ.
has_open() {
	local fd
	for fd in "$root/proc/$1/fd"/*; do
		[ ! "$fd" -ef "$2" ] || return 0
	done
	return 1
}

# half_installed reports whether dpkg has work that was begun and is not finished.
half_installed() {
	[ -n "$(dpkg --audit 2>/dev/null || true)" ] || compgen -G "$root/var/lib/dpkg/updates/[0-9]*" >/dev/null
}

# is_ancestor PID reports whether this script was started by that process. cloud-init may run it: waiting for that would not end.
is_ancestor() {
	local pid=$$ name value
	while [ "${pid:-0}" -gt 1 ]; do
		[ "$pid" != "$1" ] || return 0
		while read -r name value && [ "$name" != PPid: ]; do :; done 2>/dev/null <"$root/proc/$pid/status" || return 1
		pid=$value
	done
	return 1
}

# installer_runs reports whether another program that installs packages runs on this system. It may hold no lock for a moment.
installer_runs() {
	local dir name
	for dir in "$root"/proc/[0-9]*; do
		read -r name 2>/dev/null <"$dir/comm" || continue
		case $name in apt | apt-get | aptitude | dpkg | apt.systemd.dai | unattended-upgr | cloud-init) ;; *) continue ;; esac
		# this one only waits for the system to shut down
		! grep -qs -e --wait-for-signal "$dir/cmdline" || continue
		# this one is of a container
		[ ! -e "$dir/root/." ] || [ "$dir/root/." -ef "$root/." ] || continue
		! is_ancestor "${dir##*/}" || continue
		# this one has ended
		grep -qsa . "$dir/cmdline" || continue
		describe "${dir##*/}"
		return
	done
	return 1
}

# system_busy reports whether packages are being installed by another program.
system_busy() {
	lock_held || { { [ $suspect = yes ] || half_installed; } && installer_runs; }
}

# setup_busy takes the lock on descriptor 9, and reports whether another set-up has it.
setup_busy() {
	other="another set-up of soniq"
	! flock -n 9
}

# wait_while CONDITION waits while the function succeeds. It says for whom, at first and every 30 seconds.
wait_while() {
	local since=0
	while "$1"; do
		[ $waited -lt "$limit" ] || give_up
		if [ $since = 0 ]; then
			echo "waiting for $other to finish installing packages, at most $((limit - waited)) s" >&2
		elif [ $((since % 30)) = 0 ]; then
			echo "still waiting for $other to finish installing packages, for $since s now" >&2
		fi
		sleep 1
		since=$((since + 1)) waited=$((waited + 1))
	done
}

# give_up ends the set-up because another program did not finish.
give_up() {
	fail "$other has not finished installing packages within $limit seconds: wait for it or end it, then run $again again (SONIQ_SETUP_WAIT sets how many seconds to wait)"
}

# take_turn FOLDER waits until no other set-up has its turn on the folder. The turn ends with this process.
take_turn() {
	command -v flock >/dev/null || return 0
	exec 9<"$1"
	wait_while setup_busy
}

# failure prints the kind of the failure that the log tells of, and the line that shows it.
failure() {
	local kind pattern line
	while read -r kind pattern; do
		line=$(grep -m1 -iE "$pattern" "$log") || continue
		echo "$kind" "$(sed -E 's/^(E|W|Err:[0-9]+|dpkg): //; s/[ .]+$//' <<<"${line:0:250}")"
		return
	done <<-'END'
		lock Could not get lock|Unable to acquire the dpkg frontend lock|Unable to lock|lock was locked by another process
		space No space left|have enough free space
		interrupted dpkg was interrupted
		unmet E: Unmet dependencies|held broken packages|dependency problems prevent
		changed Hash Sum mismatch|File has unexpected size|not valid yet
		network Temporary failure|Could not resolve|Could not connect|Unable to connect|Connection (timed out|failed|refused|reset)
		network unreachable|No route to host|Failed to fetch
		unknown Unable to locate package|no installation candidate|is not available, but
		other ^E: 
		other .
	END
	echo "other apt-get said nothing"
}

# refuse KIND LINE ends the set-up, because the packages cannot be installed.
refuse() {
	local what="The packages ${packages[*]} could not be installed ($2)"
	case $1 in
	space) fail "$what: make room on the disk, then run $again again" ;;
	network) fail "$what: check the network, the name server and apt's proxy, then run $again again" ;;
	changed) fail "$what: check the clock and apt's mirror or proxy, then run $again again" ;;
	interrupted | unmet) fail "$what: run as root \"dpkg --configure -a\" and \"apt-get --fix-broken install\", then run $again again" ;;
	unknown) fail "$what: check /etc/apt/sources.list, run as root \"apt-get update\", then run $again again" ;;
	*) keep_log=yes && fail "$what: see $log, remedy the cause, then run $again again" ;;
	esac
}

# try_install installs the packages. The lists of packages are fetched when they are a day old, or something failed before.
try_install() {
	local cache=$root/var/cache/apt/pkgcache.bin
	: >"$log"
	# a list that cannot be fetched matters only if the packages cannot be installed
	if [ "$1" -gt 1 ] || [ ! -e "$cache" ] || [ -n "$(find "$cache" -mmin +1440)" ]; then run_apt update || true; fi
	run_apt install --no-install-recommends "${packages[@]}"
}

# install_packages installs the packages, and tries again after failures that may pass.
install_packages() {
	local attempt=1 pause=2 begun=$SECONDS kind line
	while wait_while system_busy && begun=$SECONDS && ! try_install $attempt; do
		read -r kind line < <(failure)
		case $kind in
		lock) wait_unseen "$line" $((SECONDS - begun)) && continue ;;
		space | other) refuse "$kind" "$line" ;;
		interrupted | unmet | unknown) suspect=yes ;;
		esac
		[ $attempt -lt $attempts ] || refuse "$kind" "$line"
		attempt=$((attempt + 1))
		echo "installing packages failed ($line): trying again in $pause s, attempt $attempt of $attempts" >&2
		sleep $pause
		pause=$((pause * 3))
		case $kind in interrupted | unmet) finish_interrupted $attempt ;; esac
	done
}

# wait_unseen LINE SECONDS waits for a lock whose holder is not visible. apt-get waited for it for some seconds already.
wait_unseen() {
	other="another program"
	[ $waited -lt "$limit" ] || give_up
	[ $waited -lt $told ] || echo "waiting for another program to finish installing packages ($1), at most $((limit - waited)) s" >&2
	[ $waited -lt $told ] || told=$((waited + 30))
	sleep 5
	waited=$((waited + 5 + $2))
}

# finish_interrupted ATTEMPT finishes what another program left half installed. Before the last attempt it also installs what that
# lacks, but removes nothing.
finish_interrupted() {
	wait_while system_busy
	as_root dpkg --configure -a --force-confdef --force-confold >>"$log" 2>&1 || true
	[ "$1" -lt $attempts ] || run_apt --fix-broken --no-remove install || true
}

# guard_on keeps servers from being started when their packages are installed. A guard that is there stays as it is.
guard_on() {
	[ ! -e "$guard" ] || return 0
	# shellcheck disable=SC2016
	as_root sh -c 'set -C; printf "#!/bin/sh\n# %s\nexit 101\n" "$2" >"$1" && chmod 755 "$1"' sh "$guard" "$guard_mark"
}

# clean_up removes the guard and the log. A guard that a killed set-up left is removed too.
clean_up() {
	trap '' INT TERM HUP
	! grep -qs "$guard_mark" "$guard" || as_root rm -f "$guard"
	[ "$keep_log" = yes ] || rm -f "$log"
}

# install_missing installs the packages that are missing. One set-up does so at a time on a system, for all share the guard.
install_missing() {
	command -v apt-get >/dev/null || fail "Packages are missing: install what your system has for these Debian packages: ${packages[*]}"
	become_root || fail "Packages are missing and only root may install them: run as root \"apt-get install -y --no-install-recommends ${packages[*]}\""
	take_turn "$root/var/lib/dpkg"
	find_missing
	[ ${#packages[@]} != 0 ] || return 0
	echo "installing ${packages[*]}"
	log=$(mktemp) keep_log=no
	trap clean_up EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	trap 'exit 129' HUP
	guard_on || fail "Servers that come with the packages must not start, and $guard cannot be written: run as root \"apt-get install -y --no-install-recommends ${packages[*]}\""
	install_packages
	clean_up
	trap - EXIT INT TERM HUP
	exec 9<&-
	find_missing
	[ ${#packages[@]} = 0 ] ||
		echo "apt-get counts ${packages[*]} as installed, but their files are not found: run as root \"apt-get install --reinstall ${packages[*]}\" if something does not work" >&2
}
