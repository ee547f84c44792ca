//! Programs that run the command in their arguments. Their options are known, so the position at which the command
//! starts can be determined.

use super::arg::Arg;
use super::runners::{ANYWHERE, COMMAND_OPTIONS, RUNNERS};
use std::collections::HashSet;

/// Options of a program that runs the command in its arguments.
struct Wrapper {
    name: &'static str,
    /// Short options that take no value.
    flags: &'static str,
    /// Short options that take a value.
    valued: &'static str,
    /// Long options that take the next word as their value.
    long: &'static [&'static str],
    /// Number of operands that precede the command, as in `timeout 5 …`.
    operands: usize,
}

const fn wrapper(
    name: &'static str,
    flags: &'static str,
    valued: &'static str,
    long: &'static [&'static str],
    operands: usize,
) -> Wrapper {
    Wrapper { name, flags, valued, long, operands }
}

/// Maximum number of positions in a command at which the inner command is assumed to start.
const MAX_STARTS: usize = 64;

const WRAPPERS: &[Wrapper] = &[
    wrapper("env", "i0v", "uCSa", &["unset", "chdir", "split-string", "argv0"], 0),
    wrapper("command", "p", "", &[], 0),
    wrapper("builtin", "", "", &[], 0),
    wrapper("exec", "cl", "a", &[], 0),
    wrapper("nohup", "", "", &[], 0),
    wrapper("timeout", "v", "ks", &["kill-after", "signal"], 1),
    wrapper("nice", "", "n", &["adjustment"], 0),
    wrapper("ionice", "t", "cnpPu", &["class", "classdata", "pid", "pgid", "uid"], 0),
    wrapper("chrt", "abdfiomprv", "TPD", &["sched-runtime", "sched-period", "sched-deadline"], 1),
    wrapper("taskset", "ac", "p", &[], 1),
    wrapper("numactl", "sHl", "iNCmp", &["interleave", "cpunodebind", "physcpubind", "membind", "preferred"], 0),
    wrapper("choom", "", "n", &["adjust"], 0),
    wrapper("setsid", "cfw", "", &[], 0),
    wrapper("stdbuf", "", "ioe", &["input", "output", "error"], 0),
    wrapper("unbuffer", "p", "", &[], 0),
    wrapper("time", "apqvV", "fo", &["format", "output"], 0),
    wrapper("coproc", "", "", &[], 0),
    wrapper(
        "xargs",
        "0oprtx",
        "adEeIiLlnPs",
        &["arg-file", "delimiter", "max-args", "max-procs", "max-chars", "process-slot-var"],
        0,
    ),
    wrapper("parallel", "0kqtuvX", "aIjLNnPS", &["jobs", "arg-file", "colsep", "delay", "joblog", "sshlogin", "max-args"], 0),
    wrapper("watch", "bcegtwx", "n", &["interval"], 0),
    wrapper("flock", "enosuxF", "wE", &["timeout", "conflict-exit-code"], 1),
    wrapper("chroot", "", "", &["userspec", "groups"], 1),
    wrapper("unshare", "CTUimnprufc", "SGRw", &["setuid", "setgid", "root", "wd", "propagation", "kill-child"], 0),
    wrapper("nsenter", "CTUimnpraFe", "tSGw", &["target", "setuid", "setgid"], 0),
    wrapper("setpriv", "d", "", &["reuid", "regid", "groups", "inh-caps", "ambient-caps", "bounding-set", "securebits"], 0),
    wrapper("prlimit", "", "p", &["pid"], 0),
    wrapper("setarch", "hvRFZLXBIST3", "", &[], 1),
    wrapper("linux32", "hvRFZLXBIST3", "", &[], 0),
    wrapper("linux64", "hvRFZLXBIST3", "", &[], 0),
    wrapper("strace", "cCdfFhiknqrtTvVwxyzZ", "aeEIoOpPsSuUX", &[], 0),
    wrapper("ltrace", "cCfhiLrStTV", "aADeFlnopsuwx", &[], 0),
    wrapper("fakeroot", "huv", "lsibt", &["lib", "faked"], 0),
    wrapper("faketime", "fmp", "", &[], 1),
    wrapper("firejail", "", "", &[], 0),
    wrapper("bwrap", "", "", &[], 0),
    wrapper("systemd-run", "dGPqrtS", "EpuMHl", &["unit", "property", "uid", "gid", "slice", "description"], 0),
    wrapper("systemd-inhibit", "", "", &[], 0),
    wrapper("dbus-run-session", "", "", &["config-file", "dbus-daemon"], 0),
    wrapper("xvfb-run", "al", "efnps", &[], 0),
    wrapper("cgexec", "", "g", &[], 0),
    wrapper("rlwrap", "acirRmnN", "bfHlOpPqsStw", &[], 0),
    wrapper("proxychains", "q", "f", &[], 0),
    wrapper("proxychains4", "q", "f", &[], 0),
    wrapper("torsocks", "", "", &[], 0),
    wrapper("eatmydata", "", "", &[], 0),
    wrapper("chronic", "ev", "", &[], 0),
    wrapper("caffeinate", "dimsu", "tw", &[], 0),
    wrapper("busybox", "", "", &[], 0),
    wrapper("toybox", "", "", &[], 0),
    wrapper(
        "sudo",
        "ABbEeHiKklnPSsVv",
        "CDghpRrTtUu",
        &["user", "group", "host", "prompt", "chdir", "chroot", "type", "role"],
        0,
    ),
    wrapper("doas", "Lns", "aCu", &[], 0),
    wrapper("pkexec", "", "", &["user"], 0),
    wrapper("hyperfine", "iN", "wmrMspcLn", &["warmup", "runs", "prepare", "setup", "cleanup", "command-name"], 0),
    wrapper("entr", "acdnprsx", "", &[], 0),
    wrapper("ts", "", "", &[], 0),
    wrapper("gdb", "nqv", "xpcd", &["command", "pid", "core", "ex", "eval-command"], 0),
    wrapper("lldb", "bQ", "oksS", &["one-line", "source"], 0),
    wrapper("valgrind", "qvhd", "", &[], 0),
    wrapper("perf", "", "", &[], 1),
    wrapper("rr", "", "", &[], 1),
    wrapper("heaptrack", "", "o", &[], 0),
    wrapper("ld.so", "", "", &["library-path", "preload", "audit", "inhibit-rpath", "argv0"], 0),
    wrapper("runuser", "lfmP", "cgGsuTw", &["command", "group", "supp-group", "shell", "user", "whitelist-environment"], 0),
    wrapper("tini", "ghsvw", "ep", &[], 0),
    wrapper("dumb-init", "chvV", "r", &["rewrite"], 0),
    wrapper("gosu", "", "", &[], 1),
    wrapper("su-exec", "", "", &[], 1),
    wrapper("setuidgid", "", "", &[], 1),
    wrapper("ssh-agent", "cDdks", "aEOPt", &[], 0),
    wrapper("proot", "0hvV", "bmqrRSwkpil", &["rootfs", "bind", "cwd", "kernel-release", "qemu"], 0),
    wrapper("screen", "adDiLmOqrRUwxXA", "cehpsStT", &[], 0),
    wrapper("tmux", "AdDEPXbhIvZ", "cefFnstxylpT", &[], 0),
    wrapper("spawn", "", "", &[], 0),
];

