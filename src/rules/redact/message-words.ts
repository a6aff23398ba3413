/**
 * Common words of error messages. A value of only these words reveals nothing. Words that answer a question (`no`,
 * `off`, `denied`) are missing, because as a value they do.
 */

const COMMON = new Set(
  `an and are as at be been but by can cannot could did do does for from had has have if in into is it its may must of or
  shall should so such than that the their them then there these this those to was were when where which while will with
  would
  append call command copy data edit error file files folder handle keep line lines list load make name open path put
  read reads replace result save search send set show size string support supports take text tool tools type update use
  value values write writes`
    .trim()
    .split(/\s+/),
);
const MAX_COMMON_WORDS = 3;

export function isCommonWords(value: string): boolean {
  const words = value
    .trim()
    .toLowerCase()
    .split(/[\s_-]+/, MAX_COMMON_WORDS + 1);
  return words.length <= MAX_COMMON_WORDS && words.every((word) => COMMON.has(word));
}
