//! Duration of searches compared with well-known programs, run alternately: Grep and ripgrep, Glob and fd,
//! ListDirectory and ls. Each search is measured as the tool alone, and as a whole `aye tool call`, which includes
//! startup.
//!
//! `cargo bench --profile dist --bench search` prints one row per search: the medians, their ratio, and the target
//! ratio.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed measurement ends the run")]

/// Path in the shared test material. The library defines the same macro; the modules below use it in their tests.
#[cfg(test)]
macro_rules! shared {
    ($path:literal) => {
        std::path::Path::new(env!("AYE_SHARED_DIR")).join($path)
    };
}

#[allow(dead_code, unused_imports)]
#[path = "../src/hooks/mod.rs"]
mod hooks;
#[allow(dead_code, unused_imports)]
#[path = "../src/policy/mod.rs"]
mod policy;
#[allow(dead_code, unused_imports)]
#[path = "../src/ports/mod.rs"]
mod ports;
#[allow(dead_code, unused_imports)]
#[path = "../src/protocol/mod.rs"]
mod protocol;
#[allow(dead_code, unused_imports)]
#[path = "../src/session/mod.rs"]
mod session;
#[allow(dead_code, unused_imports)]
#[path = "../src/skills/mod.rs"]
mod skills;
#[allow(dead_code, unused_imports)]
#[path = "../src/store/mod.rs"]
mod store;
#[allow(dead_code, unused_imports)]
#[path = "../src/subagents/mod.rs"]
mod subagents;
#[allow(dead_code, unused_imports)]
#[path = "../src/sys/mod.rs"]
mod sys;
#[allow(dead_code, unused_imports)]
#[path = "../src/text/mod.rs"]
mod text;
#[allow(dead_code, unused_imports)]
#[path = "../src/tools/mod.rs"]
mod tools;

use policy::redact::Redactor;
use policy::{Bundle, Context, Enforcer, Explanation, Layer, Sandbox, Scope, Verdict};
use ports::{RunContext, ToolRouter};
use protocol::TextTools;
use protocol::{Action, CallArguments, CallId, Mode, Place, Target, ToolCall, ToolStatus, VerdictKind};
use serde_json::{Value, json};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;
use sys::http::fetch::Fetcher;
use sys::process::{EnvironmentSelection, Helper, Shell};
use tools::{
    CommandSettings, HttpAccess, PathAccess, Router, SandboxPolicy, SessionServices, ToolSettings, ToolSources, Toolset,
};

const RUNS: usize = 15;
const GREP_LIMIT: f64 = 1.15;
const LIST_LIMIT: f64 = 1.5;

/// Size of the tree of many small files.
const DIRECTORIES: usize = 1_000;
const FILES_EACH: usize = 20;
/// Size of the tree of few large files.
const LARGE_FILES: usize = 4;
const LARGE_LINES: usize = 1_000_000;
/// Entries to list: directories with empty files.
const LISTED_DIRECTORIES: usize = 1_000;
const LISTED_EACH: usize = 100;

const WORDS: &str = "alpha beta gamma delta config value struct impl return match error index buffer length parse word stream \
     handle request response thread mutex option result string vector iterator closure lifetime module self.width() foo_bar: \
     items[0] => Some(value) if x == y { } // \"text\" println!(\"{x}\"); use crate::deep::module;";

/// Searches: name, pattern, arguments of Grep, arguments of ripgrep.
const SEARCHES: &[(&str, &str, &str, &[&str])] = &[
    ("a rare word", "needle_in_haystack", "{}", &["-n"]),
    ("a common word", "value", "{}", &["-n"]),
    ("alternatives", "(needle|nothing)_[a-z]+_haystack", "{}", &["-n"]),
    ("a class, no literal", "[A-Z][a-z]+\\(value\\) if", "{}", &["-n"]),
    ("either case", "NEEDLE_in_haystack", "{\"ignoreCase\":true}", &["-n", "-i"]),
    ("no match", "zebra_crossing", "{}", &["-n"]),
    ("every line", ".", "{}", &["-n"]),
    ("lines around", "needle_in", "{\"context\":3}", &["-n", "-C3"]),
    ("files only", "value", "{\"output\":\"files\"}", &["-l"]),
    ("counts", "value", "{\"output\":\"count\"}", &["-c"]),
    ("over lines", "needle_in_haystack;\\nalpha", "{\"multiline\":true}", &["-n", "-U"]),
];

