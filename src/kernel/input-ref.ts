/**
 * How the `ref` of a call begins that names its tool and input, for a client whose hook events carry no id. Equal calls
 * have the same one.
 */
export const INPUT_REF = "~";
