//! The `CliEnv` tool, which lists the environment variables of commands. A value is shown only if it is known to be
//! harmless.

use crate::ports::{BoxFuture, RunContext};
use crate::protocol::{Action, ToolError};
use crate::sys::process::command_environment;
use crate::tools::alias::Alias;
use crate::tools::call_result::CallResult;
use crate::tools::draft::{CallDraft, CallEffect};
use crate::tools::paths::Paths;
use crate::tools::settings::ToolSettings;
use crate::tools::tool::Tool;
use futures_util::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt::Write;
use std::sync::Arc;

/// Variables whose values do no more than locate programs or select languages. A name that ends in `_` is a prefix.
const HARMLESS: &[&str] = &[
    "AYE",
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "CC",
    "COLORTERM",
    "CXX",
    "GOCACHE",
    "GOMODCACHE",
    "GOPATH",
    "GOROOT",
    "HOME",
    "JAVA_HOME",
    "LANG",
    "LANGUAGE",
    "LC_",
    "LOGNAME",
    "NVM_DIR",
    "PATH",
    "PWD",
    "PYENV_ROOT",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "VIRTUAL_ENV",
    "XDG_",
];
/// Maximum number of variables to list.
const MAX: usize = 300;

pub(in crate::tools) struct CliEnv;

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct Arguments {}

impl Tool for CliEnv {
    const NAME: &'static str = "CliEnv";
    const ALIASES: &'static [Alias<Arguments>] = &[
        Alias::with_same_arguments("cli_env"),
        Alias::with_same_arguments("get_env"),
        Alias::with_same_arguments("list_env"),
        Alias::with_same_arguments("environment"),
    ];
    const CAPABILITY: &'static str = "Shell.Exec";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/CliEnv.md");
    type Arguments = Arguments;
    type Work = ();

    fn actions(_: &Arguments, _: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        Ok(Vec::new())
    }

    fn draft(_: Arguments, _: &ToolSettings) -> Result<CallDraft<()>, ToolError> {
        let summary = "List the environment variables that commands get".to_owned();
        Ok(CallDraft { summary, actions: Vec::new(), proposal: None, effect: CallEffect::Reads, work: () })
    }

    fn run((): (), settings: Arc<ToolSettings>, _: RunContext) -> BoxFuture<'static, CallResult> {
        async move {
            let is_secret = |value: &str| settings.redactor.holds_secret(value);
            let mut given = command_environment(
                std::env::vars_os(),
                &settings.command.environment,
                &settings.command.secret_names,
                &is_secret,
            );
            given.sort();
            let mut text = String::new();
            for (name, value) in given.iter().take(MAX) {
                let name = name.to_string_lossy();
                let harmless = HARMLESS.iter().any(|one| if one.ends_with('_') { name.starts_with(one) } else { *one == name });
                // Writing to a string does not fail.
                let _ = match value.to_str().filter(|value| harmless && !value.contains("://")) {
                    Some(value) => writeln!(text, "{name}={value}"),
                    None => writeln!(text, "{name} (set)"),
                };
            }
            if given.len() > MAX {
                let _ = writeln!(text, "[{} more]", given.len() - MAX);
            }
            Ok(text.trim_end().to_owned().into())
        }
        .boxed()
    }
}