fn main() {
    if sys::process::is_helper() {
        sys::process::supervise_main();
    }
    let directory = tempfile::tempdir().unwrap();
    let base = fs::canonicalize(directory.path()).unwrap();
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let wanted = |name: &str| only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    println!(
        "{:<34} {:>9} {:>9} {:>9} {:>7} {:>7} {:>6}",
        "search (median, ms)", "tool", "aye", "other", "tool/o", "aye/o", "limit"
    );
    let mut random = Random(7);
    if wanted("small") {
        small(&base.join("small"), &mut random);
        greps(&base, "small", "rg");
    }
    if wanted("large") {
        large(&base.join("large"), &mut random);
        greps(&base, "large", "rg");
    }
    if wanted("list") {
        listed(&base.join("list"));
        let lists = Tree::new(&base, "list");
        let fd = ["fdfind", "fd"].into_iter().find(|name| is_there(name)).unwrap_or("fd");
        let all = ["-H", "-t", "f", "-g"];
        for (name, pattern) in [("a quarter of the files", "*.rs"), ("no file", "*.zebra"), ("every file", "*")] {
            let other = [&all[..], &[pattern]].concat();
            lists.row(&format!("Glob: {name}"), "Glob", json!({"pattern": format!("**/{pattern}")}), fd, &other, LIST_LIMIT);
        }
        let arguments = json!({"path": ".", "recursive": true});
        lists.row("ListDirectory, against ls -R", "ListDirectory", arguments.clone(), "ls", &["-R"], LIST_LIMIT);
        lists.row("ListDirectory, against fd", "ListDirectory", arguments, fd, &["-H"], LIST_LIMIT);
    }
}

fn greps(base: &Path, tree: &str, program: &str) {
    let tree = Tree::new(base, tree);
    for (name, pattern, arguments, other) in SEARCHES {
        let mut arguments: Value = serde_json::from_str(arguments).unwrap();
        arguments["pattern"] = (*pattern).into();
        let other = [&["--no-config", "--hidden", "-g", "!.git"], *other, &["--", pattern, "."]].concat();
        tree.row(&format!("Grep, {} files: {name}", tree.name), "Grep", arguments, program, &other, GREP_LIMIT);
    }
}

