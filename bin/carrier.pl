# Hands one hook event to the resident process over its socket, and its answer back to the client. It loads no module,
# because that takes longer than everything else. Arguments: node, svc.js, hook, the client, and where its settings are.
# It lets a call pass only on a whole answer. Every other end is exit code 2, text on standard error and nothing else.
# Without a process to ask it becomes the hook in Node, which starts one. Nothing was read until then.

sub refuse {
  print STDERR $_[0], $_[0] =~ /\n\z/ ? '' : "\n";
  exit 2;
}

sub in_node {
  exec {$ARGV[0]} @ARGV;
  refuse("svc: $ARGV[0] cannot be started, so the call is refused");
}

# The address of a socket. Linux and the BSDs order it differently.
sub address {
  return $^O eq 'linux' ? pack('S a108', 1, $_[0]) : pack('C C a104', 106, 1, $_[0]);
}

sub carry {
  my (undef, undef, undef, $client, $how, $file) = @ARGV;
  $file = (getpwuid($<))[7] . "/.config/svc/hooks/$client.json" if $how eq '--managed';
  in_node() if $file !~ m{^(/.*/)\Q$client\E\.json\z}s or !chdir "$1resident";
  my @own = lstat '.';
  refuse('svc: the directory of the socket is open to others, so the call is refused')
    if $own[4] != $< or $own[2] & 077;
  my @found = lstat 'hook.sock' or in_node();
  refuse("svc: hook.sock is not this user's socket, so the call is refused") if !-S _ or $found[4] != $<;
  socket(my $door, 1, 1, 0) or in_node();
  connect($door, address('hook.sock')) or in_node();

  $SIG{PIPE} = 'IGNORE';
  $SIG{ALRM} = sub { refuse('svc: no answer within 4 s, so the call is refused') };
  alarm 4;
  my $event = do { local $/; <STDIN> };
  my $sent = "svc1 call $client\n" . (defined $event ? $event : '') . "\0";
  while (length $sent) {
    my $n = syswrite $door, $sent, 65536;
    refuse('svc: the process that judges calls is gone, so the call is refused') if !defined $n;
    substr($sent, 0, $n, '');
  }

  my ($said, $held, $parent) = ('', 0, getppid);
  while (1) {
    my $ready = '';
    vec($ready, fileno $door, 1) = 1;
    if (!select $ready, undef, undef, 0.25) {
      # A client that is gone leaves this process to another parent, and its call must not use an approval.
      exit 2 if $held and getppid != $parent;
      next;
    }
    my $n = sysread $door, $said, 65536, length $said;
    last if !$n;
    while ($said =~ s/\A(?:hold (\d+)|wait)\n//) {
      next if !defined $1;
      $held = 1;
      alarm 4 + $1;
    }
    last if $said =~ /^end\n\z/m;
  }
  alarm 0;
  refuse('svc: the process that judges calls gave no whole answer, so the call is refused')
    if $said !~ /\A(pass|refuse)\n((?:[oe] [^\n]*\n)*)end\n\z/;
  my ($word, $lines) = ($1, $2);
  my ($out, $err) = map { join '', $lines =~ /^$_ ([^\n]*\n)/mg } 'o', 'e';
  refuse($err eq '' ? 'svc: the call is refused' : $err) if $word ne 'pass';
  print STDERR $err;
  print STDOUT $out or refuse('svc: the answer cannot be written, so the call is refused');
  close STDOUT or refuse('svc: the answer cannot be written, so the call is refused');
  exit 0;
}

if (@ARGV == 1 and $ARGV[0] eq '--check') {
  socket(my $door, 1, 1, 0) or exit 2;
  print "carrier\n";
  exit 0;
}
eval { carry(); 1 } or refuse("svc: $@");
refuse('svc: the call is refused');
