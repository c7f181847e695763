/** Which release this is; `package.json` says the same. */
export const VERSION = "0.2.0";
