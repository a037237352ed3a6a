import { existsSync, readFileSync } from "node:fs";
import { defineConfig, type Plugin } from "vite";

// The licenses of the packages that are part of the built files.
function licenses(): Plugin {
  return {
    name: "licenses",
    generateBundle(_, bundle) {
      const names = new Set<string>();
      for (const chunk of Object.values(bundle)) {
        for (const id of chunk.type === "chunk" ? chunk.moduleIds : []) {
          const found = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(id);
          if (found) names.add(found[1]);
        }
      }
      const texts = [...names].sort().map((name) => {
        const file = ["LICENSE", "LICENSE.md", "LICENSE.txt"]
          .map((one) => `node_modules/${name}/${one}`)
          .find(existsSync);
        if (!file) throw new Error(`${name} has no license`);
        return `${name}\n\n${readFileSync(file, "utf8").trim()}\n`;
      });
      this.emitFile({ type: "asset", fileName: "licenses.txt", source: texts.join("\n---\n\n") });
    },
  };
}

// The names of the built files do not change, so that a build can be compared with the last one.
export default defineConfig({
  base: "./",
  plugins: [licenses()],
  build: {
    outDir: "../src/corollary/service/static",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    rollupOptions: {
      output: {
        entryFileNames: "assets/page.js",
        chunkFileNames: "assets/[name].js",
        assetFileNames: "assets/[name][extname]",
      },
    },
  },
});
