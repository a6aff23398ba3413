/** Modules of Node that a record needs. They are loaded on use, because most starts of the hook need none of them. */

export const nodeCrypto = () => process.getBuiltinModule("node:crypto");
export const nodeZlib = () => process.getBuiltinModule("node:zlib");