fn is_there(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Workspace to search.
struct Tree {
    name: String,
    root: PathBuf,
    home: PathBuf,
    router: Router,
    enforcer: Enforcer,
    runtime: tokio::runtime::Runtime,
}

impl Tree {
    fn new(base: &Path, name: &str) -> Self {
        let (root, home) = (base.join(name), base.join("home"));
        fs::create_dir_all(&home).unwrap();
        let enforcer = enforcer(&root, &home);
        let router = Router::new(Toolset::new(settings(&root, &home, &enforcer), ToolSources::default()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { name: name.to_owned(), root, home, router, enforcer, runtime }
    }

    fn row(&self, name: &str, tool: &str, arguments: Value, program: &str, other: &[&str], limit: f64) {
        if !is_there(program) {
            println!("{name:<34} skipped: {program} is not installed");
            return;
        }
        let mut times = [const { Vec::new() }; 3];
        for run in 0..=RUNS {
            let took = [
                timed(|| self.tool(tool, &arguments)),
                timed(|| self.whole(tool, &arguments)),
                timed(|| self.other(program, other)),
            ];
            // The first run fills the caches.
            if run > 0 {
                times.iter_mut().zip(took).for_each(|(times, took)| times.push(took));
            }
        }
        let [alone, whole, other] = times.map(median);
        let (ratio, mark) = (alone / other, if alone / other > limit { "  over" } else { "" });
        let whole_ratio = whole / other;
        println!("{name:<34} {alone:>9.1} {whole:>9.1} {other:>9.1} {ratio:>7.2} {whole_ratio:>7.2} {limit:>6.2}{mark}");
    }

    fn tool(&self, tool: &str, arguments: &Value) {
        let Value::Object(arguments) = arguments.clone() else { panic!("no object") };
        let call =
            ToolCall { tool_call_id: CallId::new("c"), tool_name: tool.to_owned(), arguments: CallArguments::Object(arguments) };
        let result = self.runtime.block_on(async {
            let plan = self.router.plan(call).await.unwrap();
            let Verdict::Allow(permit) = self.enforcer.judge(&plan.actions, jiff::Timestamp::now()) else {
                panic!("{tool} is not allowed")
            };
            let context = RunContext::detached();
            self.router.run(plan, permit, context).await
        });
        assert_eq!(result.status, ToolStatus::Succeeded, "{result:?}");
    }

    fn whole(&self, tool: &str, arguments: &Value) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aye"));
        command.args(["tool", "call", tool, "--args", &arguments.to_string()]).env("HOME", &self.home);
        for name in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"] {
            command.env_remove(name);
        }
        let output = command.current_dir(&self.root).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn other(&self, program: &str, arguments: &[&str]) {
        let output = Command::new(program).args(arguments).current_dir(&self.root).stdin(Stdio::null()).output().unwrap();
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

fn timed(work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_secs_f64() * 1000.0
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn enforcer(root: &Path, home: &Path) -> Enforcer {
    let text = include_str!("../assets/policy/default.toml");
    let bundle = Bundle::parse(text, "built-in").unwrap();
    let context = Context {
        roots: vec![root.to_owned()],
        home: home.to_owned(),
        mode: Mode::Ask,
        sandbox: Sandbox::Present,
        own: vec![home.join(".config/aye"), home.join(".local/share/aye")],
        skills: Vec::new(),
    };
    Enforcer::new(vec![Layer::new(Scope::BuiltIn, bundle)], context)
}

/// Returns settings as in a session.
fn settings(root: &Path, home: &Path, enforcer: &Enforcer) -> ToolSettings {
    let (judge, entries) = (enforcer.clone(), enforcer.clone());
    ToolSettings {
        workspace: root.to_owned(),
        home: Some(home.to_owned()),
        max_file_size_bytes: 10 * 1024 * 1024,
        max_output_bytes: 100 * 1024,
        paths: PathAccess {
            may_read: Arc::new(move |path| {
                let target = Target { given: String::new(), real: path.to_owned(), place: Place::File { bytes: 0 } };
                judge.explain(&[Action::Read { target }], jiff::Timestamp::UNIX_EPOCH).verdict != VerdictKind::Deny
            }),
            may_read_entry: Some(Arc::new(move |path| entries.is_entry_readable(path, jiff::Timestamp::UNIX_EPOCH))),
            may_write: Arc::new(|_| false),
            may_delete: Arc::new(|_| false),
            may_open: Arc::new(|_| false),
            may_show: Arc::new(|_| false),
            may_follow: Arc::new(|_| true),
            relative_paths: true,
            follow_links: true,
        },
        http: HttpAccess {
            may_fetch: Arc::new(|url, _| Explanation::unreadable(format!("{url} is not approved"))),
            may_connect: Arc::new(|url, address| Err(format!("no connection to {address} for {url}"))),
            fetcher: Fetcher::default(),
        },
        session: SessionServices::detached(),
        command: CommandSettings {
            shell: Shell::Bash,
            environment: EnvironmentSelection::Core,
            secret_names: Vec::new(),
            helper: Helper::default(),
            sandbox: SandboxPolicy::unsandboxed(),
            git_is_read_only: false,
            commit_target: None,
        },
        text: TextTools::default(),
        grants: Arc::new(|_| true),
        may_use: Arc::new(|_| Ok(())),
        redactor: Arc::new(Redactor::new(Vec::new(), [], || [7; 32])),
    }
}

/// Reproducible random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    fn line(&mut self, words: &[&str], text: &mut String) {
        text.push_str(&" ".repeat(4 * self.below(4)));
        for _ in 0..2 + self.below(9) {
            let _ = write!(text, "{} ", words[self.below(words.len())]);
        }
        text.push('\n');
    }
}

fn small(root: &Path, random: &mut Random) {
    let words: Vec<&str> = WORDS.split_whitespace().collect();
    for directory in 0..DIRECTORIES {
        let path = root.join(format!("d{}/s{}", directory / 10, directory % 10));
        fs::create_dir_all(&path).unwrap();
        for file in 0..FILES_EACH {
            let mut text = String::new();
            for _ in 0..20 + random.below(160) {
                random.line(&words, &mut text);
            }
            if (directory * FILES_EACH + file).is_multiple_of(997) {
                text.push_str("let needle_in_haystack;\nalpha\n");
            }
            fs::write(path.join(format!("f{file}.{}", ["rs", "py", "md", "txt"][file % 4])), text).unwrap();
        }
    }
    fs::create_dir(root.join(".git")).unwrap();
    fs::write(root.join(".gitignore"), "*.o\ntarget/\n").unwrap();
}

fn large(root: &Path, random: &mut Random) {
    let words: Vec<&str> = WORDS.split_whitespace().collect();
    fs::create_dir_all(root).unwrap();
    let mut part = String::new();
    for _ in 0..LARGE_LINES / 100 {
        random.line(&words, &mut part);
    }
    for file in 0..LARGE_FILES {
        let mut text = part.repeat(100);
        text.push_str("let needle_in_haystack;\nalpha\n");
        fs::write(root.join(format!("log{file}.txt")), text).unwrap();
    }
}

fn listed(root: &Path) {
    for directory in 0..LISTED_DIRECTORIES {
        let path = root.join(format!("dir{:02}/sub{}", directory / 10, directory % 10));
        fs::create_dir_all(&path).unwrap();
        for file in 0..LISTED_EACH {
            fs::write(path.join(format!("file{file:03}.{}", ["rs", "py", "md", "txt"][file % 4])), "").unwrap();
        }
    }
}
