mod build_output;
mod large_trees;
mod selection;
mod unasked;
mod undecided;

use super::overlay_dir::{Call, OverlayDir, previews};
use super::*;
use crate::policy::{Permit, PreviewPermit};
use crate::ports::{Plan, ToolRouter};
use crate::protocol::{
    CallId, EffectKind, Effects, ErrorCode, PreviewOffer, SandboxAccess, SandboxTier, SessionId, ToolError, ToolResult,
    ToolStatus,
};
use crate::sys::sandbox::NetworkAccess;
use crate::tools::sandbox::{RepositoryTrust, SandboxPolicy};
use crate::tools::tests::{Bench, block_on, call, context};
use crate::tools::{Router, ToolSettings, ToolSources, Toolset};
use serde_json::json;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// Creates a bench with a sandbox and previews. If the kernel does not support them, prints a message and returns
/// `None`.
fn bench() -> Option<Bench> {
    let mut bench = Bench::new();
    let base = bench.root.join("base");
    fs::create_dir(&base).unwrap();
    bench.settings.command.sandbox = sandbox(bench.settings.workspace.clone(), base);
    match previewed(&bench, "true") {
        Ok(_) => Some(bench),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

fn sandbox(workspace: PathBuf, base: PathBuf) -> SandboxPolicy {
    let mut sandbox = SandboxPolicy::unsandboxed();
    (sandbox.tier, sandbox.network) = (SandboxTier::Preview, NetworkAccess::Proxied);
    (sandbox.paths.roots, sandbox.previews) = (vec![workspace], Ok(base));
    sandbox.trust = RepositoryTrust::Trusted;
    sandbox
}

fn previewed(bench: &Bench, line: &str) -> Result<Plan, ToolError> {
    previewed_for(bench, json!({"command": line}))
}

fn previewed_for(bench: &Bench, arguments: serde_json::Value) -> Result<Plan, ToolError> {
    let plan = bench.plan("RunCommand", arguments)?;
    assert_eq!(plan.preview, PreviewOffer::Possible);
    let permit = PreviewPermit::for_test(plan.actions.clone());
    block_on(bench.router().preview(plan, permit, context()))
}

fn effects(plan: &Plan) -> &Effects {
    plan.effects.as_ref().unwrap()
}

/// Lists every path in a directory with its mode and content.
fn tree(directory: &Path) -> Vec<(PathBuf, u32, Vec<u8>)> {
    let mut all = Vec::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).unwrap().flatten() {
            let (path, data) = (entry.path(), entry.metadata().unwrap());
            let content = if data.is_symlink() {
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else if data.is_dir() {
                pending.push(path.clone());
                Vec::new()
            } else {
                fs::read(&path).unwrap()
            };
            all.push((path, data.permissions().mode(), content));
        }
    }
    all.sort();
    all
}

fn left(bench: &Bench) -> usize {
    fs::read_dir(previews(&bench.root.join("base"))).map_or(0, Iterator::count)
}

const ALL: &str = "echo new > made.txt; echo more >> changed.txt; rm gone.txt; mv old.txt moved.txt; chmod 755 mode.txt; \
                   ln -s changed.txt link; head -c 64 /dev/zero > binary; mkdir -p deep/er; echo x > deep/er/file; echo said";

fn fill(bench: &Bench) {
    bench.write("changed.txt", "one\n");
    bench.write("gone.txt", "gone\n");
    bench.write("old.txt", "a text that is moved as it is\n");
    bench.write("mode.txt", "mode\n");
}

#[test]
fn effects_are_shown_before_approval_and_applied_afterwards() {
    let Some(bench) = bench() else { return };
    fill(&bench);
    let before = tree(&bench.settings.workspace);
    let plan = previewed(&bench, ALL).unwrap();
    assert_eq!(tree(&bench.settings.workspace), before, "nothing happened yet");
    let shown = effects(&plan);
    assert_eq!((shown.ended.as_str(), shown.output.as_str()), ("exit 0", "Exit code: 0\n--- stdout ---\nsaid\n--- stderr ---"));
    assert!(shown.files.len() >= 8 && shown.refused.is_empty(), "{shown:?}");
    assert!(shown.files.iter().any(|file| file.path == "made.txt" && matches!(file.kind, EffectKind::Created { .. })));
    assert!(matches!(plan.preview, PreviewOffer::Impossible { .. }));
    let proposal = plan.proposal.clone().unwrap();
    let named = |name: &str| proposal.paths.contains(&bench.path(name));
    assert!(
        ["made.txt", "changed.txt", "gone.txt", "old.txt", "moved.txt", "mode.txt", "link", "binary"]
            .iter()
            .all(|name| named(name))
    );
    let result = bench.run(plan);
    assert_eq!(result.status, ToolStatus::Succeeded, "{result:?}");
    assert!(result.output_text.starts_with("Exit code: 0\n--- stdout ---\nsaid\n--- stderr ---\n"), "{}", result.output_text);
    assert_eq!((bench.read("made.txt"), bench.read("changed.txt")), (b"new\n".to_vec(), b"one\nmore\n".to_vec()));
    assert!(!bench.path("gone.txt").exists() && !bench.path("old.txt").exists());
    assert_eq!(bench.read("moved.txt"), b"a text that is moved as it is\n");
    assert_eq!(fs::metadata(bench.path("mode.txt")).unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(fs::read_link(bench.path("link")).unwrap(), Path::new("changed.txt"));
    assert_eq!((bench.read("binary").len(), bench.read("deep/er/file")), (64, b"x\n".to_vec()));
    assert_eq!(left(&bench), 0);
}

#[test]
fn a_denied_preview_leaves_nothing_behind() {
    let Some(bench) = bench() else { return };
    fill(&bench);
    let before = tree(&bench.settings.workspace);
    let plan = previewed(&bench, &format!("{ALL}; mkdir closed; touch closed/x; chmod 000 closed")).unwrap();
    assert_eq!(left(&bench), 1);
    drop(plan);
    assert_eq!((tree(&bench.settings.workspace), left(&bench)), (before, 0));
}

#[test]
fn forbidden_writes_are_not_applied_and_are_reported() {
    let Some(mut bench) = bench() else { return };
    bench.write(".git/config", "[core]\n");
    bench.settings.paths.may_write = Arc::new(|path| !path.iter().any(|name| name == ".git"));
    let plan =
        previewed(&bench, "echo x > ok; echo '[alias]' >> .git/config; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit");
    let plan = plan.unwrap();
    let refused = &effects(&plan).refused;
    assert!(
        refused.iter().any(|one| one.path.contains(".git/config")) && refused.iter().any(|one| one.path.contains(".git/hooks"))
    );
    let result = bench.run(plan);
    assert!(result.output_text.contains("not applied") || result.output_text.contains(".git"), "{}", result.output_text);
    assert_eq!((bench.read("ok"), bench.read(".git/config")), (b"x\n".to_vec(), b"[core]\n".to_vec()));
    assert!(!bench.path(".git/hooks").exists());
}

#[test]
fn effects_forbidden_since_the_preview_are_not_applied() {
    let Some(mut bench) = bench() else { return };
    let plan = previewed(&bench, "echo x > ok; echo x > late").unwrap();
    bench.settings.paths.may_write = Arc::new(|path| !path.ends_with("late"));
    bench.run(plan);
    assert!(bench.path("ok").exists() && !bench.path("late").exists());
}

#[test]
fn a_file_changed_since_the_preview_is_a_conflict_and_nothing_is_written() {
    let Some(bench) = bench() else { return };
    fill(&bench);
    let plan = previewed(&bench, ALL).unwrap();
    fs::write(bench.path("changed.txt"), "by the person\n").unwrap();
    let before = tree(&bench.settings.workspace);
    let result = bench.run(plan);
    let error = result.error.unwrap();
    assert_eq!(error.code, ErrorCode::Conflict, "{error}");
    assert!(error.message.contains("changed.txt"), "{error}");
    assert_eq!((tree(&bench.settings.workspace), left(&bench)), (before, 0));
}

#[test]
fn previews_need_a_matching_permit_and_a_plan_that_supports_previews() {
    let Some(bench) = bench() else { return };
    let router = bench.router();
    let plan = bench.plan("RunCommand", json!({"command": "touch x"})).unwrap();
    let error = block_on(router.preview(plan, PreviewPermit::for_test(Vec::new()), context())).unwrap_err();
    assert_eq!(error.code, ErrorCode::PolicyDenied);
    let plan = previewed(&bench, "touch x").unwrap();
    let permit = PreviewPermit::for_test(plan.actions.clone());
    assert!(block_on(router.preview(plan, permit, context())).unwrap_err().message.contains("the command has already run"));
    let plan = bench.plan("WriteFile", json!({"path": "x", "content": "x"})).unwrap();
    let permit = PreviewPermit::for_test(plan.actions.clone());
    assert_eq!(block_on(router.preview(plan, permit, context())).unwrap_err().code, ErrorCode::InvalidRequest);
    assert!(!bench.path("x").exists());
}

#[test]
fn a_script_changed_since_its_evaluation_is_not_previewed() {
    let Some(bench) = bench() else { return };
    bench.write("x.sh", "echo shown\n");
    let plan = bench.plan("RunCommand", json!({"command": "sh x.sh"})).unwrap();
    bench.write("x.sh", "echo other\n");
    let permit = PreviewPermit::for_test(plan.actions.clone());
    let error = block_on(bench.router().preview(plan, permit, context())).unwrap_err();
    assert_eq!(error.code, ErrorCode::Conflict);
}

#[test]
fn the_effects_of_a_timed_out_command_are_shown() {
    let Some(bench) = bench() else { return };
    let plan = previewed_for(&bench, json!({"command": "echo x > made; sleep 60", "timeout": 1})).unwrap();
    assert_eq!(effects(&plan).ended, "killed after 1 s");
    assert!(effects(&plan).files.iter().any(|file| file.path == "made"));
    assert!(plan.proposal.as_ref().unwrap().notes.iter().any(|note| note.contains("did not finish")));
    let result = bench.run(plan);
    assert_eq!(result.error.unwrap().code, ErrorCode::ToolExecutionTimeout);
    assert!(bench.path("made").exists());
    let plan = previewed(&bench, "kill -9 $$").unwrap();
    assert_eq!(effects(&plan).ended, "killed by SIGKILL");
}

#[test]
fn previews_cannot_access_the_network_or_files_outside() {
    let Some(bench) = bench() else { return };
    let outside = bench.root.join("outside");
    fs::create_dir(&outside).unwrap();
    let line = format!("echo x > {0}/x; echo x > /dev/tcp/127.0.0.1/9 || exit 3", outside.display());
    let plan = previewed(&bench, &line).unwrap();
    assert_eq!(effects(&plan).ended, "exit 3");
    drop(plan);
    assert!(!outside.join("x").exists());
}

#[test]
fn secrets_in_the_output_are_redacted() {
    let Some(bench) = bench() else { return };
    let key = format!("ghp_{}", "a1B2".repeat(9));
    let plan = previewed(&bench, &format!("echo {key} | tee made")).unwrap();
    assert!(!effects(&plan).output.contains(&key), "{}", effects(&plan).output);
    assert!(!plan.proposal.as_ref().unwrap().diff.to_string().contains(&key));
    let result = bench.run(plan);
    assert!(!result.output_text.contains(&key));
    assert_eq!(bench.read("made"), format!("{key}\n").into_bytes());
}

#[test]
fn long_output_is_limited_and_shown_live() {
    let Some(bench) = bench() else { return };
    let (output, mut live) = tokio::sync::mpsc::channel(1024);
    let plan = bench.plan("RunCommand", json!({"command": "echo first; head -c 50000000 /dev/zero | tr '\\0' x"})).unwrap();
    let permit = PreviewPermit::for_test(plan.actions.clone());
    let context = crate::ports::RunContext { output, ..context() };
    let plan = block_on(bench.router().preview(plan, permit, context)).unwrap();
    assert!(effects(&plan).output.len() < 110 * 1024);
    assert!(live.try_recv().unwrap().starts_with("first"));
}

#[test]
fn the_reason_for_a_missing_preview_is_given() {
    let mut bench = Bench::new();
    let offer = |bench: &Bench, line: &str| bench.plan("RunCommand", json!({"command": line})).unwrap().preview;
    let reason = |offer: PreviewOffer| match offer {
        PreviewOffer::Impossible { reason } => reason,
        other => panic!("{other:?}"),
    };
    assert!(reason(offer(&bench, "true")).contains("the sandbox is off"));
    bench.settings.command.sandbox.tier = SandboxTier::Guarded;
    bench.settings.command.sandbox.previews = Err("`target` is mounted below the workspace".to_owned());
    assert!(reason(offer(&bench, "true")).contains("mounted below"));
    bench.settings.command.sandbox = sandbox(bench.settings.workspace.clone(), "/x".into());
    assert_eq!(offer(&bench, "cargo test"), PreviewOffer::Possible);
    assert_eq!(bench.plan("ReadFile", json!({"path": "x"})).unwrap().preview, PreviewOffer::None);
    assert!(reason(offer(&bench, "git commit -m x")).contains("git"));
    assert_eq!(offer(&bench, "git status"), PreviewOffer::Possible);
    assert!(reason(offer(&bench, "sleep 9 &")).contains("background"));
    bench.settings.command.sandbox.network = NetworkAccess::Open;
    assert!(reason(offer(&bench, "true")).contains("network access"));
    bench.settings.command.sandbox.network = NetworkAccess::Proxied;
    bench.settings.command.sandbox.paths.writes = false;
    assert!(reason(offer(&bench, "true")).contains("only read"));
}

#[test]
fn requested_hosts_and_paths_are_part_of_the_plan_and_evaluated() {
    let mut bench = Bench::new();
    bench.settings.paths.may_open = Arc::new(|path| path.starts_with("/opt"));
    let opens = vec![
        SandboxAccess::Host { host: "example.com".into(), port: 443 },
        SandboxAccess::Write { path: "/opt/x".into() },
        SandboxAccess::Write { path: "/etc/x".into() },
    ];
    let router = bench.router();
    let plan = block_on(router.plan_with_access(call("RunCommand", json!({"command": "make"})), opens.clone())).unwrap();
    assert_eq!(plan.opens, opens[..2]);
    assert_eq!(plan.summary, "$ make, allowing example.com:443, writing `/opt/x`");
    let fetched = plan
        .actions
        .iter()
        .any(|action| matches!(action, crate::protocol::Action::Fetch { url, .. } if url == "https://example.com/"));
    assert!(fetched && plan.actions.len() == 2, "{:?}", plan.actions);
    let error = block_on(router.plan_with_access(call("ReadFile", json!({"path": "x"})), opens));
    assert!(error.is_err());
}

fn held_call(session: Option<&str>) -> Call {
    Call { tool_call_id: CallId::new("c"), tool_name: "RunCommand".into(), session_id: session.map(SessionId::new) }
}

/// Returns the results found for this session. `awaits` says whether the session is still waiting for its calls, rather
/// than having their results already.
fn found(base: &Path, session: &str, awaits: bool) -> Vec<ToolResult> {
    recover(
        &[base.to_owned()],
        Some(&ResumedSession { session: &SessionId::new(session), awaits: &|_| awaits, undecided: &|_| false }),
    )
    .settled
}

#[test]
fn previews_of_ended_processes_are_removed_and_all_others_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let mut dead = OverlayDir::make(directory.path(), &held_call(Some("s"))).unwrap();
    fs::create_dir_all(dead.path().join("upper-0/deep/closed")).unwrap();
    dead.keep_on_drop();
    drop(dead);
    let living = OverlayDir::make(directory.path(), &held_call(Some("s"))).unwrap();
    assert!(found(directory.path(), "s", false).is_empty());
    let left: Vec<PathBuf> = fs::read_dir(previews(directory.path())).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left, [living.path().to_owned()]);
}

