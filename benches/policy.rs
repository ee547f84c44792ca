//! Cost of a verdict, for ordinary lines, the corpus, and lines of growing length that are designed to be slow.
//!
//! `cargo bench --profile dist --bench policy` prints one row per figure: the measured value and its limit.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a failed measurement ends the run")]

/// Path in the shared test material. The library defines the same macro; the modules below use it in their tests.
macro_rules! shared {
    ($path:literal) => {
        std::path::Path::new(env!("AYE_SHARED_DIR")).join($path)
    };
}

#[allow(dead_code, unused_imports)]
#[path = "../src/policy/mod.rs"]
mod policy;
#[allow(dead_code, unused_imports)]
#[path = "../src/protocol/mod.rs"]
mod protocol;

use policy::{Bundle, Context, Enforcer, Layer, Sandbox, Scope};
use protocol::{Action, Mode, Place, Target};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

const ROUNDS: usize = 50;
const LENGTHS: [usize; 5] = [1 << 10, 8 << 10, 32 << 10, 127 << 10, 1 << 20];

/// Lines that are designed to be slow: name, start, repeated part, end.
const SLOW: &[(&str, &str, &str, &str)] = &[
    ("words", "ls ", "file ", ""),
    ("parts", "", "ls; ", ""),
    ("different variables", "", "a=a; $a; ", ""),
    ("open parentheses", "", "(", ""),
    ("closed parentheses", "", ")", ""),
    ("open substitutions", "", "$(", ""),
    ("open parameters", "", "${x:-", ""),
    ("open arithmetic", "", "$((", ""),
    ("open brackets", "", "$[", ""),
    ("open arrays", "", "a=(", ""),
    ("open braces", "", "{", ""),
    ("alternatives", "echo {", "a,", "b}"),
    ("products", "echo ", "{a,b}", ""),
    ("double quotes", "", "\"", ""),
    ("single quotes", "", "'", ""),
    ("backticks", "", "`", ""),
    ("backslashes", "", "\\", ""),
    ("bars", "", "|", ""),
    ("semicolons", "", ";", ""),
    ("here-documents", "", "cat <<E\nx\nE\n", ""),
    ("one here-document", "cat <<'E'\n", "a line of text\n", "E"),
    ("open here-documents", "cat ", "<<E ", ""),
    ("substitutions", "ls ", "$(ls) ", ""),
    ("nested shells", "", "sh -c 'ls'; ", ""),
    ("wrappers", "", "env ", "ls"),
    ("evaluations", "", "eval ", "ls"),
    ("functions", "", "f() { f; }; ", ""),
    ("aliases", "", "alias a='a a'; a; ", ""),
    ("a loop", "for i in ", "a ", "; do $i; done"),
    ("positional parameters", "set -- ", "a ", "; \"$@\""),
    ("NUL bytes", "", "\0", ""),
    ("letters", "", "é", ""),
];

const ORDINARY: &[&str] = &[
    "ls -la src",
    "git status --short",
    "git log --oneline -n 20 --format='%h %s' -- src",
    "grep -rn 'foo|bar' src --include='*.rs' | head -n 20",
    "find . -name '*.rs' -not -path './target/*' -type f | head",
    "cargo test --workspace 2>&1 | tail -20",
    "git add -A && git commit -m 'a message' && git push",
    "cat > notes.md <<'E'\nsome text\nof two lines\nE",
    "for f in src/*.rs; do wc -l \"$f\"; done",
    "bash -lc 'cd src && rg -n TODO'",
];

fn main() {
    let enforcer = enforcer();
    println!("{:<44} {:>10} {:>10}", "figure", "measured", "limit");
    let ordinary: Vec<String> = ORDINARY.iter().map(|line| (*line).to_owned()).collect();
    spread("an ordinary line", &enforcer, &ordinary);
    corpus(&enforcer, &shared!("corpora/commands.jsonl"));
    for length in LENGTHS {
        println!();
        for (name, start, again, end) in SLOW {
            let line = format!("{start}{}{end}", again.repeat(length / again.len()));
            let best = (0..3).map(|_| took(&enforcer, &line)).fold(f64::INFINITY, f64::min);
            row(&format!("{name}, {} KiB", length >> 10), best / 1000.0, 50.0, "ms");
        }
    }
}

fn enforcer() -> Enforcer {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/policy/reading.toml")).unwrap();
    let bundle = Bundle::parse(&text, "reading.toml").expect("a bundle");
    let context = Context {
        roots: vec![PathBuf::from("/home/user/project")],
        home: PathBuf::from("/home/user"),
        mode: Mode::Ask,
        sandbox: Sandbox::Present,
        own: Vec::new(),
        skills: Vec::new(),
    };
    Enforcer::new(vec![Layer::new(Scope::User, bundle)], context)
}

/// Returns the duration of one verdict, in microseconds.
fn took(enforcer: &Enforcer, line: &str) -> f64 {
    let cwd = Target { given: ".".into(), real: PathBuf::from("/home/user/project"), place: Place::Directory };
    let actions = [Action::Exec { command: line.to_owned(), cwd }];
    let began = Instant::now();
    black_box(enforcer.explain(&actions, jiff::Timestamp::UNIX_EPOCH));
    began.elapsed().as_secs_f64() * 1e6
}

fn spread(name: &str, enforcer: &Enforcer, lines: &[String]) {
    let mut times: Vec<f64> = (0..ROUNDS).flat_map(|_| lines.iter().map(|line| took(enforcer, line))).collect();
    times.sort_by(f64::total_cmp);
    row(&format!("{name} (median)"), times[times.len() / 2], 200.0, "us");
    row(&format!("{name} (95 of 100)"), times[times.len() * 95 / 100], 1000.0, "us");
}

fn corpus(enforcer: &Enforcer, path: &Path) {
    let Ok(text) = std::fs::read_to_string(path) else {
        println!("skipped: no corpus at {}", path.display());
        return;
    };
    let parsed = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let lines: Vec<String> = parsed.filter_map(|case| case["command"].as_str().map(str::to_owned)).collect();
    spread("a line of the corpus", enforcer, &lines);
    let total: f64 = lines.iter().map(|line| took(enforcer, line)).sum();
    row(&format!("the whole corpus, {} lines", lines.len()), total / 1000.0, 200.0, "ms");
}

fn row(figure: &str, measured: f64, limit: f64, unit: &str) {
    let mark = if measured > limit { "  over" } else { "" };
    println!("{figure:<44} {measured:>7.2} {unit:<2} {limit:>7.0} {unit}{mark}");
}
