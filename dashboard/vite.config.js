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
    rolldownOptions: {
      output: {
        // A page's file changes with the page and with what all share, but not with other pages. Pages
        // without charts load none.
        codeSplitting: {
          groups: [
            { name: "shared", priority: 2, test: /node_modules.preact|src.(api|durations|load|pages-of|routing|session|text)\.ts$|src.text.(en|zh)\.ts$|src.components.(?!chart|daily)/ },
            { name: "chart", priority: 1, test: /node_modules.uplot|src.components.(chart|daily)/ },
          ],
        },
      },
    },
  },
});
