#!/bin/bash
# A trial cluster on one machine: three PostgreSQL under Patroni with etcd, two servers with HAProxy, each in its own
# network namespace. Needs root, because of the namespaces. docs/operations/deploy-ha.md explains it.
set -euo pipefail

HERE=$(cd "$(dirname "$0")" && pwd)
DIR=${SVC_HA_DIR:-/var/lib/svc-ha}      # data, logs and passwords
NET=${SVC_HA_NET:-10.231.77}            # the first three numbers of the network
PREFIX=${SVC_HA_PREFIX:-svcha}          # of namespaces and interfaces
DISK=${SVC_HA_DISK:-}                   # size of each database node's disk in memory, such as 700m; empty: a directory
CONFIG=${SVC_HA_CONFIG:-$HERE/config}   # svc.config.yaml and what it names
SVC=${SVC_HA_SVC:-node $HERE/../../bin/svc.js}
PATRONI=${SVC_HA_PATRONI:-patroni}
DATABASES=(db1 db2 db3)
SERVERS=(app1 app2)
NODES=("${DATABASES[@]}" "${SERVERS[@]}")

usage() {
  cat <<'END'
Usage: cluster.sh <command>

  up                      start the cluster; prints its addresses
  down [--delete]         stop it; with --delete also remove its data
  status                  show every node
  leader                  print the database node that accepts writes
  switchover <node>       hand the primary's role to another database node
  kill <node>             end every process of a node with SIGKILL
  stop <node>             end them with SIGTERM
  start <node>            start a node
  crash <node>            end PostgreSQL alone with SIGKILL
  reinit <node>           copy a database node again from the primary
  freeze <node>           stop the processes where they are (SIGSTOP)
  thaw <node>             let them continue
  cut <node> [<peer>]     unplug a node, or drop its packets to one peer
  heal <node>             undo every cut of a node
  fill <node>             fill the disk of a database node (needs SVC_HA_DISK)
  free <node>             empty it again

Nodes: db1 db2 db3 app1 app2
END
}

fail() { echo "cluster.sh: $*" >&2; exit 1; }
address() {
  case $1 in db?) echo "$NET.1${1#db}" ;; app?) echo "$NET.2${1#app}" ;; esac
}
within() { local node=$1; shift; ip netns exec "$PREFIX-$node" "$@"; }
is_database() { [[ $1 == db* ]]; }
exists() { [ -e "/run/netns/$PREFIX-$1" ]; }
pids() { ip netns pids "$PREFIX-$1" 2>/dev/null || true; }
# A program is often outside root's PATH on Debian.
PATH=$PATH:/usr/sbin:/sbin
postgres_bin() { ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1; }

