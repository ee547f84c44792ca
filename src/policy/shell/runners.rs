//! Tables of programs that start another program, and of the position of that program in their arguments.
//!
//! To add a program, add an entry to one of the tables:
//! * `RUNNERS` if the command follows the program, a subcommand, or a fixed number of words (`uv run CMD`);
//! * `COMMAND_OPTIONS` if all words after an option form the command (`nix develop -c CMD`);
//! * `ANYWHERE` if options take several words each (`bwrap --bind A B CMD`);
//! * `TEXT_OPTIONS` if the value of an option is shell code (`nix-shell --run TEXT`);
//! * `TEXT_OPERANDS` if the operands are shell code.
//!
//! Options need not be listed, because an unknown option is tried both with and without a value. Programs whose options
//! are known are listed in `wrappers.rs`. A blocked program is denied if it is found through any of the tables.

/// A program, the words that precede the command it runs, and the number of additional words (such as a name or a file)
/// before that command.
pub(crate) struct Runner {
    pub program: &'static str,
    pub verbs: &'static str,
    pub operands: usize,
}

const fn runner(program: &'static str, verbs: &'static str, operands: usize) -> Runner {
    Runner { program, verbs, operands }
}

pub(crate) const RUNNERS: &[Runner] = &[
    // Python.
    runner("uv", "run", 0),
    runner("uv", "tool run", 0),
    runner("uvx", "", 0),
    runner("pipx", "run", 0),
    runner("poetry", "run", 0),
    runner("pipenv", "run", 0),
    runner("pdm", "run", 0),
    runner("pdm", "x", 0),
    runner("hatch", "run", 0),
    runner("hatch", "env run", 0),
    runner("rye", "run", 0),
    runner("pixi", "run", 0),
    runner("pixi", "exec", 0),
    runner("conda", "run", 0),
    runner("mamba", "run", 0),
    runner("micromamba", "run", 0),
    runner("tox", "exec", 0),
    runner("pyenv", "exec", 0),
    runner("dotenv", "", 0),
    runner("dotenv", "run", 0),
    runner("honcho", "run", 0),
    // Ruby.
    runner("bundle", "exec", 0),
    runner("bundler", "exec", 0),
    runner("rbenv", "exec", 0),
    runner("chruby-exec", "", 1),
    runner("rvm", "do", 0),
    runner("rvm", "do", 1),
    runner("foreman", "run", 0),
    // JavaScript.
    runner("npx", "", 0),
    runner("bunx", "", 0),
    runner("npm", "exec", 0),
    runner("npm", "x", 0),
    runner("pnpm", "exec", 0),
    runner("pnpm", "dlx", 0),
    runner("pnpx", "", 0),
    runner("yarn", "exec", 0),
    runner("yarn", "run", 0),
    runner("yarn", "dlx", 0),
    runner("bun", "x", 0),
    runner("bun", "run", 0),
    runner("corepack", "", 0),
    runner("volta", "run", 0),
    runner("fnm", "exec", 0),
    runner("nvm", "exec", 0),
    runner("nvm", "exec", 1),
    runner("nodenv", "exec", 0),
    runner("cross-env", "", 0),
    runner("cross-env-shell", "", 0),
    runner("env-cmd", "", 0),
    runner("dotenvx", "run", 0),
    runner("lerna", "exec", 0),
    runner("nx", "exec", 0),
    runner("yarn", "workspace", 1),
    runner("yarn", "workspaces foreach", 0),
    runner("yarn", "workspaces foreach exec", 0),
    // Other languages.
    runner("rustup", "run", 1),
    runner("opam", "exec", 0),
    runner("dune", "exec", 0),
    runner("stack", "exec", 0),
    runner("cabal", "exec", 0),
    runner("mix", "cmd", 0),
    runner("swiftly", "run", 0),
    runner("jenv", "exec", 0),
    runner("dlv", "exec", 0),
    runner("ccache", "", 0),
    runner("sccache", "", 0),
    runner("distcc", "", 0),
    runner("icecc", "", 0),
    runner("bear", "", 0),
    runner("intercept-build", "", 0),
    runner("scan-build", "", 0),
    // Version and environment managers.
    runner("asdf", "exec", 0),
    runner("mise", "exec", 0),
    runner("mise", "x", 0),
    runner("direnv", "exec", 1),
    runner("devbox", "run", 0),
    runner("devenv", "shell", 0),
    runner("flox", "activate", 0),
    runner("nix", "run", 0),
    runner("nix", "run", 1),
    runner("guix", "shell", 0),
    runner("pkgx", "", 0),
    runner("toolbox", "run", 0),
    runner("snap", "run", 0),
    // Secrets in a command's environment.
    runner("op", "run", 0),
    runner("doppler", "run", 0),
    runner("infisical", "run", 0),
    runner("teller", "run", 0),
    runner("chamber", "exec", 1),
    runner("aws-vault", "exec", 1),
    runner("envchain", "", 1),
    runner("envdir", "", 1),
    runner("envconsul", "", 0),
    // Namespaces, users, limits.
    runner("ip", "netns exec", 1),
    runner("ip", "netns exec", 0),
    runner("ip", "vrf exec", 1),
    runner("flatpak-spawn", "", 0),
    runner("schroot", "", 0),
    runner("fakechroot", "", 0),
    runner("pseudo", "", 0),
    runner("machinectl", "shell", 0),
    runner("machinectl", "shell", 1),
    runner("lxc-attach", "", 0),
    runner("aa-exec", "", 0),
    runner("runcon", "", 0),
    runner("runcon", "", 1),
    runner("run0", "", 0),
    runner("please", "", 0),
    runner("gksudo", "", 0),
    runner("kdesudo", "", 0),
    runner("gksu", "", 0),
    runner("softlimit", "", 0),
    runner("chpst", "", 0),
    runner("s6-setuidgid", "", 1),
    runner("setlock", "", 1),
    runner("pgrphack", "", 0),
    runner("cpulimit", "", 0),
    runner("lockrun", "", 0),
    runner("withlock", "", 1),
    runner("setarch", "", 0),
    runner("trickle", "", 0),
    runner("tsocks", "", 0),
    runner("torify", "", 0),
    // Tracing, debugging, emulation.
    runner("catchsegv", "", 0),
    runner("qemu-x86_64", "", 0),
    runner("qemu-aarch64", "", 0),
    runner("qemu-arm", "", 0),
    runner("box64", "", 0),
    runner("box86", "", 0),
    runner("wine", "", 0),
    runner("arch", "", 0),
    runner("coverage", "run", 0),
    // Terminals, sessions, repetition.
    runner("dbus-launch", "", 0),
    runner("gpg-agent", "", 0),
    runner("dtach", "", 1),
    runner("abduco", "", 1),
    runner("zellij", "run", 0),
    runner("winpty", "", 0),
    runner("ttyd", "", 0),
    runner("byobu", "", 0),
    runner("kitty", "", 0),
    runner("foot", "", 0),
    runner("wezterm", "start", 0),
    runner("nq", "", 0),
    runner("pueue", "add", 0),
    runner("retry", "", 0),
    runner("retry", "", 1),
    runner("daemonize", "", 0),
    runner("watchexec", "", 0),
    runner("nodemon", "", 0),
    runner("sem", "", 0),
    runner("concurrently", "", 0),
    runner("pee", "", 0),
    runner("ifne", "", 0),
    runner("gtimeout", "", 1),
    runner("genv", "", 0),
    runner("gnice", "", 0),
    runner("gnohup", "", 0),
    runner("gstdbuf", "", 0),
    runner("gxargs", "", 0),
    runner("gtime", "", 0),
];

