//! Runs a single hook command.

use crate::hooks::{Hook, HookAction, HookResponse, PLUGIN_ROOT, PROJECT_DIR, read_response};
use crate::sys::process::{
    CommandSpec, End, FinishedRun, OutputReceivers, Shell, command_environment, run_with_receivers, signal_name,
};
use crate::tools::blocking::off_thread;
use crate::tools::session_hooks::{HookFiles, SessionHooks};
use crate::tools::settings::ToolSettings;
use crate::tools::shell::command_run::AccessRestrictions;
use crate::tools::shell::command_sandbox::ExtraAccess;
use crate::tools::shell::network;
use crate::tools::shell::preview::HookLayer;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Maximum size of a hook's output in bytes.
const MAX_OUTPUT_BYTES: u64 = 1 << 20;
/// Maximum number of symlinks in the path of a program, as in the kernel.
const MAX_LINKS: usize = 40;

/// Outcome of a hook command.
#[derive(Debug)]
pub(super) enum CommandOutcome {
    Response(HookResponse),
    /// The hook was not run, for this reason.
    NotRun(String),
    /// The hook ran and failed.
    Failed(String),
}

/// Where a hook runs.
#[derive(Clone)]
pub(super) enum RunPlace {
    /// A read-only view of the workspace.
    Workspace,
    /// A layer without network access. The content of these paths in it has not been approved by anybody.
    Layer(Arc<HookLayer>, Arc<[PathBuf]>),
}

/// Runs a hook with this input until it ends or is stopped.
pub(super) async fn run_command(
    (hooks, hook): (&SessionHooks, &Hook),
    input: &Map<String, Value>,
    settings: &Arc<ToolSettings>,
    (stop, place): (CancellationToken, RunPlace),
) -> CommandOutcome {
    let (line, timeout_seconds, unsandboxed) = match &hook.action {
        HookAction::Command { line, timeout_seconds, unsandboxed } => (line, *timeout_seconds, *unsandboxed),
        HookAction::Unusable(why) => return CommandOutcome::NotRun(why.clone()),
    };
    let (checks, checked) = (hooks.clone(), hook.clone());
    let files = match off_thread(move || checks.check(&checked)).await.map_err(|error| error.message) {
        Ok(Ok(files)) => files,
        Ok(Err(why)) | Err(why) => return CommandOutcome::NotRun(why),
    };
    // In the layer, proposed text that nobody has approved yet would run instead of the checked file.
    if let RunPlace::Layer(_, proposed) = &place
        && let Some(program) = files.programs.iter().find(|program| is_reached_through(program, proposed))
    {
        return CommandOutcome::NotRun(format!("the call changes `{}`, which the hook runs", program.display()));
    }
    let plugin = files.plugin.clone();
    let settings = match place {
        RunPlace::Workspace => narrowed(settings, unsandboxed, files),
        RunPlace::Layer(..) => in_layer(settings, files),
    };
    if !unsandboxed && !settings.command.sandbox.tier.is_enforcing() {
        return CommandOutcome::NotRun("hooks run only in a sandbox, and this system or policy has none".to_owned());
    }
    let input = match serde_json::to_string(input) {
        Ok(input) => input,
        Err(error) => return CommandOutcome::NotRun(format!("cannot encode the input: {error}")),
    };
    let time = Duration::from_secs(timeout_seconds);
    let directory = hooks.directory(hook, &settings.workspace);
    match run((line, directory, plugin), (input, time), settings, (stop, place)).await {
        Ok(finished) => response(hook, &finished, timeout_seconds),
        Err(why) => CommandOutcome::Failed(why),
    }
}

/// Returns whether a program is at or below one of these paths, be it by its name, by its real path, or through a
/// symlink in its path.
fn is_reached_through(program: &Path, paths: &[PathBuf]) -> bool {
    let way = way_to(program);
    paths.iter().any(|path| way.iter().any(|step| step.starts_with(path)))
}

/// Returns every path through which a program is reached: its name, and each directory, symlink and file visited when
/// the name is resolved.
fn way_to(program: &Path) -> Vec<PathBuf> {
    let (mut way, mut links, mut at) = (vec![program.to_owned()], 0, PathBuf::new());
    let parts_of = |path: &Path| path.components().rev().map(|part| part.as_os_str().to_owned()).collect::<Vec<_>>();
    let mut left = parts_of(program);
    while let Some(part) = left.pop() {
        if part == ".." {
            at.pop();
        } else if part != "." {
            // Pushing the root replaces the whole path.
            at.push(part);
        }
        way.push(at.clone());
        if let Ok(target) = at.read_link() {
            links += 1;
            if links > MAX_LINKS {
                break;
            }
            at.pop();
            left.extend(parts_of(&target));
        }
    }
    way
}

/// Returns the settings under which a hook runs. Unless it is unsandboxed, it can only read, sees no secrets, and has
/// the same network access that the policy grants to commands.
fn narrowed(settings: &Arc<ToolSettings>, unsandboxed: bool, files: HookFiles) -> Arc<ToolSettings> {
    if unsandboxed {
        return AccessRestrictions { unsandboxed, ..AccessRestrictions::default() }.apply_to(Arc::clone(settings));
    }
    let sees = files.programs.into_iter().chain(files.plugin).collect();
    AccessRestrictions { read_only: true, sees, ..AccessRestrictions::default() }.apply_to(Arc::new(settings.for_layer()))
}

