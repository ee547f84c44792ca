//! Tests of runs in a layer that precede approval: the files that they can see, and effects that are build output.

use super::*;
use crate::policy::ProtectionRules;
use crate::ports::{LayerEnd, LayerRun, ProgressSender, RunContext};
use crate::protocol::{CommandEnd, EffectsStage};
use crate::sys::process::EnvironmentSelection;
use crate::tools::sandbox::ProtectedScan;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

/// Creates a bench whose workspace is a repository that has these ignore rules.
pub(super) fn project(ignored: &str) -> Option<Bench> {
    let mut bench = bench()?;
    bench.settings.command.sandbox.survey =
        Some(ProtectedScan::new(bench.settings.command.sandbox.paths.roots.clone(), ProtectionRules::default(), Vec::new()));
    let root = &bench.settings.workspace;
    bench.settings.command.sandbox.paths.read_only = vec![root.join(".git"), root.join(".aye")];
    bench.write(".gitignore", ignored);
    git(&bench, &["init", "-q"]);
    git(&bench, &["add", "."]);
    Some(bench)
}

fn git(bench: &Bench, words: &[&str]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=A", "-c", "user.email=a@b"]).args(words).current_dir(&bench.settings.workspace);
    git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    assert!(git.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success(), "{words:?}");
}

pub(super) fn ran(bench: &Bench, line: &str) -> Plan {
    ran_for(bench, json!({"command": line}))
}

fn ran_for(bench: &Bench, arguments: serde_json::Value) -> Plan {
    let plan = bench.plan("RunCommand", arguments).unwrap();
    assert!(matches!(plan.layer, LayerRun::Possible), "{:?}", plan.layer);
    let permit = PreviewPermit::unasked_for_test(plan.actions.clone());
    block_on(bench.router().preview(plan, permit, context())).unwrap()
}

pub(super) fn end(plan: &Plan) -> &LayerEnd {
    let LayerRun::Ended(end) = &plan.layer else { panic!("{:?}", plan.layer) };
    end
}

pub(super) fn kept(bench: &Bench, plan: Plan) -> ToolResult {
    let permit = Permit::for_test(plan.actions.clone());
    block_on(bench.router().run(plan, permit, context()))
}

fn files(plan: &Plan) -> Vec<&str> {
    effects(plan).files.iter().map(|file| file.path.as_str()).collect()
}

fn counted(plan: &Plan) -> Vec<(&str, u64, u64, u64)> {
    effects(plan)
        .counted
        .iter()
        .map(|counted| (counted.path.as_str(), counted.created, counted.changed, counted.deleted))
        .collect()
}

#[test]
fn a_command_that_changes_nothing_has_no_effects() {
    let Some(bench) = project("target/\n") else { return };
    let before = tree(&bench.settings.workspace);
    let plan = ran(&bench, "echo said; git status --short; exit 3");
    let shown = effects(&plan);
    assert!(shown.is_empty() && shown.refused.is_empty() && shown.denied.is_empty(), "{shown:?}");
    assert_eq!(shown.ended, "exit 3");
    assert!(!end(&plan).stopped && end(&plan).digest.len() == 66);
    let result = kept(&bench, plan);
    assert!(result.output_text.contains("said") && result.status == ToolStatus::Succeeded, "{result:?}");
    assert_eq!(tree(&bench.settings.workspace), before);
}

#[test]
fn workspace_secrets_are_hidden_and_denied_accesses_are_reported() {
    let Some(bench) = project("target/\n") else { return };
    for name in [".env", "certs/server.key", "deep/er/id_ed25519", "prod.tfstate"] {
        bench.write(name, "s3cret-value\n");
    }
    bench.write(".env.example", "shared\n");
    symlink(bench.path("prod.tfstate"), bench.path("plain-name")).unwrap();
    let plan = ran(
        &bench,
        "for f in .e*v* certs/*.k* deep/*/id_* prod.* plain-name; do cat \"$f\"; done; find . -type f -exec cat {} +",
    );
    let shown = effects(&plan);
    assert!(!shown.output.contains("s3cret-value") && shown.output.contains("shared"), "{}", shown.output);
    let plan = ran(&bench, "test -s .env || { echo '.env: no settings' >&2; exit 1; }");
    let read = |removes| SandboxAccess::Read { path: bench.path(".env").display().to_string(), removes };
    assert!(effects(&plan).denied.contains(&read(false)), "{:?}", effects(&plan));
    for line in ["rm .env", "mv .env other"] {
        let plan = ran(&bench, line);
        assert_eq!(effects(&plan).denied, [read(true)], "{line}: {:?}", effects(&plan));
        assert!(read(true).to_string().starts_with("deleting or renaming"));
    }
    assert!(!effects(&plan).output.contains("s3cret"));
}

