//! Saves the results of setup: a key, settings and a policy. Existing files are backed up.

use super::approvals::ApprovalPreset;
use crate::config::{NewValue, with_values};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::policy_templates::{InitPlace, Preset, Template};
use crate::host::{api_keys, policy_templates};
use std::io::ErrorKind;
use std::path::Path;

/// File in the data directory which records that first-time setup has been shown, whatever the user's answers were.
const ASKED: &str = "setup-asked";

/// Returns whether first-time setup should start, because there is neither configuration nor a key and the setup has
/// never been shown.
pub(crate) fn is_first(app: &AppContext) -> bool {
    let config = &app.directories.config;
    let is_bare = !config.join("config.toml").exists() && !config.join("policy.toml").exists();
    is_bare && !app.directories.data.join(ASKED).exists() && app.credentials.names().is_ok_and(|names| names.is_empty())
}

/// Records that first-time setup has been shown, so that it does not start automatically again.
pub(crate) fn record_setup_shown(app: &AppContext) {
    let file = app.directories.data.join(ASKED);
    let kept = crate::sys::file::private::update::<crate::sys::file::private::PrivateError>(&file, 1 << 10, |_| {
        Ok(Some(b"Delete this file to run first-time setup again.\n".to_vec()))
    });
    if let Err(error) = kept {
        tracing::warn!(%error, "cannot record that first-time setup was shown");
    }
}

/// Saves a key. Returns lines that state where it was saved.
pub(crate) fn key(app: &AppContext, provider: &str, key: &str) -> Result<Vec<String>, CliError> {
    let name = app.settings.key_name(provider)?;
    Ok(api_keys::keep(app, name, key, api_keys::PRECEDENCE_NOTICE)?.trim_end().lines().map(str::to_owned).collect())
}

/// Sets values in `config.toml`.
pub(crate) fn settings(app: &AppContext, values: &[Setting<'_>]) -> Result<Vec<String>, CliError> {
    let file = app.directories.config_file();
    let old = read(&file)?;
    let text = with_values(&old, values).map_err(|error| CliError::usage(format!("`{}`: {error}", file.display())))?;
    if text == old {
        return Ok(vec![format!("{} already has these settings", file.display())]);
    }
    let backup = policy_templates::write(&app.directories.config, &file, &text, true, file.exists())?;
    Ok(written_lines(&file, backup.as_deref()))
}

pub(crate) fn read(file: &Path) -> Result<String, CliError> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(CliError::failed(format!("cannot read `{}`: {error}", file.display()))),
    }
}

/// A key in `config.toml` and its new value.
pub(crate) type Setting<'a> = (&'a [&'a str], NewValue<'a>);

/// Returns the settings that correspond to an approval choice.
pub(crate) fn approvals(answer: &ApprovalPreset) -> [Setting<'_>; 2] {
    [(&["approval", "mode"], NewValue::Text(answer.mode.as_str())), (&["approval", "approve"], NewValue::Text(answer.approve))]
}

/// Returns the settings that enable the daily check for a new list of models.
pub(crate) fn daily_look() -> [Setting<'static>; 2] {
    [
        (&["models", "catalogue_url"], NewValue::Text(crate::host::catalogue_update::PUBLIC_LIST)),
        (&["models", "check_daily"], NewValue::Flag(true)),
    ]
}

/// Writes a policy preset. `wanted` specifies whether the user chose the preset explicitly, in which case it replaces
/// an existing policy, which is backed up.
pub(crate) fn preset(app: &AppContext, preset: Preset, wanted: bool) -> Result<Vec<String>, CliError> {
    let file = app.directories.config.join("policy.toml");
    let there = std::fs::read_to_string(&file).ok();
    let text = policy_templates::template_text(Template::Preset(preset));
    if there.as_ref() == Some(&text) {
        return Ok(vec![format!("{} already has this policy", file.display())]);
    }
    if there.is_some() && !wanted {
        return Ok(vec![format!("unchanged: {}", file.display())]);
    }
    let to = if there.is_some() { InitPlace::Replace } else { InitPlace::NewFile };
    let backup = policy_templates::write(&app.directories.config, &file, &text, true, to == InitPlace::Replace)?;
    Ok(written_lines(&file, backup.as_deref()))
}

pub(crate) fn written_lines(file: &Path, backup: Option<&Path>) -> Vec<String> {
    let wrote = format!("wrote {}", file.display());
    [wrote].into_iter().chain(backup.map(|backup| format!("saved the old file as {}", backup.display()))).collect()
}
