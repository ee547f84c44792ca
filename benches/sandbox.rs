//! Cost of sandboxing a command and of previewing its effects: a plain spawn, a spawn through aye's helper, a spawn in
//! each kind of sandbox, ten changes in a large workspace, and a very large number of changes.
//!
//! `cargo bench --profile dist --bench sandbox` prints one row per figure: the median, the 95th percentile, and the
//! limit.

#![expect(clippy::unwrap_used, reason = "a failed measurement ends the run")]

#[allow(dead_code, unused_imports)]
#[path = "../src/sys/mod.rs"]
mod sys;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use sys::overlay::LayeredDirectory;
use sys::process::{CommandSpec, End, EnvironmentSelection, Helper, Shell, command_environment, is_helper, run, supervise_main};
use sys::sandbox::{Backend, Confinement, ResourceLimits, View, probe};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

const RUNS: usize = 200;
const FEWER_RUNS: usize = 50;
/// Number of directories in the large workspace.
const DIRECTORIES: usize = 1_000;
const FILES_EACH: usize = 100;
/// Typical number of caches of a user who works in several languages.
const CACHES: usize = 8;
/// Command that prints 1 GiB.
const FLOOD: &str = "head -c 1073741824 /dev/zero";

const CHANGES: &str = "for number in 0 1 2 3 4; do echo more >> d$number/f$number; echo new > d$number/new; done";

fn main() {
    if is_helper() {
        supervise_main();
    }
    let directory = tempfile::tempdir_in(std::env::current_exe().unwrap().parent().unwrap()).unwrap();
    let base = fs::canonicalize(directory.path()).unwrap();
    let bench = Bench { runtime: tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap(), base };
    println!("{:<52} {:>10} {:>10} {:>10}", "figure", "median", "95 of 100", "limit");
    bench.spawns();
    bench.large_workspace();
    bench.many_changes();
    bench.flood();
}

struct Bench {
    runtime: Runtime,
    base: PathBuf,
}

impl Bench {
    fn spawns(&self) {
        let workspace = self.directory("workspace");
        fs::create_dir_all(workspace.join(".git/hooks")).unwrap();
        let plain = times(RUNS, || {
            let line = ["--noprofile", "--norc", "-c", "true"];
            let status = Command::new("bash").args(line).stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap();
            assert!(status.success());
        });
        row("plain spawn of a shell", &plain, None);
        row("under aye's helper, sandbox off", &times(RUNS, || self.run(&workspace, "true", None)), None);
        let held = |view| confinement(&self.base, &workspace, view);
        let guarded = times(RUNS, || self.run(&workspace, "true", Some(held(View::Real))));
        row("sandboxed", &guarded, None);
        over("sandboxed, over plain", &guarded, &plain, 5);
        let caches: Vec<_> = (0..CACHES).map(|number| self.layer(&self.directory(&format!("cache-{number}")))).collect();
        let with_caches = Confinement { caches, ..held(View::Real) };
        let cached = times(RUNS, || self.run(&workspace, "true", Some(with_caches.clone())));
        over(&format!("sandboxed with {CACHES} caches, over plain"), &cached, &plain, 5);
        let layer = self.layer(&workspace);
        let layered = times(RUNS, || self.run(&workspace, "true", Some(held(View::CopyOnWrite(vec![layer.clone()])))));
        row("with a layer over the workspace", &layered, None);
        over("the layer, over sandboxed", &layered, &guarded, 20);
        let program = Path::new("/proc/self/exe");
        let data = self.directory("probed");
        row("probe", &times(RUNS, || drop(probe(program, std::slice::from_ref(&workspace), &data))), None);
    }

    /// Measures ten changes, first only previewed and then also applied, against the same changes made directly.
    fn large_workspace(&self) {
        let large = self.directory("large");
        for directory in 0..DIRECTORIES {
            let directory = large.join(format!("d{directory}"));
            fs::create_dir(&directory).unwrap();
            for file in 0..FILES_EACH {
                fs::write(directory.join(format!("f{file}")), "a line\n").unwrap();
            }
        }
        let real = times(FEWER_RUNS, || self.run(&large, CHANGES, Some(confinement(&self.base, &large, View::Real))));
        let shown = times(FEWER_RUNS, || drop(self.previewed(&large, CHANGES, 10)));
        let kept = times(FEWER_RUNS, || {
            let (view, changes) = self.previewed(&large, CHANGES, 10);
            assert!(sys::overlay::commit(&view, &[changes], &|_| ()).unwrap().is_whole());
            sys::overlay::discard(&view).unwrap();
        });
        let files = DIRECTORIES * FILES_EACH;
        row(&format!("10 changes among {files} files, made directly"), &real, None);
        over("the same previewed, over that", &shown, &real, 50);
        over("the same previewed and applied, over that", &kept, &real, 50);
    }