#[test]
fn layer_runs_get_the_core_environment_and_no_terminal() {
    let Some(mut bench) = project("target/\n") else { return };
    for (given, expected) in [
        (EnvironmentSelection::Inherit, EnvironmentSelection::Core),
        (EnvironmentSelection::Listed(vec!["X_TOKEN".to_owned()]), EnvironmentSelection::CoreOf(vec!["X_TOKEN".to_owned()])),
    ] {
        bench.settings.command.environment = given;
        assert_eq!(bench.settings.for_layer().command.environment, expected);
    }
    bench.settings.command.environment = EnvironmentSelection::Core;
    let plan = ran(&bench, "echo $GIT_TERMINAL_PROMPT $PAGER $EDITOR; cat; test -t 0 || echo no terminal");
    assert!(effects(&plan).output.contains("0 cat false\nno terminal"), "{}", effects(&plan).output);
}

#[test]
fn the_repository_is_read_only_and_missing_paths_get_no_placeholders() {
    let Some(bench) = project("target/\n") else { return };
    let plan = ran(&bench, "ls -A; echo x > .git/x || echo refused; mkdir .aye");
    let shown = effects(&plan);
    let listed: Vec<_> = shown.output.lines().filter(|line| line.starts_with('.')).collect();
    assert_eq!(listed, [".git", ".gitignore"], "{}", shown.output);
    assert!(shown.output.contains("refused"), "{}", shown.output);
    assert!(!bench.path(".git/x").exists());
}

#[test]
fn build_output_is_counted_and_applied_without_being_listed() {
    let Some(bench) = project("target/\n*.log\n") else { return };
    bench.write("target/old", "old\n");
    bench.write("target/gone", "gone\n");
    let plan =
        ran(&bench, "echo new > target/new; echo more >> target/old; rm target/gone; mkdir target/deep; ln -s new target/link");
    assert!(effects(&plan).is_build_output(), "{:?}", effects(&plan));
    assert_eq!(counted(&plan), [("target", 2, 1, 1)]);
    assert!(plan.proposal.as_ref().unwrap().notes.iter().any(|note| note.starts_with("build output in target/: 4 files")));
    assert_eq!(fs::read_to_string(bench.path("target/old")).unwrap(), "old\n", "not before it is kept");
    let result = kept(&bench, plan);
    assert_eq!(result.error, None);
    assert_eq!(fs::read_to_string(bench.path("target/old")).unwrap(), "old\nmore\n");
    assert!(bench.path("target/new").exists() && !bench.path("target/gone").exists() && bench.path("target/deep").is_dir());
    // A directory that is created, and one that is removed.
    let plan = ran(&bench, "mkdir -p sub/build; echo x > sub/build/a; rm -r target");
    assert_eq!(files(&plan), ["sub/build/a"], "git does not ignore it");
    assert_eq!(counted(&plan), [("target", 0, 0, 3)]);
}

