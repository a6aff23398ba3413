# Hands one hook event to the resident process with nc, and its answer back to the client. For machines without perl.
# Arguments: nc, node, svc.js, hook, the client, and where its settings are.
# It lets a call pass only on a whole answer. Every other end is exit code 2, text on standard error and nothing else.
# Without a process to ask it becomes the hook in Node, which starts one.

nc=$1
shift
path=$PATH
PATH=/usr/bin:/bin
umask 077
answer=
dog=
ending=2

finish() {
  trap - EXIT
  [ -z "$dog" ] || kill "$dog" 2>/dev/null
  [ -z "$answer" ] || rm -f "$answer"
  exit "$ending"
}
trap finish EXIT

refuse() {
  printf '%s\n' "$1" >&2
  exit 2
}

# `$1` says that the event was read already, and stands in `$event`.
in_node() {
  read=$1
  shift
  [ -x "$1" ] || refuse "svc: $1 cannot be started, so the call is refused"
  [ -z "$answer" ] || rm -f "$answer"
  [ -z "$dog" ] || kill "$dog" 2>/dev/null
  PATH=$path
  [ "$read" = read ] || exec "$@"
  exec "$@" <<EVENT
$event
EVENT
}

# Ends nc when the time is over, and when the client of a held call is gone.
watch() {
  left=4
  seen=0
  while [ "$left" -gt 0 ]; do
    sleep 1
    left=$((left - 1))
    holds=$(sed -n 's/^hold \([0-9][0-9]*\)$/\1/p' "$answer")
    count=$(printf '%s' "$holds" | grep -c .)
    if [ "$count" -gt "$seen" ]; then
      seen=$count
      left=$((4 + $(printf '%s\n' "$holds" | tail -n 1)))
    fi
    [ "$seen" -eq 0 ] || kill -0 "$PPID" 2>/dev/null || break
  done
  kill "$1"
}

client=$4
file=$6
[ "$5" != --managed ] || file=$(eval "printf %s ~$(id -un)")/.config/svc/hooks/$client.json
case $file in
  /*/"$client".json) cd "${file%/*}/resident" 2>/dev/null || in_node whole "$@" ;;
  *) in_node whole "$@" ;;
esac
case $(ls -ld .) in
  drwx------*) ;;
  *) refuse 'svc: the directory of the socket is open to others, so the call is refused' ;;
esac
[ -O . ] || refuse 'svc: the directory of the socket is open to others, so the call is refused'
[ -e hook.sock ] || [ -L hook.sock ] || in_node whole "$@"
[ -S hook.sock ] && [ ! -L hook.sock ] && [ -O hook.sock ] ||
  refuse "svc: hook.sock is not this user's socket, so the call is refused"

event=$(cat)
answer=.answer.$$
: >"$answer" || refuse 'svc: the answer cannot be kept, so the call is refused'
printf 'svc1 call %s\n%s\0' "$client" "$event" | "$nc" -U hook.sock >"$answer" 2>/dev/null &
pid=$!
watch "$pid" >/dev/null 2>&1 </dev/null &
dog=$!
wait "$pid"
code=$?
[ "$code" -le 128 ] || refuse 'svc: no answer within 4 s, so the call is refused'
# Nothing listens at the socket. A process that ended during the call has closed it instead.
[ "$code" -eq 0 ] || [ -s "$answer" ] || in_node read "$@"

state=start
out=
err=
line_end='
'
while IFS= read -r line; do
  case $state/$line in
    start/wait | start/hold\ [0-9]*) ;;
    start/pass | start/refuse) state=$line ;;
    pass/o\ * | refuse/o\ *) out=$out${line#o }$line_end ;;
    pass/e\ * | refuse/e\ *) err=$err${line#e }$line_end ;;
    pass/end) state=passed ;;
    refuse/end) state=refused ;;
    *) state=broken ;;
  esac
done <"$answer"
# A last line without its end was not read by the loop.
[ -z "$line" ] || state=broken
case $state in
  refused) refuse "${err:-svc: the call is refused}" ;;
  passed) ;;
  *) refuse 'svc: the process that judges calls gave no whole answer, so the call is refused' ;;
esac
printf %s "$err" >&2
printf %s "$out" || refuse 'svc: the answer cannot be written, so the call is refused'
ending=0