check() {
  [ "$(id -u)" = 0 ] || fail "network namespaces need root; run it with sudo, or in a virtual machine of your own"
  local missing=()
  command -v ip >/dev/null || missing+=(iproute2)
  $PATRONI --version >/dev/null 2>&1 || missing+=(patroni python3-etcd)
  command -v etcd >/dev/null || missing+=(etcd-server)
  command -v haproxy >/dev/null || missing+=(haproxy)
  command -v curl >/dev/null || missing+=(curl)
  [ -n "$(postgres_bin)" ] || missing+=(postgresql)
  [ ${#missing[@]} = 0 ] || fail "programs are missing. Run: apt-get install -y --no-install-recommends ${missing[*]}"
  ip netns add "$PREFIX-probe" 2>/dev/null || fail "this machine does not allow network namespaces (ip netns add)"
  ip netns del "$PREFIX-probe"
}

secret() {
  [ -s "$DIR/secrets/$1" ] || (umask 077; mkdir -p "$DIR/secrets"; od -An -N18 -tx1 /dev/urandom | tr -d ' \n' >"$DIR/secrets/$1")
  cat "$DIR/secrets/$1"
}

# --- the network -----------------------------------------------------------------------------------------------------

make_network() {
  ip link show "$PREFIX" >/dev/null 2>&1 || ip link add "$PREFIX" type bridge
  ip addr replace "$NET.1/24" dev "$PREFIX"
  ip link set "$PREFIX" up
  local node
  for node in "${NODES[@]}"; do
    exists "$node" && continue
    ip netns add "$PREFIX-$node"
    ip link add "$PREFIX-$node" type veth peer name eth0 netns "$PREFIX-$node"
    ip link set "$PREFIX-$node" master "$PREFIX" up
    within "$node" ip link set lo up
    within "$node" ip addr add "$(address "$node")/24" dev eth0
    within "$node" ip link set eth0 up
  done
}

cut_node() {
  [ $# = 1 ] && { ip link set "$PREFIX-$1" down; return; }
  # A wrong hardware address: packets leave and arrive nowhere, as behind a broken switch.
  within "$1" ip neigh replace "$(address "$2")" lladdr 02:00:00:00:00:01 nud permanent dev eth0
}

heal_node() {
  ip link set "$PREFIX-$1" up
  within "$1" ip neigh flush nud permanent dev eth0
}

# --- the nodes -------------------------------------------------------------------------------------------------------

# Starts a program in a node's namespace, and again one second after it ends, as a service manager would.
supervise() { # NODE NAME USER COMMAND...
  local node=$1 name=$2 user=$3; shift 3
  local state="$DIR/$node-state"; mkdir -p "$state"
  [ -s "$state/$name.pid" ] && kill -0 "$(cat "$state/$name.pid")" 2>/dev/null && return
  within "$node" setsid bash -c 'echo $$ >"$0/$1.pid"; name=$1 user=$2; shift 2
    while :; do setpriv --reuid="$user" --regid="$user" --init-groups -- "$@"; sleep 1; done' \
    "$state" "$name" "$user" "$@" >>"$state/$name.log" 2>&1 </dev/null &
}

patroni_version() { $PATRONI --version | grep -oE '[0-9]+(\.[0-9]+)+' | head -1; }
at_least() { [ "$(printf '%s\n' "$1" "$2" | sort -V | head -1)" = "$2" ]; } # VERSION LEAST
# Over etcd's version 3 API, Patroni before 3.0.3 takes the leader's key from a newer primary without a comparison
# (patroni/patroni#2693), and answers are lost. Over version 2 it compares.
etcd_api() { if at_least "$(patroni_version)" 3.0.3; then echo etcd3; else echo etcd; fi; }

fill_in() { # FILE NODE: a template with its words replaced
  local etcd='' databases='' servers='' n synchronous=true
  for n in "${DATABASES[@]}"; do
    etcd+="${etcd:+, }\"$(address "$n"):2379\""
    databases+="  server $n $(address "$n"):5432 check port 8008\n"
  done
  for n in "${SERVERS[@]}"; do servers+="  server $n $(address "$n"):8787 check\n"; done
  # From version 4 on, any standby of the quorum can confirm. Before, Patroni names one and replaces it when it is lost.
  [ -z "${SVC_HA_SYNCHRONOUS:-}" ] || synchronous=$SVC_HA_SYNCHRONOUS
  [ $synchronous != true ] || ! at_least "$(patroni_version)" 4 || synchronous=quorum
  sed -e "s|@NAME@|$2|; s|@ADDRESS@|$(address "$2")|; s|@DIR@|$DIR/$2|; s|@API@|$(etcd_api)|; s|@ETCD@|$etcd|; s|@NETWORK@|$NET.0/24|" \
    -e "s|@BIN@|$(postgres_bin)|; s|@SYNCHRONOUS@|$synchronous|; s|@SEGMENT@|${SVC_HA_SEGMENT:-16}|" \
    -e "s|@SUPERUSER@|$(secret superuser)|; s|@REPLICATION@|$(secret replication)|; s|@REWIND@|$(secret rewind)|" \
    -e "s|@DATABASES@|$databases|; s|@SERVERS@|$servers|" "$1"
}

start_node() {
  local node=$1 at; at=$(address "$node")
  mkdir -p "$DIR/$node"
  if is_database "$node"; then start_database "$node" "$at"; else start_server "$node" "$at"; fi
}

start_database() {
  local node=$1 at=$2 cluster='' n api=()
  [ "$(etcd_api)" = etcd3 ] || api=(--enable-v2)
  [ -z "$DISK" ] || mountpoint -q "$DIR/$node" || mount -t tmpfs -o "size=$DISK,mode=0700" "$PREFIX-$node" "$DIR/$node"
  fill_in "$HERE/patroni.yml" "$node" >"$DIR/$node-patroni.yml"
  chown -R postgres: "$DIR/$node"; chown postgres: "$DIR/$node-patroni.yml"; chmod 600 "$DIR/$node-patroni.yml"
  chmod 700 "$DIR/$node"
  for n in "${DATABASES[@]}"; do cluster+="${cluster:+,}$n=http://$(address "$n"):2380"; done
  supervise "$node" etcd postgres etcd --name "$node" --data-dir "$DIR/$node/etcd" --logger zap --log-level warn \
    --listen-peer-urls "http://$at:2380" --initial-advertise-peer-urls "http://$at:2380" \
    --listen-client-urls "http://$at:2379" --advertise-client-urls "http://$at:2379" \
    --initial-cluster "$cluster" --initial-cluster-token "$PREFIX" --heartbeat-interval 200 --election-timeout 2000 \
    --auto-compaction-retention 10m --quota-backend-bytes 67108864 "${api[@]}"
  # shellcheck disable=SC2086 # the command has arguments
  supervise "$node" patroni postgres $PATRONI "$DIR/$node-patroni.yml"
}

start_server() {
  local node=$1 at=$2
  fill_in "$HERE/haproxy.cfg" "$node" >"$DIR/$node/haproxy.cfg"
  supervise "$node" haproxy root haproxy -db -f "$DIR/$node/haproxy.cfg"
  # shellcheck disable=SC2086 # the command has arguments
  SVC_DATABASE_URL="postgres://svc:$(secret svc)@127.0.0.1:5000/svc" SVC_STORE=postgres SVC_DATA="$DIR/$node/data" \
    SVC_CONFIG="$DIR/config/svc.config.yaml" SVC_KEYS="$DIR/config/keys.json" \
    supervise "$node" svc root $SVC server --host "$at" --port 8787
}

stop_node() { # NODE SIGNAL
  local state="$DIR/$1-state" file
  # The watchers first, or they would start everything again.
  for file in "$state"/*.pid; do
    [ -e "$file" ] || continue
    kill -KILL "$(cat "$file")" 2>/dev/null || true
    rm -f "$file"
  done
  local left=200
  pids "$1" | xargs -r kill "-$2" 2>/dev/null || true
  while [ -n "$(pids "$1")" ] && [ $left -gt 0 ]; do sleep 0.1; left=$((left - 1)); done
  pids "$1" | xargs -r kill -KILL 2>/dev/null || true
}

leader() {
  local n
  for n in "${DATABASES[@]}"; do
    curl -sf -m 2 -o /dev/null "http://$(address "$n"):8008/primary" && { echo "$n"; return; }
  done
  return 1
}

wait_for() { # SECONDS WHAT COMMAND...
  local left=$1 what=$2; shift 2
  until "$@" >/dev/null 2>&1; do
    left=$((left - 1))
    [ $left -gt 0 ] || fail "$what did not come up; see the logs in $DIR/*-state"
    sleep 1
  done
}
has_standby() { within "$(leader)" curl -sf -m 2 "http://$(address "$(leader)"):8008/cluster" | grep -qE '"(sync|quorum)_standby"'; }
is_ready() { curl -sf -m 2 -o /dev/null "http://$(address "$1"):8787/readyz"; }

make_database() {
  local at; at=$(address "$(leader)")
  export PGPASSWORD; PGPASSWORD=$(secret superuser)
  local sql=(psql -qAt -h "$at" -U postgres -d postgres -v ON_ERROR_STOP=1)
  [ "$(within "$(leader)" "${sql[@]}" -c "SELECT count(*) FROM pg_database WHERE datname = 'svc'")" = 0 ] || return 0
  within "$(leader)" "${sql[@]}" -c "CREATE ROLE svc LOGIN PASSWORD '$(secret svc)'"
  within "$(leader)" "${sql[@]}" -c "CREATE DATABASE svc OWNER svc"
}

up() {
  check
  mkdir -p "$DIR"; chmod 711 "$DIR"
  make_network
  local node name
  for name in superuser replication rewind svc; do secret "$name" >/dev/null; done
  if [ ! -e "$DIR/config" ]; then
    cp -r "$CONFIG" "$DIR/config"; chmod 700 "$DIR/config"
    [ -e "$DIR/config/keys.json" ] || (umask 077; $SVC keys add root --role admin --keys "$DIR/config/keys.json" >"$DIR/secrets/root-key")
  fi
  for node in "${DATABASES[@]}"; do start_node "$node"; done
  wait_for 120 "a primary" leader
  [ "${SVC_HA_SYNCHRONOUS:-}" = false ] || wait_for 120 "a synchronous standby" has_standby
  make_database
  # One after the other: the first one makes the tables.
  for node in "${SERVERS[@]}"; do start_node "$node"; wait_for 60 "$node" is_ready "$node"; done
  echo "The cluster is up. Either address leads to both servers:"
  for node in "${SERVERS[@]}"; do echo "  http://$(address "$node"):8000"; done
  [ ! -e "$DIR/secrets/root-key" ] || echo "The admin's key is in $DIR/secrets/root-key."
  echo "Next: $0 status"
}

down() {
  local node
  for node in "${NODES[@]}"; do
    exists "$node" || continue
    pids "$node" | xargs -r kill -CONT 2>/dev/null || true
    stop_node "$node" KILL
    ip netns del "$PREFIX-$node"
    ip link del "$PREFIX-$node" 2>/dev/null || true
  done
  ip link del "$PREFIX" 2>/dev/null || true
  for node in "${DATABASES[@]}"; do mountpoint -q "$DIR/$node" && umount -l "$DIR/$node"; done
  [ "${1:-}" != --delete ] || rm -rf "$DIR"
}

status() {
  local node at
  at=$(leader) || at=db1
  within "$at" curl -sf -m 3 "http://$(address "$at"):8008/cluster" || echo "no database node answers"
  echo
  for node in "${SERVERS[@]}"; do
    printf '%s http://%s:8787 ' "$node" "$(address "$node")"
    curl -s -m 6 "http://$(address "$node"):8787/readyz" || printf 'no answer'
    echo
  done
}

switchover() {
  local from; from=$(leader) || fail "there is no primary to hand over"
  curl -s -m 30 -X POST -d "{\"leader\":\"$from\",\"candidate\":\"$1\"}" "http://$(address "$from"):8008/switchover"
  echo
}

node_of() {
  [ -n "${1:-}" ] || fail "name a node: ${NODES[*]}"
  [[ " ${NODES[*]} " == *" $1 "* ]] || fail "no node $1; nodes: ${NODES[*]}"
  exists "$1" || fail "the cluster is not up"
}
# A session's process can end before its turn comes.
crash_node() {
  local pid killed=
  for pid in $(pids "$1"); do
    if [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = postgres ] && kill -KILL "$pid" 2>/dev/null; then killed=yes; fi
  done
  [ -n "$killed" ] || fail "PostgreSQL does not run on $1"
}
disk_of() { is_database "$1" && mountpoint -q "$DIR/$1" || fail "$1 has no disk of its own; start with SVC_HA_DISK=700m"; }

case ${1:-} in
  up) up ;;
  down) down "${2:-}" ;;
  status) status ;;
  leader) leader || fail "no primary" ;;
  switchover) node_of "${2:-}"; switchover "$2" ;;
  kill) node_of "${2:-}"; stop_node "$2" KILL ;;
  stop) node_of "${2:-}"; stop_node "$2" TERM ;;
  start) node_of "${2:-}"; start_node "$2" ;;
  crash) node_of "${2:-}"; crash_node "$2" ;;
  reinit) node_of "${2:-}"; curl -s -m 30 -X POST -d '{"force":true}' "http://$(address "$2"):8008/reinitialize"; echo ;;
  freeze) node_of "${2:-}"; pids "$2" | xargs -r kill -STOP ;;
  thaw) node_of "${2:-}"; pids "$2" | xargs -r kill -CONT ;;
  cut) node_of "${2:-}"; cut_node "${@:2}" ;;
  heal) node_of "${2:-}"; heal_node "$2" ;;
  fill) node_of "${2:-}"; disk_of "$2"; dd if=/dev/zero of="$DIR/$2/filled" bs=1M 2>/dev/null || true ;;
  free) node_of "${2:-}"; disk_of "$2"; rm -f "$DIR/$2/filled" ;;
  *) usage; [ "${1:-}" = help ] || [ "${1:-}" = --help ] || exit 1 ;;
esac
