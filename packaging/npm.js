#!/usr/bin/env node
// Starts the aye program of this platform, which is in a package of its own.
"use strict";

const { spawnSync } = require("node:child_process");
const { constants } = require("node:os");

const { report } = process;
const isMusl = process.platform === "linux" && !report.getReport().header.glibcVersionRuntime;
const name = `aye-agent-${process.platform}-${process.arch}${isMusl ? "-musl" : ""}`;

let program;
try {
  program = require.resolve(`${name}/bin/aye`);
} catch {
  console.error(`error: the package ${name} with the program is not installed`);
  console.error("hint: install without --no-optional; if there is no such package, build aye from source");
  process.exit(1);
}

// Signals of the terminal go to the whole process group: the program handles them, and this process waits for it.
for (const signal of ["SIGINT", "SIGQUIT", "SIGHUP", "SIGTERM"]) {
  process.on(signal, () => {});
}
const done = spawnSync(program, process.argv.slice(2), { stdio: "inherit" });
if (done.error) {
  console.error(`error: cannot start ${program}: ${done.error.message}`);
  process.exit(1);
}
process.exit(done.signal ? 128 + (constants.signals[done.signal] ?? 0) : (done.status ?? 1));
