/** Manifests for the filesystem server: overwritten text is restored, and moved files are moved back. */
import { BEFORE_LIMITS } from "../../../rules/manifest/schema.ts";
import { type ManifestPack, type PackEntry, READ_BACK_RETRIES } from "./pack.ts";

const read: PackEntry = { effect: "read" };
const path = { path: "$args.path" };

/** Restores the previous text. A new file remains, because the server cannot delete. */
const restored: Omit<PackEntry, "note"> = {
  effect: "reversible",
  before: { tool: "read_text_file", args: path },
  compensation: {
    tool: "write_file",
    kind: "inverse",
    args: { ...path, content: "$before.content" },
    residue: [
      "the file's owner, hard links and setuid, setgid and sticky bits: the server replaces the file",
    ],
  },
  verification: {
    tool: "read_text_file",
    args: path,
    expect: { content: "$before.content" },
    ...READ_BACK_RETRIES,
  },
};

export const filesystemPack: ManifestPack = {
  tried: "@modelcontextprotocol/server-filesystem 2026.8.31",
  tools: {
    read_file: "bebb8a4ee5f4270b",
    read_text_file: "bebb8a4ee5f4270b",
    read_media_file: "24ae1fc36322f6e5",
    read_multiple_files: "9857cacc9cd0dfba",
    write_file: "adb46c9de0f0269c",
    edit_file: "3907e4ffa698782e",
    create_directory: "389af995f9fc16ee",
    list_directory: "389af995f9fc16ee",
    list_directory_with_sizes: "995fcdf371bd07d9",
    directory_tree: "15e1b9cd2b5b29e8",
    move_file: "72c31be05d433a98",
    search_files: "edaff5728d79f612",
    get_file_info: "389af995f9fc16ee",
    list_allowed_directories: "95ddb3a7b6a37a2d",
  },
  entries: {
    read_file: read,
    read_text_file: read,
    read_media_file: read,
    read_multiple_files: read,
    list_directory: read,
    list_directory_with_sizes: read,
    directory_tree: read,
    search_files: read,
    get_file_info: read,
    list_allowed_directories: read,
    write_file: {
      ...restored,
      before: { ...restored.before!, required: false },
      card: { title: "Write {$args.path}" },
      note: "a file that did not exist, is not text or is over 1 MB passes and cannot be undone: the server can neither delete nor write bytes. examples/gateway has a companion that can",
    },
    edit_file: { ...restored, card: { title: "Edit {$args.path}" } },
    move_file: {
      effect: "reversible",
      // Reads both ends byte for byte. A path without a file answers with an error, and a directory cannot be read.
      before: {
        tool: "read_media_file",
        args: [{ path: "$args.source" }, { path: "$args.destination" }],
        max_bytes: BEFORE_LIMITS.max_bytes.max,
        required: false,
      },
      compensation: {
        tool: "move_file",
        kind: "inverse",
        args: { source: "$args.destination", destination: "$args.source" },
        residue: ["the Unicode form of an image's or a sound file's name, if the call used another form"],
      },
      // The answer contains the file name on disk, so a file that returns under another name does not count as
      // restored.
      verification: {
        tool: "read_media_file",
        args: { path: "$args.source" },
        expect: "$before[0]",
        ...READ_BACK_RETRIES,
      },
      card: { title: "Move {$args.source} to {$args.destination}" },
      note: "a directory, or a file over 6 MB, is moved and cannot be undone: the server cannot identify it afterwards",
    },
    create_directory: {
      effect: "reversible",
      before: { tool: "list_directory", args: path, ignore: ["$before.content"], required: false },
      compensation: { tool: "list_directory", kind: "inverse", args: path },
      verification: { tool: "list_directory", args: path, expect: {}, ...READ_BACK_RETRIES },
      card: { title: "Create the directory {$args.path}" },
      note: "an existing directory needs no undo. A new one cannot be undone: the server cannot remove it",
    },
  },
};