#[test]
fn files_that_do_not_qualify_as_build_output_are_listed() {
    let Some(mut bench) = project("target/\nbuild/\nnode_modules/\n.venv/\nlibrary/\n") else { return };
    bench.write("build/tracked.txt", "in git\n");
    git(&bench, &["add", "-f", "build/tracked.txt"]);
    bench.write("elsewhere/file", "x\n");
    symlink(bench.path("elsewhere"), bench.path("sub-target")).unwrap();
    let listed = |bench: &Bench, line: &str| {
        let plan = ran(bench, line);
        let shown = effects(&plan).clone();
        (shown.counted.len(), shown.files.len() + shown.groups.len())
    };
    for line in [
        "echo x > build/new",
        "mkdir -p node_modules/a/build; echo x > node_modules/a/build/b",
        "mkdir -p .venv/build; echo x > .venv/build/b",
        "mkdir -p library/dist; echo x > library/dist/b",
        "mkdir -p dist; echo x > dist/a",
        "mkdir -p target; ln -s ../elsewhere target/link",
        "mkdir -p target; echo x > target/.envrc",
        "mv elsewhere/file target.txt",
    ] {
        let (build, others) = listed(&bench, line);
        assert!(others > 0, "{line}: {build} {others}");
    }
    assert_eq!(listed(&bench, "mkdir -p target; echo x > target/a"), (1, 0));
    assert_eq!(listed(&bench, "mkdir -p node_modules/.cache; echo x > node_modules/.cache/a"), (1, 0));
    // The rules were written after the session started.
    bench.settings.session.since = SystemTime::now() - Duration::from_secs(3600);
    assert_eq!(listed(&bench, "mkdir -p target; echo x > target/a").0, 0);
    bench.settings.session.since = SystemTime::now() + Duration::from_secs(3600);
    // Rules written by the command are ignored.
    let (build, others) = listed(&bench, "echo out/ >> .gitignore; mkdir out; echo x > out/a");
    assert!(build == 0 && others == 2, "{build} {others}");
    for trust in [RepositoryTrust::Untrusted, RepositoryTrust::NeverAsked] {
        bench.settings.command.sandbox.trust = trust;
        let plan = bench.plan("RunCommand", json!({"command": "true"})).unwrap();
        assert!(matches!(plan.layer, LayerRun::Impossible { .. }), "a project without trust runs nothing unasked");
    }
}

#[test]
fn outside_a_repository_only_tagged_directories_are_build_output() {
    let Some(mut bench) = bench() else { return };
    bench.settings.command.sandbox.survey =
        Some(ProtectedScan::new(bench.settings.command.sandbox.paths.roots.clone(), ProtectionRules::default(), Vec::new()));
    bench.write(".gitignore", "target/\n");
    let plan = ran(
        &bench,
        "mkdir -p target; echo x > target/a; echo 'Signature: 8a477f597d28d172789f06886806bc55' > target/CACHEDIR.TAG",
    );
    assert!(!effects(&plan).is_build_output(), "a tag that the command wrote does not count");
    bench.write("target/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n");
    assert!(effects(&ran(&bench, "echo x > target/a")).is_build_output());
}

#[test]
fn a_discarded_run_leaves_no_build_output_of_discarded_sources() {
    let Some(bench) = project("target/\n") else { return };
    if Command::new("make").arg("--version").stdout(Stdio::null()).status().is_err() {
        return eprintln!("skipped: no make");
    }
    bench.write("Makefile", "target/out: source\n\t@mkdir -p target && cp source target/out\n");
    bench.write("source", "old\n");
    let plan = ran(&bench, "make -s && cat target/out");
    kept(&bench, plan);
    let before = tree(&bench.settings.workspace);
    let plan = ran(&bench, "echo new > source; make -s && cat target/out");
    assert!(effects(&plan).output.contains("new") && files(&plan) == ["source"], "{:?}", effects(&plan));
    assert_eq!(counted(&plan), [("target", 0, 1, 0)]);
    drop(plan);
    assert_eq!(tree(&bench.settings.workspace), before, "a discarded run changes nothing");
    let plan = ran(&bench, "make -s && cat target/out");
    assert!(effects(&plan).output.contains("old"), "{}", effects(&plan).output);
}

#[test]
fn effects_that_file_tools_could_cause_are_reported_as_file_actions() {
    let Some(bench) = project("target/\nignored.txt\n") else { return };
    for name in ["a.txt", "b.txt", "ignored.txt"] {
        bench.write(name, "text\n");
    }
    let of = |line: &str| {
        let plan = ran(&bench, line);
        let end = end(&plan);
        let verbs: Vec<_> = end.actions.iter().flatten().map(crate::protocol::Action::capability).collect();
        (verbs, end.beyond_edits, end.beyond_rewind)
    };
    assert_eq!(of("echo x >> a.txt; echo y > new.txt"), (vec!["File.Write", "File.Write"], false, false));
    assert_eq!(of("rm a.txt"), (vec!["File.Delete"], true, false));
    assert_eq!(of("rm ignored.txt"), (vec!["File.Delete"], true, true), "rewind does not restore what git ignores");
    assert_eq!(of("chmod +x a.txt"), (vec!["File.Write"], true, false));
    for inside in ["a.txt", "/usr/bin/env"] {
        assert_eq!(of(&format!("ln -s {inside} l")), (vec!["File.Write"], true, false), "{inside}");
    }
    for out in ["/etc/passwd", "../x", "deep/../../x"] {
        assert_eq!(of(&format!("ln -s {out} l")), (vec!["File.Write"], true, true), "{out}");
    }
    assert_eq!(of("echo x > .envrc.local"), (vec!["File.Write"], false, true), "it runs when the folder is opened");
    assert!(of("mv a.txt c.txt").1);
    assert_eq!(of("touch a.txt"), (Vec::new(), false, false));
    assert_eq!(of("touch a.txt; echo x >> b.txt"), (vec!["File.Write"], false, false));
    let no_content = |line: &str| effects(&ran(&bench, line)).changes_no_content();
    assert!(no_content("touch a.txt ignored.txt"), "nothing but the modification times changes");
    for line in ["touch a.txt; echo x >> b.txt", "touch new.txt", "chmod +x a.txt", "touch a.txt; rm b.txt"] {
        assert!(!no_content(line), "{line}");
    }
}

