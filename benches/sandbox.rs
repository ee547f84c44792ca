//! What it costs to hold a command: a plain spawn, one under aye's helper, and one in each kind of sandbox.
//!
//! `cargo bench --bench sandbox` prints one row a figure: the median of 200 runs, and the limit it is meant to hold.

#![expect(clippy::unwrap_used, reason = "a measurement that cannot be made ends the run")]

#[allow(dead_code, unused_imports)]
#[path = "../src/sys/mod.rs"]
mod sys;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use sys::process::{End, Environment, Helper, Spec, command_environment, is_helper, run, supervise_main};
use sys::sandbox::{Confinement, Layered, NetworkAccess, ResourceLimits, Strength, View, probe};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

const RUNS: usize = 200;

fn main() {
    if is_helper() {
        supervise_main();
    }
    let directory = tempfile::tempdir_in(std::env::current_exe().unwrap().parent().unwrap()).unwrap();
    let base = std::fs::canonicalize(directory.path()).unwrap();
    for name in ["workspace", "upper", "work"] {
        std::fs::create_dir(base.join(name)).unwrap();
    }
    std::fs::create_dir_all(base.join("workspace/.git/hooks")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let timed = |confinement: Option<Confinement>| {
        median(|| {
            let (live, _received) = mpsc::channel(1);
            let finished = runtime.block_on(run(spec(&base, confinement.clone()), live, CancellationToken::new())).unwrap();
            assert_eq!(finished.end, End::Exited(0), "{}", finished.stderr.text(1000));
        })
    };
    println!("{:<44} {:>10} {:>10}", "figure (median)", "measured", "limit");
    let plain = median(|| {
        let status = Command::new("bash").args(["--noprofile", "--norc", "-c", "true"]).stdin(Stdio::null()).status().unwrap();
        assert!(status.success());
    });
    row("plain spawn of a shell", plain, None);
    row("under aye's helper, sandbox off", timed(None), None);
    let guarded = timed(Some(confinement(&base, View::Real)));
    row("sandboxed", guarded, None);
    row("sandboxed, over plain", guarded.saturating_sub(plain), Some(5));
    let layer = Layered { directory: base.join("workspace"), upper: base.join("upper"), work: base.join("work") };
    let layered = timed(Some(confinement(&base, View::CopyOnWrite(vec![layer]))));
    row("with a layer over the workspace", layered, None);
    row("the layer, over sandboxed", layered.saturating_sub(guarded), Some(20));
    let program = Path::new("/proc/self/exe");
    row("probe", median(|| drop(probe(program, &[base.join("workspace")], &base.join("data")))), Some(10));
}

fn spec(base: &Path, confinement: Option<Confinement>) -> Spec {
    Spec {
        line: "true".to_owned(),
        directory: base.join("workspace"),
        environment: command_environment(std::env::vars_os(), &Environment::Core, &[], &|_| false),
        stdin: None,
        terminal: None,
        confinement,
        proxy: None,
        timeout: Duration::from_secs(60),
        max_output_bytes: 1024,
        helper: Helper::default(),
    }
}

/// As an ordinary command has it: some places hidden, some protected, one of them missing.
fn confinement(base: &Path, view: View) -> Confinement {
    let workspace = base.join("workspace");
    Confinement {
        strength: Strength::Namespaces,
        roots: vec![workspace.clone()],
        view,
        writable: Vec::new(),
        read_only: [".git/hooks", ".aye", ".git/config"].map(|name| workspace.join(name)).into(),
        reopened: Vec::new(),
        hidden: vec![base.join("data")],
        caches: Vec::new(),
        network: NetworkAccess::Proxied,
        limits: ResourceLimits { processes: Some(500), ..ResourceLimits::default() },
    }
}

fn median(mut action: impl FnMut()) -> Duration {
    let mut times: Vec<_> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            action();
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[RUNS / 2]
}

fn row(figure: &str, measured: Duration, limit: Option<u64>) {
    let limit = limit.map(Duration::from_millis);
    let mark = if limit.is_some_and(|limit| measured > limit) { "  over" } else { "" };
    let limit = limit.map_or_else(String::new, |limit| format!("{:>7.2} ms", limit.as_secs_f64() * 1000.0));
    println!("{figure:<44} {:>7.2} ms {limit:>10}{mark}", measured.as_secs_f64() * 1000.0);
}
