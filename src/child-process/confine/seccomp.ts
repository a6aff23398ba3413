/**
 * The system call filter of a confined command, as a program for the kernel. It refuses keyrings, tracing, mounts,
 * namespaces, kernel interfaces, typing into the terminal, every socket family but the usual ones, and files that would
 * give others this user's rights.
 */
import { endianness } from "node:os";

const LD_WORD = 0x20;
const JUMP_EQ = 0x15;
const JUMP_GE = 0x35;
const JUMP_ANY_BIT = 0x45;
const RETURN = 0x06;
const ALLOW = 0x7fff0000;
const KILL = 0x80000000;
const EPERM = 0x00050001;
const ENOSYS = 0x00050026;
/** Offsets in the kernel's description of a call. */
const AT = { number: 0, architecture: 4, first: 16, second: 24 } as const;
const ARGUMENT_BYTES = 8;

/** Calls that give a file its mode: their number, the argument with the mode, and that with the flags of opening. */
type ModeCall = readonly [number: number, mode: number, flags?: number];

interface Architecture {
  readonly audit: number;
  /** Numbers from here belong to another interface of the same machine. */
  readonly foreign_from?: number;
  readonly socket: number;
  readonly ioctl: number;
  readonly refused: readonly number[];
  readonly modes: readonly ModeCall[];
}

/** Numbers that both machines share, from 424 on: newer mounts, io_uring, descriptors of other processes. */
const SHARED = [425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 442];
// biome-ignore format: one subject a line
const ARCHITECTURES: Readonly<Record<string, Architecture>> = {
  x64: {
    audit: 0xc000003e,
    foreign_from: 0x40000000,
    socket: 41,
    ioctl: 16,
    refused: [
      248, 249, 250, // keyrings
      101, 310, 311, 312, // other processes
      298, 321, 323, // bpf, perf, userfaultfd
      155, 161, 165, 166, 179, 272, 303, 304, 308, // mounts, namespaces, files by handle
      175, 176, 246, 313, 320, // modules, kexec
      103, 153, 159, 163, 164, 167, 168, 169, 170, 171, 172, 173, 227, 305, // the machine
      ...SHARED,
    ],
    modes: [
      [90, 1], [91, 1], [268, 2], [452, 2], // chmod
      [83, 1], [258, 2], [133, 1], [259, 2], // mkdir, mknod
      [85, 1], [2, 2, 1], [257, 3, 2], // creat, open
    ],
  },
  arm64: {
    audit: 0xc00000b7,
    socket: 198,
    ioctl: 29,
    refused: [
      217, 218, 219,
      117, 270, 271, 272,
      241, 280, 282,
      39, 40, 41, 51, 60, 97, 264, 265, 268,
      104, 105, 106, 273, 294,
      58, 89, 112, 116, 142, 161, 162, 170, 171, 224, 225, 266,
      ...SHARED,
    ],
    modes: [
      [52, 1], [53, 2], [452, 2],
      [34, 2], [33, 2],
      [56, 3, 2],
    ],
  },
};

/** UNIX, INET, INET6 and NETLINK. */
const FAMILIES = [1, 2, 10, 16];
/** TIOCSTI types into the terminal, TIOCLINUX pastes into a console. */
const TYPING = [0x5412, 0x541c];

/** Set-user-ID and set-group-ID. */
const SET_ID = 0o6000;
/** O_CREAT and O_TMPFILE: without them the mode means nothing. */
const MAKES_FILE = 0o100 | 0o20000000;
/** Takes its mode from memory, which a filter cannot read. Programs fall back to the older call. */
const OPENAT2 = 437;

type Instruction = readonly [code: number, yes: number, no: number, value: number];

/** Null on a machine whose numbers are unknown. */
export function seccompProgram(architecture: string): Buffer | null {
  const known = Object.hasOwn(ARCHITECTURES, architecture) ? ARCHITECTURES[architecture] : undefined;
  if (known === undefined || endianness() !== "LE") return null;
  const refuse: Instruction = [RETURN, 0, 0, EPERM];
  const program: Instruction[] = [
    [LD_WORD, 0, 0, AT.architecture],
    [JUMP_EQ, 1, 0, known.audit],
    [RETURN, 0, 0, KILL],
    [LD_WORD, 0, 0, AT.number],
    ...(known.foreign_from === undefined
      ? []
      : ([
          [JUMP_GE, 0, 1, known.foreign_from],
          [RETURN, 0, 0, KILL],
        ] as Instruction[])),
    ...known.refused.flatMap((number): Instruction[] => [[JUMP_EQ, 0, 1, number], refuse]),
    [JUMP_EQ, 0, 1, OPENAT2],
    [RETURN, 0, 0, ENOSYS],
    ...known.modes.flatMap(withoutSetId),
    ...onlyWithArgument(known.ioctl, AT.second, TYPING, refuse, [RETURN, 0, 0, ALLOW]),
    ...onlyWithArgument(known.socket, AT.first, FAMILIES, [RETURN, 0, 0, ALLOW], refuse),
    [RETURN, 0, 0, ALLOW],
  ];
  const bytes = Buffer.alloc(program.length * 8);
  for (const [i, [code, yes, no, value]] of program.entries()) {
    bytes.writeUInt16LE(code, i * 8);
    bytes.writeUInt8(yes, i * 8 + 2);
    bytes.writeUInt8(no, i * 8 + 3);
    bytes.writeUInt32LE(value >>> 0, i * 8 + 4);
  }
  return bytes;
}

/** For one system call: `then` if its argument is one of the values, else `otherwise`. Other calls continue below. */
function onlyWithArgument(
  number: number,
  at: number,
  values: readonly number[],
  then: Instruction,
  otherwise: Instruction,
): Instruction[] {
  const tests = values.flatMap((value): Instruction[] => [[JUMP_EQ, 0, 1, value], then]);
  return [[JUMP_EQ, 0, tests.length + 2, number], [LD_WORD, 0, 0, at], ...tests, otherwise];
}

/** Refuses a mode with a set-ID bit: such a file in the workspace would outlast the confinement. */
function withoutSetId([number, mode, flags]: ModeCall): Instruction[] {
  const load = (index: number): Instruction => [LD_WORD, 0, 0, AT.first + index * ARGUMENT_BYTES];
  const makes: Instruction[] =
    flags === undefined ? [] : [load(flags), [JUMP_ANY_BIT, 1, 0, MAKES_FILE], [RETURN, 0, 0, ALLOW]];
  const test: Instruction[] = [
    ...makes,
    load(mode),
    [JUMP_ANY_BIT, 0, 1, SET_ID],
    [RETURN, 0, 0, EPERM],
    [RETURN, 0, 0, ALLOW],
  ];
  return [[JUMP_EQ, 0, test.length, number], ...test];
}