/// Options for which all the following words form the command.
pub(crate) const COMMAND_OPTIONS: &[(&str, &[&str])] = &[
    ("nix", &["-c", "--command"]),
    ("guix", &["--"]),
    ("schroot", &["--"]),
    ("distrobox", &["--", "-e", "--exec"]),
    ("distrobox-enter", &["--", "-e", "--exec"]),
    ("start-stop-daemon", &["-x", "--exec", "-a", "--startas"]),
    ("schedtool", &["-e"]),
    ("gdb", &["--args", "-args"]),
    ("flox", &["--"]),
    ("mise", &["--", "-c", "--command"]),
    ("devenv", &["--"]),
    ("capsh", &["--user", "--shell"]),
    ("alacritty", &["-e", "--command"]),
    ("gnome-terminal", &["--", "-x"]),
    ("konsole", &["-e"]),
    ("xterm", &["-e"]),
    ("perl", &["-S"]),
    ("ruby", &["-S"]),
];

/// Programs whose options take several words each, so the command may start at any word.
pub(crate) const ANYWHERE: &[&str] = &["bwrap", "systemd-nspawn", "nsjail"];

/// Options whose value is executed by a shell.
pub(crate) const TEXT_OPTIONS: &[(&str, &[&str])] = &[
    ("nix-shell", &["--run", "--command"]),
    ("npx", &["-c", "--call"]),
    ("npm", &["-c", "--call"]),
    ("pnpm", &["-c"]),
    ("bunx", &["-c"]),
    ("nodemon", &["-x", "--exec"]),
    ("cargo", &["-s", "--shell", "-x", "--exec"]),
    ("hyperfine", &["-p", "--prepare", "-s", "--setup", "-c", "--cleanup", "--conclude"]),
    ("tar", &["-I", "--use-compress-program", "--to-command", "-F", "--info-script", "--new-volume-script", "--rsh-command"]),
    ("rsync", &["-e", "--rsh", "--rsync-path"]),
    ("sort", &["--compress-program"]),
    ("split", &["--filter"]),
    ("capsh", &["-c"]),
    ("flox", &["-c", "--command"]),
    ("distrobox-enter", &["-c"]),
    ("perf", &["--pre", "--post"]),
    ("bazel", &["--run_under"]),
    ("consul-template", &["-exec"]),
    ("go", &["-exec", "-toolexec", "-vettool"]),
    ("man", &["-P", "--pager"]),
    ("npm", &["--script-shell"]),
    ("scp", &["-S"]),
    ("vagrant", &["-c", "--command"]),
    ("zip", &["-TT", "--unzip-command"]),
];

