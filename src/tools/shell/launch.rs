//! Launches server programs. They are sandboxed like commands, under the policy in force when they are launched, and
//! end together with aye.

#[cfg(test)]
mod tests;

use super::command_run::exec_line;
use super::command_sandbox::{CommandSandbox, ExtraAccess};
use super::network;
use crate::ports::{BoxFuture, LaunchedProgram, Launcher, ServerProgram};
use crate::protocol::{SandboxAccess, SandboxTier};
use crate::sys::process::{CommandSpec, PipedProcess, Shell, command_environment, start_piped};
use crate::sys::proxy::Proxy;
use crate::sys::sandbox::NetworkAccess;
use crate::tools::blocking::off_thread;
use crate::tools::settings::ToolSettings;
use futures_util::FutureExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Starts servers with the current settings.
pub(crate) struct ServerLauncher {
    settings: Mutex<Arc<ToolSettings>>,
}

impl ServerLauncher {
    pub(crate) fn new(settings: ToolSettings) -> Self {
        Self { settings: Mutex::new(Arc::new(settings)) }
    }

    /// Replaces the settings for servers that are started from now on. Running servers are not affected.
    pub(crate) fn set_settings(&self, settings: ToolSettings) {
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
    }

    fn settings(&self) -> Arc<ToolSettings> {
        Arc::clone(&self.settings.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Launcher for ServerLauncher {
    fn launch(&self, program: ServerProgram) -> BoxFuture<'_, Result<LaunchedProgram, String>> {
        let settings = self.settings();
        let proxy = network::proxy(&settings, &[]);
        launch_with(settings, program, Some(proxy)).boxed()
    }
}

/// Starts a program. If the program has a network namespace of its own and no proxy, it cannot connect to any host.
async fn launch_with(
    settings: Arc<ToolSettings>,
    program: ServerProgram,
    proxy: Option<Proxy>,
) -> Result<LaunchedProgram, String> {
    let opens = if program.network { vec![SandboxAccess::Network] } else { Vec::new() };
    let settings = Arc::new(settings_for_server(&settings, &program));
    let (sandbox, wanted) = (Arc::clone(&settings), ExtraAccess { opens, ..ExtraAccess::default() });
    let hold = off_thread(move || sandbox.prepare_sandbox(&wanted)).await.map_err(|error| error.message)?;
    let spec = CommandSpec { proxy, ..spec(program, &hold, &settings)? };
    let kill = CancellationToken::new();
    let piped = start_piped(spec, kill.clone()).await.map_err(|error| error.to_string())?;
    Ok(to_launched(piped, hold, kill))
}

/// Starts language servers. They run only in the sandbox, cannot write to the project, and have no network access.
pub(crate) struct ReadOnlyLauncher(ServerLauncher);

impl ReadOnlyLauncher {
    pub(crate) fn new(settings: ToolSettings) -> Self {
        Self(ServerLauncher::new(settings))
    }

    /// Replaces the settings for servers that are started from now on. Running servers are not affected.
    pub(crate) fn set_settings(&self, settings: ToolSettings) {
        self.0.set_settings(settings);
    }
}

impl Launcher for ReadOnlyLauncher {
    fn launch(&self, program: ServerProgram) -> BoxFuture<'_, Result<LaunchedProgram, String>> {
        let mut settings = self.0.settings().read_only();
        let sandbox = &mut settings.command.sandbox;
        if !matches!(sandbox.tier, SandboxTier::Guarded | SandboxTier::Preview) {
            let reason = format!("language servers run only in a sandbox, and there is none ({})", sandbox.status());
            return std::future::ready(Err(reason)).boxed();
        }
        sandbox.network = NetworkAccess::Proxied;
        launch_with(Arc::new(settings), program, None).boxed()
    }
}

/// Returns the settings for a server, in which its directory and the files that its command uses are visible.
fn settings_for_server(settings: &ToolSettings, program: &ServerProgram) -> ToolSettings {
    let mut seeing = settings.clone();
    let start = program.directory.as_ref().map_or_else(|| settings.workspace.clone(), |said| settings.workspace.join(said));
    let named = program.argv.iter().filter(|word| word.contains('/') && !word.contains('\0')).map(|word| start.join(word));
    let mut visible = seeing.command.sandbox.paths.visible.clone();
    for place in std::iter::once(start.clone()).chain(named) {
        visible.show(&place);
        let real = place.canonicalize().ok().filter(|real| real.is_file());
        // A directory such as `~/.config` also contains settings of other programs.
        let is_plain = |directory: &&Path| directory.file_name().is_some_and(|name| !name.as_encoded_bytes().starts_with(b"."));
        if let Some(beside) = real.as_deref().and_then(Path::parent).filter(is_plain) {
            visible.show(beside);
        }
    }
    let sees = program.sees.iter().cloned();
    seeing.command.sandbox.paths.shown =
        visible.shown.iter().cloned().chain(seeing.command.sandbox.paths.shown).chain(sees).collect();
    seeing.command.sandbox.paths.visible = visible;
    seeing
}

fn spec(program: ServerProgram, hold: &CommandSandbox, settings: &ToolSettings) -> Result<CommandSpec, String> {
    if program.argv.iter().any(|word| word.contains('\0')) {
        return Err("the command contains a NUL byte".to_owned());
    }
    let confinement = hold.confinement.clone();
    let mut environment =
        command_environment(std::env::vars_os(), &settings.command.environment, &settings.command.secret_names, &|value| {
            settings.redactor.holds_secret(value)
        });
    // The user's configuration overrides the environment of commands, and private directories of the sandbox override both.
    environment.retain(|(name, _)| !program.environment.iter().any(|(own, _)| name == own.as_str()));
    environment.extend(program.environment.into_iter().map(|(name, value)| (name.into(), value.into())));
    settings.adapt(&mut environment, confinement.as_ref());
    Ok(CommandSpec {
        line: exec_line(&program.argv),
        shell: Shell::Bash,
        directory: directory(program.directory, settings)?,
        environment,
        stdin: None,
        terminal: None,
        confinement,
        proxy: None,
        timeout: Duration::MAX,
        max_output_bytes: settings.max_output_bytes,
        helper: settings.command.helper.clone(),
    })
}

fn directory(said: Option<PathBuf>, settings: &ToolSettings) -> Result<PathBuf, String> {
    let Some(said) = said else { return Ok(settings.workspace.clone()) };
    let path = settings.workspace.join(said);
    path.canonicalize().map_err(|error| format!("cannot use the directory `{}`: {error}", path.display()))
}

fn to_launched(piped: PipedProcess, hold: CommandSandbox, kill: CancellationToken) -> LaunchedProgram {
    let PipedProcess { input, output, errors, ending } = piped;
    let running = tokio::spawn(async move {
        let end = ending.await;
        // Remove files that must not remain.
        let told = tokio::task::spawn_blocking(move || hold.over()).await;
        if let Ok(Some(words)) = told {
            tracing::warn!(words, ?end, "the sandbox removed or reported files after a server ended");
        }
    });
    let guard = kill.clone().drop_guard();
    let end = move || {
        drop(guard);
        async move { drop(running.await) }.boxed()
    };
    LaunchedProgram { input: Box::new(input), output: Box::new(output), errors: Box::new(errors), end: Box::new(end) }
}