#[test]
fn stopped_runs_are_reported() {
    let Some(bench) = project("target/\n") else { return };
    let plan = ran_for(&bench, json!({"command": "echo x > a.txt; exec sleep 60", "timeout": 1}));
    assert!(end(&plan).stopped && effects(&plan).ended.contains("killed"), "{:?}", effects(&plan));
    assert_eq!(end(&plan).ended, Some(CommandEnd::TimedOut { seconds: 1 }));
    let plan = ran(&bench, "kill -SEGV $$");
    assert!(!end(&plan).stopped, "a crash is an end of its own: {:?}", effects(&plan).ended);
}

#[test]
fn the_digest_covers_every_effect() {
    let Some(bench) = project("target/\n") else { return };
    let of = |line: &str| end(&ran(&bench, line)).digest.clone();
    let all = [of("true"), of("echo a > x"), of("echo b > x"), of("echo a > y"), of("echo a > x; echo said")];
    for (at, one) in all.iter().enumerate() {
        assert!(all[..at].iter().all(|other| other != one), "{at}");
    }
}

/// Prints the cost of a layer. The goal is 5 ms for creating and removing it.
#[test]
#[ignore = "a measurement"]
fn the_cost_of_a_layer_is_measured() {
    let Some(bench) = project("target/\n") else { return };
    for number in 0..10_000 {
        bench.write(&format!("d{}/f{number}", number / 100), "x");
    }
    let router = bench.router();
    let mut times = Vec::new();
    for _ in 0..40 {
        let plan = bench.plan("RunCommand", json!({"command": "true"})).unwrap();
        let permit = PreviewPermit::unasked_for_test(plan.actions.clone());
        let began = Instant::now();
        drop(block_on(router.preview(plan, permit, context())).unwrap());
        times.push(began.elapsed());
    }
    let mut plain = Vec::new();
    for _ in 0..40 {
        let plan = bench.plan("RunCommand", json!({"command": "true"})).unwrap();
        let permit = Permit::for_test(plan.actions.clone());
        let began = Instant::now();
        block_on(router.run(plan, permit, context()));
        plain.push(began.elapsed());
    }
    times.sort();
    plain.sort();
    eprintln!("a layer: median {:?}, a sandboxed run: median {:?}", times[20], plain[20]);
}

#[test]
fn all_hard_links_of_a_file_are_deleted_and_replaced() {
    let Some(bench) = project("target/\n") else { return };
    let names = ["target/a", "target/deep/b", "target/c", "d.txt"];
    bench.write("target/a", "x\n");
    fs::create_dir(bench.path("target/deep")).unwrap();
    for name in &names[1..] {
        fs::hard_link(bench.path("target/a"), bench.path(name)).unwrap();
    }
    let plan = ran(&bench, "rm -r target/a target/deep; mv target/c target/e; rm d.txt; echo y > d.txt; ln d.txt f.txt");
    let result = kept(&bench, plan);
    assert!(result.error.is_none() && !result.output_text.contains("differs"), "{}", result.output_text);
    assert!(!names[..3].iter().any(|name| bench.path(name).exists()));
    assert_eq!((bench.read("target/e"), bench.read("d.txt"), bench.read("f.txt")), (b"x\n".into(), b"y\n".into(), b"y\n".into()));
}

/// Returns this process's peak memory use since the last call, and its current memory use, in KB.
fn memory_peak() -> (u64, u64) {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let of = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    fs::write("/proc/self/clear_refs", "5").unwrap();
    (of("VmHWM:"), of("VmRSS:"))
}