#[test]
fn outcomes_are_kept_until_their_session_collects_them() {
    let directory = tempfile::tempdir().unwrap();
    let mut view = OverlayDir::make(directory.path(), &held_call(Some("mine"))).unwrap();
    view.keep_result(&ToolResult::success(CallId::new("c"), "RunCommand", "said")).unwrap();
    fs::create_dir(view.path().join("upper-0")).unwrap();
    let path = view.path().to_owned();
    view.keep_on_drop();
    drop(view);
    assert!(found(directory.path(), "other", true).is_empty());
    assert!(recover(&[directory.path().to_owned()], None).settled.is_empty());
    assert!(!path.join("upper-0").exists(), "the copies do not wait");
    for _ in 0..5 {
        let found = found(directory.path(), "mine", true);
        assert_eq!(found.len(), 1, "told again at every start until the session has it");
        let error = found[0].error.as_ref().unwrap();
        assert!(error.message.contains("nothing was written"), "its commit had not begun: {error}");
    }
    assert!(found(directory.path(), "mine", false).is_empty());
    assert_eq!(fs::read_dir(previews(directory.path())).unwrap().count(), 0);
}

#[test]
fn a_data_directory_can_be_removed_unless_a_commit_is_unfinished() {
    let directory = tempfile::tempdir().unwrap();
    assert!(finish_commits(directory.path()).is_complete, "it has no previews");
    let mut ended = OverlayDir::make(directory.path(), &held_call(Some("s"))).unwrap();
    ended.keep_final(&ToolResult::success(CallId::new("c"), "RunCommand", "applied")).unwrap();
    ended.keep_on_drop();
    drop(ended);
    let living = OverlayDir::make(directory.path(), &held_call(Some("s"))).unwrap();
    let finished = finish_commits(directory.path());
    assert!(finished.is_complete && finished.notices.is_empty(), "{:?}", finished.notices);
    // A record that cannot be read: the commit can be neither completed nor rolled back.
    fs::write(living.path().join("commit.json"), "damaged").unwrap();
    assert!(!finish_commits(directory.path()).is_complete, "this process may be applying it");
    let mut killed = living;
    killed.keep_on_drop();
    drop(killed);
    let finished = finish_commits(directory.path());
    assert!(!finished.is_complete && finished.notices[0].contains("could not finish"), "{:?}", finished.notices);
}