/// Returns the settings under which a hook runs in a layer, where it sees no secrets and has no network access.
fn in_layer(settings: &ToolSettings, files: HookFiles) -> Arc<ToolSettings> {
    let sees = files.programs.into_iter().chain(files.plugin).collect();
    AccessRestrictions { sees, ..AccessRestrictions::default() }.apply_to(Arc::new(settings.for_hooks_in_layer()))
}

/// Runs a command line until it ends. A command that produces too much output is killed.
async fn run(
    (line, directory, plugin): (&str, PathBuf, Option<PathBuf>),
    (input, timeout): (String, Duration),
    settings: Arc<ToolSettings>,
    (stop, place): (CancellationToken, RunPlace),
) -> Result<FinishedRun, String> {
    let sandbox = Arc::clone(&settings);
    let (hold, confinement, proxy) = match &place {
        RunPlace::Workspace => {
            let hold =
                off_thread(move || sandbox.prepare_sandbox(&ExtraAccess::default())).await.map_err(|error| error.message)?;
            let confinement = hold.confinement.clone();
            (Some(hold), confinement, Some(network::proxy(&settings, &[])))
        }
        RunPlace::Layer(layer, _) => {
            let mut confinement = layer.confinement().clone();
            confinement.shown.extend(settings.command.sandbox.paths.shown.iter().filter_map(|place| place.canonicalize().ok()));
            confinement.shown.sort();
            confinement.shown.dedup();
            (None, Some(confinement), None)
        }
    };
    let mut environment =
        command_environment(std::env::vars_os(), &settings.command.environment, &settings.command.secret_names, &|value| {
            settings.redactor.holds_secret(value)
        });
    settings.adapt(&mut environment, confinement.as_ref());
    environment.retain(|(name, _)| name != PROJECT_DIR && name != PLUGIN_ROOT);
    environment.push((PROJECT_DIR.into(), settings.workspace.clone().into()));
    environment.extend(plugin.map(|root| (PLUGIN_ROOT.into(), root.into())));
    let spec = CommandSpec {
        line: line.to_owned(),
        shell: Shell::Bash,
        directory,
        environment,
        stdin: Some(input),
        terminal: None,
        confinement,
        proxy,
        timeout,
        max_output_bytes: usize::try_from(MAX_OUTPUT_BYTES).unwrap_or(usize::MAX),
        helper: settings.command.helper.clone(),
    };
    let kill = stop.child_token();
    let (printed, full) = (AtomicU64::new(0), kill.clone());
    let tap = move |bytes: &[u8]| {
        if printed.fetch_add(bytes.len() as u64, Ordering::Relaxed) + bytes.len() as u64 > 2 * MAX_OUTPUT_BYTES {
            full.cancel();
        }
    };
    let receivers = OutputReceivers { tap: Box::new(tap), ..OutputReceivers::default() };
    let (live, _unwatched) = mpsc::channel(1);
    let finished = run_with_receivers(spec, live, kill, receivers).await;
    if let Some(hold) = hold
        && let Ok(Some(words)) = tokio::task::spawn_blocking(move || hold.over()).await
    {
        tracing::warn!(words, "the sandbox removed or reported files after a hook ended");
    }
    finished.map_err(|error| error.to_string())
}

fn response(hook: &Hook, finished: &FinishedRun, timeout_seconds: u64) -> CommandOutcome {
    let (stdout, stderr) = (&finished.stdout, &finished.stderr);
    if stdout.total().max(stderr.total()) > MAX_OUTPUT_BYTES {
        return CommandOutcome::Failed(format!("the output exceeds {} MiB", MAX_OUTPUT_BYTES >> 20));
    }
    let whole = usize::try_from(MAX_OUTPUT_BYTES).unwrap_or(usize::MAX);
    match finished.end {
        End::Exited(code) => match read_response(hook.event, code, &stdout.text(whole), &stderr.text(whole)) {
            Ok(response) => CommandOutcome::Response(response),
            Err(why) => CommandOutcome::Failed(why),
        },
        End::TimedOut => CommandOutcome::Failed(format!("timed out after {timeout_seconds} s")),
        End::Signalled(signal) => {
            CommandOutcome::Failed(format!("killed by signal {signal} ({})", signal_name(signal).unwrap_or("unknown")))
        }
        End::Killed | End::Interrupted => CommandOutcome::Failed("stopped with the task".to_owned()),
        End::DiskFull | End::LayerFull | End::MemoryFull => {
            CommandOutcome::Failed("killed because it used too much disk space or memory".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn every_link_in_the_path_to_a_program_is_recognized() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        for name in ["bin", "tools", "lib"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        fs::write(root.join("lib/fmt.sh"), "").unwrap();
        symlink("../lib/./fmt.sh", root.join("tools/fmt")).unwrap();
        symlink("../tools/fmt", root.join("bin/fmt")).unwrap();
        symlink(root.join("bin"), root.join("other")).unwrap();
        let program = root.join("other/fmt");
        for name in ["other", "bin", "bin/fmt", "tools", "tools/fmt", "lib", "lib/fmt.sh"] {
            assert!(is_reached_through(&program, &[root.join(name)]), "{name}");
        }
        for name in ["bin/fm", "tools/fmt.sh", "lib/fmt"] {
            assert!(!is_reached_through(&program, &[root.join(name)]), "{name}");
        }
        symlink("loop", root.join("loop")).unwrap();
        assert!(is_reached_through(&root.join("loop"), &[root.join("loop")]));
    }
}
