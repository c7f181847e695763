// Writes what the service serves: hashed files beside one page, no inline script, no data: address.
import { defineConfig } from "vite";

export default defineConfig({
  base: "/dashboard/assets/",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../app/integrations/dashboard/assets",
    emptyOutDir: true,
    assetsDir: "",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
    sourcemap: false,
    reportCompressedSize: false,
  },
});