#[test]
fn a_call_that_ended_before_its_commit_is_reported_as_unapplied() {
    let directory = tempfile::tempdir().unwrap();
    let mut early = OverlayDir::make(directory.path(), &held_call(Some("mine"))).unwrap();
    early.keep_on_drop();
    drop(early);
    let seen = found(directory.path(), "mine", true);
    assert!(seen[0].error.as_ref().unwrap().message.contains("nothing was written"), "{seen:?}");
    // The same call was previewed again, and those effects were applied.
    let mut later = OverlayDir::make(directory.path(), &held_call(Some("mine"))).unwrap();
    later.keep_final(&ToolResult::success(CallId::new("c"), "RunCommand", "kept")).unwrap();
    later.keep_on_drop();
    drop(later);
    let seen = found(directory.path(), "mine", true);
    assert_eq!(seen.len(), 1);
    assert_eq!((seen[0].status, seen[0].output_text.as_str()), (ToolStatus::Succeeded, "kept"));
}

#[test]
fn a_partly_removed_preview_is_removed_and_not_recovered() {
    let directory = tempfile::tempdir().unwrap();
    let mut view = OverlayDir::make(directory.path(), &held_call(Some("mine"))).unwrap();
    let path = view.path().to_owned();
    view.keep_on_drop();
    drop(view);
    fs::rename(&path, path.with_extension("gone")).unwrap();
    assert!(found(directory.path(), "mine", true).is_empty());
    assert_eq!(fs::read_dir(previews(directory.path())).unwrap().count(), 0);
}

