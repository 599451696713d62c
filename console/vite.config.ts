import { defineConfig } from "vite";

// Where the built files go: the folder that the service serves, or the one that a test names.
const outDir = process.env.CONSOLE_OUT ?? "../rayapp/api/console";

export default defineConfig({
  base: "/console/",
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  build: {
    outDir,
    emptyOutDir: true,
    target: "es2022",
    // No file may be inlined, and no script may stand in the page: the policy refuses both.
    assetsInlineLimit: 0,
    modulePreload: false,
    reportCompressedSize: false,
  },
  server: { proxy: { "/api": "http://127.0.0.1:8100" } },
});
