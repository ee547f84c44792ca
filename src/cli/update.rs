//! `aye update`: prints how to update aye, and whether a newer version exists. It changes nothing and runs no commands.

use super::args::definition::UpdateArgs;
use crate::host::console::{print_json, print_text, warn};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::installation::{InstallMethod, Installation, PackageRecords};
use crate::host::release_index::{self, INSTALLED, Release, ReleaseStatus};
use crate::host::startup::runtime;
use crate::host::version::version;
use crate::protocol::Problem;
use crate::text::reveal;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::PathBuf;

/// JSON output of `aye update`.
#[derive(Serialize)]
struct UpdateJson {
    installed: &'static str,
    /// Version, including commit and target.
    build: &'static str,
    installation: InstallationJson,
    /// Update status. Like `newest`, absent without `--check`.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    newest: Option<NewestJson>,
    /// Shell commands that would update this installation; empty if they are unknown.
    commands: Vec<String>,
}

#[derive(Serialize)]
struct InstallationJson {
    method: &'static str,
    program: String,
}

#[derive(Serialize)]
struct NewestJson {
    version: String,
    date: String,
    notes: Option<String>,
}

pub(crate) fn run(app: &AppContext, args: &UpdateArgs) -> Result<Exit, CliError> {
    let program = std::env::current_exe().and_then(|program| program.canonicalize()).unwrap_or_else(|_| PathBuf::from("aye"));
    let records = PackageRecords::from_system(|name| app.environment.get(name).map(str::to_owned));
    let installation = Installation::for_program(program, &records);
    let release = if args.check { Some(newest(app)?) } else { None };
    let status = release.as_ref().map(|release| release.compare_with(INSTALLED));
    let commands = installation.method.update_commands(release.as_ref());
    if let Some(release) = &release {
        warn_of_clock(release);
    }
    if args.json {
        print_json(&json(&installation, release.as_ref(), status, commands));
    } else {
        print_text(&reveal(&text(&installation, release.as_ref(), status, &commands)));
    }
    match status {
        Some(ReleaseStatus::UpdateAvailable) => Ok(Exit::UpdateAvailable),
        Some(ReleaseStatus::BuildIsNewer) => {
            let problem = Problem::new("this build is newer than the newest release");
            Err(CliError::failed(problem.hint("check that `update.url` in config.toml names the right server")))
        }
        Some(ReleaseStatus::UpToDate) | None => Ok(Exit::Completed),
    }
}

fn newest(app: &AppContext) -> Result<Release, CliError> {
    let Some(url) = release_index::url(app) else {
        return Err(CliError::usage("this build has no release server").hint("set `[update] url` in config.toml"));
    };
    crate::config::check_list_url(&url).map_err(|problem| CliError::usage(problem.with_location("`update.url`")))?;
    runtime()?.block_on(Release::download(&url, app)).map_err(|problem| {
        let problem = problem.with_location("cannot check for a newer version");
        let has_hint = !problem.hints.is_empty();
        CliError::failed(if has_hint { problem } else { problem.hint("try again later, or check `update.url`") })
    })
}

/// Warns if this machine's clock is wrong, because the validity of certificates depends on it. Releases are compared
/// only by version number.
fn warn_of_clock(release: &Release) {
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    if release.is_in_future(today) {
        let problem = Problem::new(format!("the release is dated {}, but today is {today}", release.date));
        warn(problem.hint("check this machine's clock"));
    }
}

fn json(
    installation: &Installation,
    release: Option<&Release>,
    status: Option<ReleaseStatus>,
    commands: Vec<String>,
) -> UpdateJson {
    UpdateJson {
        installed: INSTALLED,
        build: version(),
        installation: InstallationJson {
            method: installation.method.as_str(),
            program: installation.program.display().to_string(),
        },
        status: status.map(ReleaseStatus::as_str),
        newest: release.map(|release| NewestJson {
            version: release.version.to_string(),
            date: release.date.to_string(),
            notes: release.notes.clone(),
        }),
        commands,
    }
}

fn text(installation: &Installation, release: Option<&Release>, status: Option<ReleaseStatus>, commands: &[String]) -> String {
    let mut text = format!("installed     {}\n", version());
    if let Some(release) = release {
        let _ = writeln!(text, "newest        {} ({})", release.version, release.date);
    }
    let _ = writeln!(text, "installation  {}", installation.describe());
    if let Some(notes) = release.and_then(|release| release.notes.as_ref()) {
        let _ = writeln!(text, "notes         {notes}");
    }
    text.push('\n');
    match status {
        Some(ReleaseStatus::UpToDate) => text.push_str("aye is up to date.\n"),
        // An error message follows.
        Some(ReleaseStatus::BuildIsNewer) => text.truncate(text.trim_end().len() + 1),
        Some(ReleaseStatus::UpdateAvailable) => {
            text.push_str("A newer version is available. ");
            text.push_str(&instructions(&installation.method, release, commands));
        }
        None => text.push_str(&instructions(&installation.method, release, commands)),
    }
    text
}

/// Returns the commands that update aye, or instructions if the commands are unknown.
fn instructions(method: &InstallMethod, release: Option<&Release>, commands: &[String]) -> String {
    if !commands.is_empty() {
        return format!("To update aye, run:\n  {}\n", commands.join("\n  "));
    }
    match (method, release) {
        (InstallMethod::Unknown, _) => "aye cannot tell how it was installed. Update it the way you installed it.\n".to_owned(),
        (_, None) => "Run `aye update --check` to find the newest version and the commands that install it.\n".to_owned(),
        (_, Some(release)) => {
            format!("Version {} has no file for this kind of installation and system.\n", release.version)
        }
    }
}