#[test]
fn the_outcome_of_a_call_is_on_disk_until_its_session_records_the_outcome() {
    let Some(mut bench) = bench() else { return };
    bench.settings.session.id = Some(SessionId::new("s"));
    fill(&bench);
    let base = bench.root.join("base");
    for (line, meddle, code) in [("true", false, None), (ALL, true, Some(ErrorCode::Conflict)), ("echo x > z", false, None)] {
        let plan = previewed(&bench, line).unwrap();
        if meddle {
            fs::write(bench.path("changed.txt"), "by the person\n").unwrap();
        }
        let permit = Permit::for_test(plan.actions.clone());
        let router = bench.router();
        let result = block_on(router.run(plan, permit, context()));
        assert_eq!(result.error.as_ref().map(|error| error.code), code, "{line}");
        assert!(found(&base, "s", true).is_empty(), "this process lives");
        // As after a crash.
        router.forget();
        assert_eq!(found(&base, "s", true), [result], "{line}");
        assert!(found(&base, "s", false).is_empty() && left(&bench) == 0, "{line}");
    }
}

/// Environment variable through which the test below passes the path of the bench to its child process.
const CRASHES: &str = "AYE_TEST_CRASHES";
const FILES: usize = 400;

/// Runs as the process that is killed while it applies a command's effects.
#[test]
#[ignore = "child process of another test"]
fn effects_are_applied_until_the_process_is_killed() {
    let Some(root) = std::env::var_os(CRASHES).map(PathBuf::from) else { return };
    let settings = crashing(&root);
    let router = Router::new(Toolset::new(settings, ToolSources::default()));
    let line = format!("for n in $(seq {FILES}); do echo new > f$n; done; echo said");
    block_on(async {
        let plan = router.plan(call("RunCommand", json!({"command": line}))).await.unwrap();
        let permit = PreviewPermit::for_test(plan.actions.clone());
        let plan = router.preview(plan, permit, context()).await.unwrap();
        fs::write(root.join("ready"), "").unwrap();
        let permit = Permit::for_test(plan.actions.clone());
        router.run(plan, permit, context()).await;
        // The outcome is on disk but not reported.
        std::thread::park();
    });
}