/// Entry used for the runners in `runners.rs`, whose options are unknown.
const RUNNER: Wrapper = wrapper("", "", "", &[], 0);

fn find_wrapper(name: &str) -> Option<&'static Wrapper> {
    let loader = name.starts_with("ld-linux") || name.starts_with("ld-musl");
    let name = if loader { "ld.so" } else { name };
    WRAPPERS.iter().find(|wrapper| wrapper.name == name)
}

/// Returns whether a program with this name can start another program that is named in its arguments.
pub(crate) fn wraps(name: &str) -> bool {
    find_wrapper(name).is_some()
        || RUNNERS.iter().any(|runner| runner.program == name)
        || COMMAND_OPTIONS.iter().any(|(program, _)| *program == name)
        || ANYWHERE.contains(&name)
}

/// Returns the positions at which a program's inner command can start. There are several if it is unknown whether an
/// option takes a value.
pub(crate) fn inner_starts(name: &str, argv: &[Arg]) -> Vec<usize> {
    let mut found = find_wrapper(name).map_or_else(Vec::new, |wrapper| wrapper.inner_starts(argv, "", wrapper.operands));
    for runner in RUNNERS.iter().filter(|runner| runner.program == name) {
        found.extend(RUNNER.inner_starts(argv, runner.verbs, runner.operands));
    }
    for (_, options) in COMMAND_OPTIONS.iter().filter(|(program, _)| *program == name) {
        let behind = |(at, arg): (usize, &Arg)| options.contains(&arg.text.as_str()).then_some(at + 1);
        found.extend(argv.iter().enumerate().skip(1).filter_map(behind).filter(|at| *at < argv.len()));
    }
    if ANYWHERE.contains(&name) {
        found.extend((1..argv.len()).filter(|at| !argv[*at].text.starts_with('-')).take(MAX_STARTS));
    }
    found.sort_unstable();
    found.dedup();
    found
}