/// Returns how long ago the command ended, according to the time that it printed as its last line.
fn since_end(plan: &Plan) -> Duration {
    let output = &effects(plan).output;
    let ended = output.lines().find_map(|line| line.strip_prefix("ended ")).unwrap();
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH + Duration::from_nanos(ended.parse().unwrap())).unwrap()
}

#[test]
fn applying_many_files_reports_progress_up_to_the_last_one_and_few_files_only_after_a_second() {
    let Some(bench) = project("target/\n") else { return };
    for files in [20_u64, 1_200] {
        let plan = ran(&bench, &format!("for i in $(seq {files}); do echo x > {files}-$i; done"));
        let sent = Arc::new(Mutex::new(Vec::new()));
        let received = Arc::clone(&sent);
        let progress = ProgressSender::new(move |progress| received.lock().unwrap().push(progress));
        let permit = Permit::for_test(plan.actions.clone());
        let result = block_on(bench.router().run(plan, permit, RunContext { progress, ..context() }));
        assert!(result.error.is_none() && bench.path(&format!("{files}-{files}")).exists(), "{result:?}");
        let sent = sent.lock().unwrap();
        if files == 20 {
            // Slow systems may report even few files, but only after a second.
            assert!(sent.iter().all(|one| one.elapsed_ms >= 1_000), "{sent:?}");
            continue;
        }
        let ends = sent.iter().filter(|one| one.total == Some(one.done));
        let expected = [EffectsStage::Preparing, EffectsStage::Applying].map(|stage| (stage, files, Some(files)));
        assert_eq!(ends.map(|one| (one.stage, one.done, one.total)).collect::<Vec<_>>(), expected);
        assert!(sent.iter().map(|one| one.elapsed_ms).is_sorted(), "{sent:?}");
    }
}

/// Prints the time and memory needed for many effects. The goals are to list 100,000 in 1 s and 64 MB, to apply 1,000
/// in 0.3 s, and to apply 30,000 in 5 s.
#[test]
#[ignore = "a measurement"]
fn the_cost_of_many_effects_is_measured() {
    let Some(bench) = project("target/\n") else { return };
    let make = |directories: u32, files: u32| {
        format!(
            "mkdir -p new && cd new && for d in $(seq {directories}); do mkdir $d && (cd $d && seq {files} | split -l 1 -a 4 - f); done; \
             echo ended $(date +%s%N)"
        )
    };
    memory_peak();
    let (_, before) = memory_peak();
    let plan = ran(&bench, &make(100, 1_000));
    let (time, (peak, _)) = (since_end(&plan), memory_peak());
    eprintln!("a list of {} effects: {time:?}, {} MB", effects(&plan).paths(), (peak - before) / 1024);
    drop(plan);
    for (directories, files) in [(10, 100), (30, 1_000)] {
        let plan = ran(&bench, &make(directories, files));
        let listed = since_end(&plan);
        let began = Instant::now();
        let result = kept(&bench, plan);
        assert!(result.error.is_none(), "{result:?}");
        eprintln!("{} files: listed in {listed:?}, kept in {:?}", directories * files, began.elapsed());
        fs::remove_dir_all(bench.path("new")).unwrap();
    }
}

/// Prints the time needed to run a command in a workspace of 100,000 files, and to list its changes to all of them.
#[test]
#[ignore = "a measurement"]
fn the_cost_of_a_large_workspace_is_measured() {
    let Some(bench) = project("target/\n") else { return };
    for number in 0..100_000 {
        bench.write(&format!("d{}/f{number}", number / 1000), "x\n");
    }
    git(&bench, &["add", "."]);
    let began = Instant::now();
    drop(ran(&bench, "true"));
    eprintln!("`true` with 100,000 files, the first time: {:?}", began.elapsed());
    let began = Instant::now();
    drop(ran(&bench, "true"));
    eprintln!("`true` with 100,000 files: {:?}", began.elapsed());
    memory_peak();
    let (_, before) = memory_peak();
    let plan = ran(&bench, "find . -name 'f*' -not -path './.git/*' -exec sed -i s/x/y/ {} +; echo ended $(date +%s%N)");
    let (time, (peak, _)) = (since_end(&plan), memory_peak());
    eprintln!("a list of {} changed files: {time:?}, {} MB", effects(&plan).paths(), (peak - before) / 1024);
}