/// Programs whose operands are shell code.
pub(crate) const TEXT_OPERANDS: &[&str] =
    &["watch", "parallel", "sem", "hyperfine", "entr", "tmux", "watchexec", "concurrently", "pee", "nodemon", "cross-env-shell"];

/// Returns whether the operands of a program are shell code.
pub(crate) fn runs_operands(name: &str) -> bool {
    TEXT_OPERANDS.contains(&name)
}

/// Returns a command line for each table entry, with `command` in the position of the command.
#[cfg(test)]
pub(crate) fn lines(command: &str) -> Vec<String> {
    let runners = RUNNERS.iter().map(|one| format!("{} {} {}{command}", one.program, one.verbs, "word ".repeat(one.operands)));
    let options = COMMAND_OPTIONS
        .iter()
        .flat_map(|(program, options)| options.iter().map(move |option| format!("{program} word {option} {command}")));
    let texts = TEXT_OPTIONS
        .iter()
        .flat_map(|(program, options)| options.iter().map(move |option| format!("{program} word {option} '{command}'")));
    let operands = TEXT_OPERANDS.iter().filter(|program| **program != "tmux").map(|program| format!("{program} '{command}'"));
    let anywhere = ANYWHERE.iter().map(|program| format!("{program} --bind a b {command}"));
    runners.chain(options).chain(texts).chain(operands).chain(anywhere).collect()
}