impl Wrapper {
    fn inner_starts(&self, argv: &[Arg], verbs: &str, operands: usize) -> Vec<usize> {
        let verbs: Vec<&str> = verbs.split_whitespace().collect();
        let mut starts = Vec::new();
        // State: the current word, the number of verbs and operands still expected, and whether options have ended.
        let mut open = vec![(1_usize, 0_usize, operands, false)];
        let mut seen = HashSet::new();
        while let Some(state @ (at, verb, operands, closed)) = open.pop() {
            let Some(arg) = argv.get(at) else { continue };
            if starts.len() > MAX_STARTS || open.len() > MAX_STARTS || !seen.insert(state) {
                continue;
            }
            let text = arg.text.as_str();
            if !closed && text == "--" {
                open.push((at + 1, verb, operands, true));
            } else if !closed && text.len() > 1 && text.starts_with('-') {
                let (one, two) = self.option(text);
                if one {
                    open.push((at + 1, verb, operands, false));
                }
                if two {
                    open.push((at + 2, verb, operands, false));
                }
            } else if let Some(wanted) = verbs.get(verb) {
                if text == *wanted || !arg.is_known() {
                    open.push((at + 1, verb + 1, operands, closed));
                }
            } else if text.starts_with('+') && self.name == "xargs"
                || self.accepts_assignments() && is_assignment(text)
                || text == "-"
            {
                open.push((at + 1, verb, operands, closed));
            } else if operands > 0 {
                // Some programs have further options after the operand: `perf record -g …`.
                open.push((at + 1, verb, operands - 1, !matches!(self.name, "" | "perf" | "rr")));
            } else {
                if !starts.contains(&at) {
                    starts.push(at);
                }
                if !arg.is_known() && !arg.quoted {
                    // The word may expand to nothing.
                    open.push((at + 1, verb, 0, true));
                }
            }
        }
        starts
    }

    fn accepts_assignments(&self) -> bool {
        matches!(self.name, "" | "env" | "sudo" | "doas" | "exec")
    }

    /// Returns whether the option may be complete with this word, and whether the next word may be its value.
    fn option(&self, text: &str) -> (bool, bool) {
        if let Some(long) = text.strip_prefix("--") {
            if long.contains('=') {
                return (true, false);
            }
            // The next word may be the value of an unknown option.
            let valued = self.long.iter().any(|known| known.starts_with(long));
            return (!valued, true);
        }
        for (index, letter) in text[1..].char_indices() {
            if self.valued.contains(letter) {
                let last = index + letter.len_utf8() == text.len() - 1;
                // For xargs, the value of `-i`, `-e` and `-l` must be attached to the option.
                let optional = self.name == "xargs" && matches!(letter, 'e' | 'i' | 'l');
                return (!last || optional, last && !optional);
            }
            if !self.flags.contains(letter) && !letter.is_ascii_digit() {
                return (true, true);
            }
        }
        (true, false)
    }
}

fn is_assignment(text: &str) -> bool {
    super::names::assigned_name(text).is_some()
}