    /// Measures reading and applying a large number of changes. The command that makes the changes is not measured.
    fn many_changes(&self) {
        let many = self.directory("many");
        let files = |directories: usize| {
            format!("for d in $(seq {directories}); do mkdir -p $d; (cd $d; seq 1000 | split -l 1 -a 3 - f); done")
        };
        self.run(&many, &files(100), Some(confinement(&self.base, &many, View::Real)));
        let lists = [
            ("created", format!("mkdir new; cd new; {}", files(100)), 100_101),
            ("changed", format!("rm */*; {}", files(100).replace("seq 1000", "seq 1001 2000")), 100_000),
            ("deleted", "rm -r *".to_owned(), 100_100),
            ("moved", "mkdir new; mv [0-9]* new".to_owned(), 200_201),
        ];
        for (kind, line, count) in lists {
            let layer = self.view_of(&many, &line);
            let read = times(3, || assert_eq!(sys::overlay::changes(&layer.0, layer.1).unwrap().entries().len(), count));
            row(&format!("changes of 100,000 {kind} files read"), &read, Some(1_000));
        }
        fs::remove_dir_all(&many).unwrap();
        for (directories, limit) in [(1, 300), (30, 5_000)] {
            let (view, changes) = self.previewed(&self.directory("many"), &files(directories), directories * 1_001);
            let kept =
                times(1, || assert!(sys::overlay::commit(&view, std::slice::from_ref(&changes), &|_| ()).unwrap().is_whole()));
            row(&format!("{directories},000 created files applied"), &kept, Some(limit));
            let removed = times(1, || sys::overlay::discard(&view).unwrap());
            row("their layer removed", &removed, None);
            fs::remove_dir_all(&many).unwrap();
        }
    }

    fn previewed(&self, workspace: &Path, line: &str, count: usize) -> (PathBuf, sys::overlay::Changes) {
        let (layer, began) = self.view_of(workspace, line);
        let changes = sys::overlay::changes(&layer, began).unwrap();
        assert_eq!(changes.entries().len(), count);
        (self.base.join("view"), changes)
    }

    /// Runs a line in a new layer. Returns the layer and the time of its creation.
    fn view_of(&self, workspace: &Path, line: &str) -> (LayeredDirectory, sys::overlay::Time) {
        let view = self.directory("view");
        sys::overlay::discard(&view).unwrap();
        self.directory("view");
        let began = sys::overlay::mark(&view).unwrap();
        let layer = LayeredDirectory {
            directory: workspace.to_owned(),
            upper: self.directory("view/upper"),
            work: self.directory("view/work"),
        };
        self.run(workspace, line, Some(confinement(&self.base, workspace, View::CopyOnWrite(vec![layer.clone()]))));
        (layer, began)
    }

    fn flood(&self) {
        let workspace = self.directory("workspace");
        let before = peak_kib();
        let took = times(1, || self.run(&workspace, FLOOD, Some(confinement(&self.base, &workspace, View::Real))));
        row("output of 1 GiB", &took, None);
        println!("{:<52} {:>7} KiB", "additional memory for that", peak_kib().saturating_sub(before));
    }

    fn run(&self, workspace: &Path, line: &str, confinement: Option<Confinement>) {
        let spec = CommandSpec {
            line: line.to_owned(),
            shell: Shell::Bash,
            directory: workspace.to_owned(),
            environment: command_environment(std::env::vars_os(), &EnvironmentSelection::Core, &[], &|_| false),
            stdin: None,
            terminal: None,
            confinement,
            proxy: None,
            timeout: Duration::from_secs(600),
            max_output_bytes: 64 * 1024,
            helper: Helper::default(),
        };
        let (live, _received) = mpsc::channel(1);
        let finished = self.runtime.block_on(run(spec, live, CancellationToken::new())).unwrap();
        assert_eq!(finished.end, End::Exited(0), "{}", finished.stderr.text(1000));
    }

    fn directory(&self, name: &str) -> PathBuf {
        let directory = self.base.join(name);
        fs::create_dir_all(&directory).unwrap();
        directory
    }

    fn layer(&self, directory: &Path) -> LayeredDirectory {
        let name = directory.file_name().unwrap().to_string_lossy();
        let [upper, work] = ["upper", "work"].map(|kind| self.directory(&format!("{kind}-{name}")));
        LayeredDirectory { directory: directory.to_owned(), upper, work }
    }
}

/// Returns a typical confinement with hidden and protected paths, one of which is missing.
fn confinement(base: &Path, workspace: &Path, view: View) -> Confinement {
    Confinement {
        view,
        read_only: [".git/hooks", ".aye", ".git/config"].map(|name| workspace.join(name)).into(),
        hidden: vec![base.join("data")],
        limits: ResourceLimits { processes: Some(500), ..ResourceLimits::default() },
        ..Confinement::new(Backend::Namespaces, vec![workspace.to_owned()])
    }
}

/// Returns the peak memory of this process so far, in KiB.
fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap()
}

/// Returns the durations of the runs in ascending order.
fn times(runs: usize, mut action: impl FnMut()) -> Vec<Duration> {
    let once = |_| {
        let start = Instant::now();
        action();
        start.elapsed()
    };
    let mut times: Vec<_> = (0..runs).map(once).collect();
    times.sort_unstable();
    times
}

fn at(times: &[Duration], percent: usize) -> Duration {
    times[(times.len() * percent / 100).min(times.len() - 1)]
}

fn row(figure: &str, times: &[Duration], limit: Option<u64>) {
    print_row(figure, at(times, 50), Some(at(times, 95)), limit);
}

/// Prints the difference between two series.
fn over(figure: &str, times: &[Duration], base: &[Duration], limit_ms: u64) {
    print_row(figure, at(times, 50).saturating_sub(at(base, 50)), None, Some(limit_ms));
}

fn print_row(figure: &str, median: Duration, most: Option<Duration>, limit_ms: Option<u64>) {
    let said = |time: Duration| format!("{:>7.2} ms", time.as_secs_f64() * 1000.0);
    let limit = limit_ms.map(Duration::from_millis);
    let mark = if limit.is_some_and(|limit| median > limit) { "  over" } else { "" };
    println!(
        "{figure:<52} {} {:>10} {:>10}{mark}",
        said(median),
        most.map_or_else(String::new, said),
        limit.map_or_else(String::new, said)
    );
}