fn crashing(root: &Path) -> ToolSettings {
    let mut settings = crate::tools::tests::settings(root.join("ws"), root.join("home"));
    settings.session.id = Some(SessionId::new("s"));
    settings.command.sandbox = sandbox(root.join("ws"), root.join("base"));
    settings
}

#[test]
fn a_killed_commit_is_finished_or_not_started() {
    if bench().is_none() {
        return;
    }
    let mut seen = [0; 2];
    for round in 0..6_u64 {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("ws")).unwrap();
        fs::create_dir_all(root.join("base")).unwrap();
        for number in 1..=FILES {
            fs::write(root.join(format!("ws/f{number}")), "old\n").unwrap();
        }
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--ignored", "tools::shell::preview::tests::effects_are_applied_until_the_process_is_killed"])
            .env(CRASHES, &root)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let begun = || root.join("ready").exists();
        while !begun() && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        let until = std::time::Instant::now() + Duration::from_millis(round * 9);
        while std::time::Instant::now() < until {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let found = found(&root.join("base"), "s", true);
        let new = (1..=FILES).filter(|number| fs::read(root.join(format!("ws/f{number}"))).unwrap() == b"new\n").count();
        match found.first() {
            Some(result) if result.status == ToolStatus::Succeeded => {
                assert_eq!(new, FILES, "finished");
                assert!(result.output_text.contains("said"), "{}", result.output_text);
                seen[1] += 1;
            }
            told => {
                let error = told.and_then(|result| result.error.as_ref());
                assert!(error.is_some_and(|error| error.message.contains("nothing was written")), "{told:?}");
                assert_eq!(new, 0, "never began");
                seen[0] += 1;
            }
        }
        assert_eq!(fs::read_dir(root.join("ws")).unwrap().count(), FILES, "nothing of aye's own is left there");
    }
    eprintln!("never begun {}, finished {}", seen[0], seen[1]);
}

#[test]
fn error_messages_about_preview_limitations_are_recognized() {
    let told = |text: &str| super::run::limits(text).collect::<Vec<_>>().join(" ");
    assert!(told("mv: cannot move 'a' to 'b': Invalid cross-device link").contains("rename directories"));
    assert!(told("OSError: [Errno 18] Invalid cross-device link: 'a' -> 'b'").contains("rename directories"));
    assert!(told("cp: cannot open 'f': Value too large for defined data type").contains("other owners"));
    assert_eq!(told("all is well"), "");
}

#[test]
fn a_link_in_place_of_the_workspace_is_a_conflict() {
    let Some(bench) = bench() else { return };
    let plan = previewed(&bench, "echo x > made").unwrap();
    let (workspace, aside) = (bench.settings.workspace.clone(), bench.root.join("aside"));
    fs::rename(&workspace, &aside).unwrap();
    symlink(&aside, &workspace).unwrap();
    let result = bench.run(plan);
    assert_eq!(result.status, ToolStatus::Failed);
    assert!(!aside.join("made").exists());
}
